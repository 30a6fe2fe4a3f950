/**
 * The outermost step of every request. It names the request, turns failures that no route answered into error objects, sets the headers
 * that all answers share, and reports the request: in the log, in the metrics, and as a span where requests are traced.
 */

import { TraceContext } from "@millrace/core"
import { type Cause, Context, Effect, Tracer, type Types } from "effect"
import { HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CurrentExchange, type Exchange } from "./Exchange.ts"
import { type Failure, problemOf, responseOf } from "./Problem.ts"
import { BodyUnreadable, MethodNotAllowed, RouteNotFound, ShuttingDown } from "./Refusal.ts"
import * as RequestContext from "./RequestContext.ts"
import * as RequestMetrics from "./RequestMetrics.ts"
import * as RequestReport from "./RequestReport.ts"
import * as RequestSpan from "./RequestSpan.ts"

/** Whether new calls are refused because the process is about to end. */
export const Closing = Context.Reference<() => boolean>("@millrace/http/Closing", { defaultValue: () => () => false })

/** A place in the API: a method and a path with `:parameters`. */
export interface Place {
  readonly method: string
  readonly path: string
}

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse
type App = Effect.Effect<Response, Types.unhandled>

/** `context`: the services that requests are logged and traced with. */
export const make = <R>(places: ReadonlyArray<Place>, context: Context.Context<R>) =>
  Effect.gen(function* () {
    const report = yield* RequestReport.make
    const routes = routesByPath(places)
    const traced = tracedIn(context)
    const inContext = RequestContext.within(context)

    return (app: App): Effect.Effect<Response, Types.unhandled, HttpServerRequest.HttpServerRequest> =>
      Effect.withFiber((fiber) => {
        const request = Context.get(fiber.context as Context.Context<Request>, HttpServerRequest.HttpServerRequest)
        const isClosing = Context.get(fiber.context, Closing)
        const exchange = report.begin(request)
        const measured = report.measure(RequestMetrics.methodOf(request), RequestMetrics.schemeOf(request))
        const recover = (cause: Cause.Cause<unknown>): Effect.Effect<Response, Types.unhandled> =>
          inContext(recovered(cause, exchange, request, routes))
        const answered = isClosing()
          ? Effect.succeed(responseOf(problemOf(new ShuttingDown()), exchange.id))
          : Effect.catchCause(Effect.provideService(app, CurrentExchange, exchange), recover)
        const logged = Effect.tap(answered, ({ status }) => inContext(report.log(exchange, request.method, status)))
        const response = traced(RequestSpan.around(logged, request, exchange.id, () => routeOf(request, routes)))
        return Effect.map(response, (response) => {
          measured.end(exchange.route, response.status)
          return HttpServerResponse.setHeaders(response, { ...RequestReport.sharedHeaders(exchange, isClosing()), ...response.headers })
        })
      })
  })

/** Traces by the tracer of the context, whichever tracer the server has. */
const tracedIn =
  <R>(context: Context.Context<R>) =>
  <A, E, R2>(effect: Effect.Effect<A, E, R2>): Effect.Effect<A, E, R2> =>
    TraceContext.isTraced(context) ? Effect.provideService(effect, Tracer.Tracer, Context.get(context, Tracer.Tracer)) : effect

// failures that no route answered

const recovered = (cause: Cause.Cause<unknown>, exchange: Exchange, request: Request, routes: RoutesByPath): Effect.Effect<Response> => {
  const isGone = cause.reasons.some((reason) => reason._tag === "Interrupt" && reason.annotations.has(HttpServerError.ClientAbort.key))
  if (isGone) return Effect.succeed(HttpServerResponse.empty({ status: RequestReport.CLIENT_CLOSED_REQUEST }))
  const failure = failureOf(cause, request, routes)
  const response = responseOf(problemOf(failure), exchange.id)
  return failure._tag === "Defect" ? Effect.as(RequestReport.logDefect(cause, exchange), response) : Effect.succeed(response)
}

const failureOf = (cause: Cause.Cause<unknown>, request: Request, routes: RoutesByPath): Failure => {
  const reasons = cause.reasons.map((reason) => (reason._tag === "Fail" ? reason.error : undefined))
  const error = reasons.find((reason) => reason instanceof HttpServerError.HttpServerError)?.reason
  if (error?._tag === "RouteNotFound") {
    const allow = [...new Set(routes(pathOf(request)).flatMap(({ methods }) => methods))].sort()
    // Where the method is right, the path is wrong: it cannot be decoded, or a part of it is too long
    return allow.length === 0 || allow.includes(request.method) ? new RouteNotFound() : new MethodNotAllowed({ allow })
  }
  if (error?._tag === "RequestParseError") return new BodyUnreadable()
  return RequestReport.failureOf(cause)
}

// routes

interface RouteOfPath {
  readonly path: string
  readonly methods: ReadonlyArray<string>
}

/** The routes that a path may take, those with the fewest parameters first. */
type RoutesByPath = (path: string) => ReadonlyArray<RouteOfPath>

const pathOf = ({ url }: Request): string => url.split(/[?#]/u, 1)[0] ?? url

/** The route that answers a request, if there is one. */
const routeOf = (request: Request, routes: RoutesByPath): string | undefined => {
  const method = request.method === "HEAD" ? "GET" : request.method
  return routes(pathOf(request)).find(({ methods }) => methods.includes(method))?.path
}

const routesByPath = (places: ReadonlyArray<Place>): RoutesByPath => {
  const methodsOf = new Map<string, Array<string>>()
  for (const { method, path } of places) methodsOf.set(path, [...(methodsOf.get(path) ?? []), method])
  const routes = Array.from(methodsOf, ([path, methods]) => ({
    path,
    methods,
    pattern: new RegExp(`^${path.replaceAll(/:\w+/gu, "[^/]+")}/?$`, "u"),
    parameters: path.split(":").length
  })).sort((a, b) => a.parameters - b.parameters)
  return (path) => routes.filter(({ pattern }) => pattern.test(path))
}
