/**
 * The span of a request, a child of the caller's span if the headers name one. It shows the route but no path, query or header, since
 * those may hold the caller's data. Without a tracer, the caller's span is only passed on to upstreams.
 */
import { Spans, TraceContext } from "@millrace/core"
import { Context, Effect, Layer, Option, Tracer } from "effect"
import { HttpMiddleware, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { errorOf, methodOf, schemeOf } from "./RequestMetrics.ts"

/**
 * For an Effect host that serves the routes by `HttpRouter.serve` or `HttpRouter.toWebHandler`: turns off the spans of Effect's own
 * server, which show whole paths and queries.
 */
export const layer: Layer.Layer<never> = Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true)

type Response = HttpServerResponse.HttpServerResponse

/** Runs an effect in the span of its request. `routeOf` returns the route of the request, if there is one. */
export const around = <E, R>(
  answered: Effect.Effect<Response, E, R>,
  request: HttpServerRequest.HttpServerRequest,
  requestId: string,
  routeOf: () => string | undefined
): Effect.Effect<Response, E, R> =>
  Effect.withFiber(({ context }) => {
    const caller = TraceContext.fromHeaders(request.headers)
    if (!TraceContext.isTraced(context)) return caller === undefined ? answered : Effect.provideService(answered, Tracer.ParentSpan, caller)
    // Effect's own server has begun a span already
    if (isServed(context)) return answered
    const describe = (): Spans.Description => {
      const method = methodOf(request)
      const route = routeOf()
      return {
        name: `${method === "_OTHER" ? "HTTP" : method}${route === undefined ? "" : ` ${route}`}`,
        kind: "server",
        ...(caller === undefined ? { root: true } : { parent: caller }),
        attributes: {
          "http.request.method": method,
          "url.scheme": schemeOf(request),
          ...(route === undefined ? {} : { "http.route": route }),
          "millrace.request_id": requestId
        }
      }
    }
    const told = Effect.tap(answered, ({ status }) => Effect.annotateCurrentSpan("http.response.status_code", status))
    return Spans.around(told, describe, ({ status }) => errorOf(status))
  })

const isServed = (context: Context.Context<never>): boolean => {
  const span = Option.getOrUndefined(Context.getOption(context, Tracer.ParentSpan))
  return span?._tag === "Span" && span.kind === "server" && span.status._tag === "Started"
}
