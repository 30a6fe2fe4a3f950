/**
 * The outermost step of every request. It names the request, turns failures that no route answered into error objects, sets the headers
 * that all answers share, and reports the request: in the log, in the metrics, and as a span where requests are traced.
 */

import { Credits, Ids, TraceContext } from "@millrace/core"
import { Cause, Clock, Context, Effect, Tracer, type Types } from "effect"
import { HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CurrentExchange, type Exchange } from "./Exchange.ts"
import { type Failure, problemOf, rateLimitHeaders, responseOf } from "./Problem.ts"
import { BodyUnreadable, Defect, MethodNotAllowed, RouteNotFound, ShuttingDown } from "./Refusal.ts"
import * as RequestContext from "./RequestContext.ts"
import * as RequestMetrics from "./RequestMetrics.ts"
import * as RequestSpan from "./RequestSpan.ts"

/** Whether new calls are refused because the process is about to end. */
export const Closing = Context.Reference<() => boolean>("@millrace/http/Closing", { defaultValue: () => () => false })

/** A place in the API: a method and a path with `:parameters`. */
export interface Place {
  readonly method: string
  readonly path: string
}

/** The logged status of a request whose client disconnected before the answer. */
const CLIENT_CLOSED_REQUEST = 499

const CORRELATION_ID = /^[\w\-=]{1,255}$/u

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse
type App = Effect.Effect<Response, Types.unhandled>

/** `context`: the services that requests are logged and traced with. */
export const make = <R>(places: ReadonlyArray<Place>, context: Context.Context<R>) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const clock = yield* Clock.Clock
    const measure = yield* RequestMetrics.make
    const routes = routesByPath(places)
    const traced = tracedIn(context)
    const inContext = RequestContext.within(context)

    return (app: App): Effect.Effect<Response, Types.unhandled, HttpServerRequest.HttpServerRequest> =>
      Effect.withFiber((fiber) => {
        const request = Context.get(fiber.context as Context.Context<Request>, HttpServerRequest.HttpServerRequest)
        const isClosing = Context.get(fiber.context, Closing)
        const exchange: Exchange = { id: ids.uuid(), startedAt: clock.currentTimeMillisUnsafe(), correlationId: correlationIdOf(request) }
        const measured = measure(request)
        const recover = (cause: Cause.Cause<unknown>): Effect.Effect<Response, Types.unhandled> =>
          inContext(recovered(cause, exchange, request, routes))
        const answered = isClosing()
          ? Effect.succeed(responseOf(problemOf(new ShuttingDown()), exchange.id))
          : Effect.catchCause(Effect.provideService(app, CurrentExchange, exchange), recover)
        const logged = Effect.tap(answered, ({ status }) =>
          inContext(log(exchange, request.method, status, clock.currentTimeMillisUnsafe()))
        )
        const response = traced(RequestSpan.around(logged, request, exchange.id, () => routeOf(request, routes)))
        return Effect.map(response, (response) => {
          measured(exchange.route, response.status)
          return HttpServerResponse.setHeaders(response, { ...sharedHeaders(exchange, isClosing()), ...response.headers })
        })
      })
  })

/** The name that the client gave its request, where it is one. */
const correlationIdOf = ({ headers }: Request): string | undefined => {
  const inbound = headers["x-request-id"]
  return inbound !== undefined && CORRELATION_ID.test(inbound) ? inbound : undefined
}

const sharedHeaders = ({ id, rate }: Exchange, isClosing: boolean): Readonly<Record<string, string>> => ({
  "x-request-id": id,
  "x-content-type-options": "nosniff",
  ...(rate === undefined ? {} : rateLimitHeaders(rate)),
  // Otherwise a client could keep a server from ending
  ...(isClosing ? { connection: "close" } : {})
})

/** Traces by the tracer of the context, whichever tracer the server has. */
const tracedIn =
  <R>(context: Context.Context<R>) =>
  <A, E, R2>(effect: Effect.Effect<A, E, R2>): Effect.Effect<A, E, R2> =>
    TraceContext.isTraced(context) ? Effect.provideService(effect, Tracer.Tracer, Context.get(context, Tracer.Tracer)) : effect

const log = (exchange: Exchange, method: string, status: number, now: number): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logInfo("request"), {
    method,
    route: exchange.route ?? "unmatched",
    status,
    durationMs: now - exchange.startedAt,
    requestId: exchange.id,
    ...(exchange.correlationId === undefined ? {} : { correlationId: exchange.correlationId }),
    ...(exchange.accountId === undefined ? {} : { accountId: exchange.accountId }),
    ...(exchange.charged === undefined ? {} : { charged: Credits.toDecimal(exchange.charged) })
  })

// failures that no route answered

const recovered = (cause: Cause.Cause<unknown>, { id }: Exchange, request: Request, routes: RoutesByPath): Effect.Effect<Response> => {
  const isGone = cause.reasons.some((reason) => reason._tag === "Interrupt" && reason.annotations.has(HttpServerError.ClientAbort.key))
  if (isGone) return Effect.succeed(HttpServerResponse.empty({ status: CLIENT_CLOSED_REQUEST }))
  const failure = failureOf(cause, request, routes)
  const response = responseOf(problemOf(failure), id)
  return failure._tag === "Defect"
    ? Effect.as(Effect.annotateLogs(Effect.logError("A request failed", cause), { requestId: id }), response)
    : Effect.succeed(response)
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
  return Cause.hasInterruptsOnly(cause) ? new ShuttingDown() : new Defect()
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
