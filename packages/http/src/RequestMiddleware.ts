/**
 * The outermost step of every request, whatever becomes of it: it names it, turns what nobody answered into an error object, sets the
 * headers that all answers share, and tells of it: one line in the log, its metrics, and its span where requests are traced.
 */

import { Credits, Ids, TraceContext } from "@millrace/core"
import { Cause, Clock, Context, Effect, Tracer, type Types } from "effect"
import { HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CurrentExchange, Exchange } from "./Exchange.ts"
import { type Failure, problemOf, responseOf } from "./Problem.ts"
import { rateLimitHeaders } from "./RateLimitHeaders.ts"
import { BodyUnreadable, Defect, MethodNotAllowed, RouteNotFound, ShuttingDown } from "./Refusal.ts"
import * as RequestMetrics from "./RequestMetrics.ts"
import * as RequestSpan from "./RequestSpan.ts"

/** Whether new calls are refused, because the process is about to end. */
export const Closing = Context.Reference<() => boolean>("@millrace/http/Closing", { defaultValue: () => () => false })

/** A place in the API: a method and a path with `:parameters`. */
export interface Place {
  readonly method: string
  readonly path: string
}

/** The client went away before there was an answer; nobody sees this status but the log. */
const CLIENT_CLOSED_REQUEST = 499

const CORRELATION_ID = /^[\w\-=]{1,255}$/u

type App = Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled>

export interface Options<R> {
  readonly places: ReadonlyArray<Place>
  /** Where the log is. */
  readonly context: Context.Context<R>
}

export const make = <R>({ places, context }: Options<R>) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const clock = yield* Clock.Clock
    const measure = yield* RequestMetrics.make
    const routesAt = routesByPath(places)
    const methodsAt = (path: string) => [...new Set(routesAt(path).flatMap(({ methods }) => methods))].sort()
    const routeOf = (request: HttpServerRequest.HttpServerRequest) => {
      const method = request.method === "HEAD" ? "GET" : request.method
      return routesAt(pathOf(request)).find(({ methods }) => methods.includes(method))?.path
    }

    /** By the tracer that it was built with, whatever its server knows. */
    const traced = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      TraceContext.isTraced(context) ? Effect.provideService(effect, Tracer.Tracer, Context.get(context, Tracer.Tracer)) : effect

    const tell = (line: Effect.Effect<void>, fields: Readonly<Record<string, unknown>>) =>
      Effect.provideContext(Effect.annotateLogs(line, fields), context)

    /** What nobody answered. */
    const failureOf = (cause: Cause.Cause<unknown>, request: HttpServerRequest.HttpServerRequest): Failure => {
      const reasons = cause.reasons.map((reason) => (reason._tag === "Fail" ? reason.error : undefined))
      const error = reasons.find((reason) => reason instanceof HttpServerError.HttpServerError)?.reason
      if (error?._tag === "RouteNotFound") {
        const allow = methodsAt(pathOf(request))
        // Where the method is right, the path is not: it cannot be decoded, or a part of it is too long
        return allow.length === 0 || allow.includes(request.method) ? new RouteNotFound() : new MethodNotAllowed({ allow })
      }
      if (error?._tag === "RequestParseError") return new BodyUnreadable()
      return Cause.hasInterruptsOnly(cause) ? new ShuttingDown() : new Defect()
    }

    const recovered = (cause: Cause.Cause<unknown>, { id }: Exchange, request: HttpServerRequest.HttpServerRequest) => {
      const isGone = cause.reasons.some((reason) => reason._tag === "Interrupt" && reason.annotations.has(HttpServerError.ClientAbort.key))
      if (isGone) return Effect.succeed(HttpServerResponse.empty({ status: CLIENT_CLOSED_REQUEST }))
      const failure = failureOf(cause, request)
      const response = responseOf(problemOf(failure), id)
      return failure._tag === "Defect"
        ? Effect.as(tell(Effect.logError("A request failed", cause), { requestId: id }), response)
        : Effect.succeed(response)
    }

    const log = (exchange: Exchange, method: string, status: number) =>
      tell(Effect.logInfo("request"), {
        method,
        route: exchange.route ?? "unmatched",
        status,
        durationMs: clock.currentTimeMillisUnsafe() - exchange.startedAt,
        requestId: exchange.id,
        ...(exchange.correlationId === undefined ? {} : { correlationId: exchange.correlationId }),
        ...(exchange.accountId === undefined ? {} : { accountId: exchange.accountId }),
        ...(exchange.charged === undefined ? {} : { charged: Credits.toDecimal(exchange.charged) })
      })

    return (app: App): Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled, HttpServerRequest.HttpServerRequest> =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const isClosing = yield* Closing
        const inbound = request.headers["x-request-id"]
        const correlationId = inbound !== undefined && CORRELATION_ID.test(inbound) ? inbound : undefined
        const exchange = new Exchange(ids.uuid(), clock.currentTimeMillisUnsafe(), correlationId)
        const measured = measure(request)
        const answered = isClosing()
          ? Effect.succeed(responseOf(problemOf(new ShuttingDown()), exchange.id))
          : app.pipe(
              Effect.provideService(CurrentExchange, exchange),
              Effect.catchCause(
                (cause): Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled> => recovered(cause, exchange, request)
              )
            )
        const told = Effect.tap(answered, ({ status }) => log(exchange, request.method, status))
        const response = yield* traced(RequestSpan.around(told, request, exchange.id, () => routeOf(request)))
        measured(exchange.route, response.status)
        return HttpServerResponse.setHeaders(response, {
          "x-request-id": exchange.id,
          "x-content-type-options": "nosniff",
          ...(exchange.rate === undefined ? {} : rateLimitHeaders(exchange.rate)),
          // Else a client could hold on to a server that ends
          ...(isClosing() ? { connection: "close" } : {}),
          ...response.headers
        })
      })
  })

const pathOf = ({ url }: HttpServerRequest.HttpServerRequest): string => url.split(/[?#]/u, 1)[0] ?? url

/** The routes that a path may take, those with the fewest parameters first: none where there is nothing. */
const routesByPath = (places: ReadonlyArray<Place>) => {
  const methodsOf = new Map<string, Array<string>>()
  for (const { method, path } of places) methodsOf.set(path, [...(methodsOf.get(path) ?? []), method])
  const routes = Array.from(methodsOf, ([path, methods]) => ({
    path,
    methods,
    pattern: new RegExp(`^${path.replaceAll(/:\w+/gu, "[^/]+")}/?$`, "u"),
    parameters: path.split(":").length
  })).sort((a, b) => a.parameters - b.parameters)
  return (path: string) => routes.filter(({ pattern }) => pattern.test(path))
}
