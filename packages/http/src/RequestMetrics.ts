/** What is measured of requests, under the names that OpenTelemetry gives it. Attributes are bounded: routes, never paths. */
import { Metrics } from "@millrace/core"
import { Clock, type Context, Effect, Metric } from "effect"
import type { HttpServerRequest } from "effect/http"

/** RFC 9110 and RFC 5789. Whatever else a client makes up is one method. */
const METHODS: ReadonlySet<string> = new Set(["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"])
const OTHER = "_OTHER"

export const methodOf = ({ method }: HttpServerRequest.HttpServerRequest): string => (METHODS.has(method) ? method : OTHER)

/** As the host says it: behind a proxy, how the proxy asked. */
export const schemeOf = ({ source }: HttpServerRequest.HttpServerRequest): string =>
  "url" in source && typeof source.url === "string" && source.url.startsWith("https:") ? "https" : "http"

/** `error.type` of a response: its status where the fault is ours. */
export const errorOf = (status: number): string | undefined => (status >= 500 ? String(status) : undefined)

const active = Metrics.table("http.request.method", "url.scheme", (attributes) =>
  // Goes up and down
  Metric.counter("http.server.active_requests", { description: "Requests that are being answered", attributes })
)

const duration = Metrics.table("http.request.method", "url.scheme", (request) =>
  Metrics.table("http.route", "http.response.status_code", (response) => {
    const error = errorOf(Number(response["http.response.status_code"]))
    return Metrics.histogram(
      "http.server.request.duration",
      "How long requests took, from their headers to the whole answer"
    )({ ...request, ...response, ...(error === undefined ? {} : { "error.type": error }) })
  })
)

/** Counts a request in; what it gives is called once, when the request is answered: `route` is undefined where there was none. */
export type RequestMetrics = (request: HttpServerRequest.HttpServerRequest) => (route: string | undefined, status: number) => void

export const make: Effect.Effect<RequestMetrics> = Effect.gen(function* () {
  const context: Context.Context<never> = yield* Effect.context<never>()
  const clock = yield* Clock.Clock
  return (request) => {
    const began = clock.monotonicTimeNanosUnsafe()
    const method = methodOf(request)
    const scheme = schemeOf(request)
    active(method, scheme).updateUnsafe(1, context)
    return (route = "", status) => {
      active(method, scheme).updateUnsafe(-1, context)
      const seconds = Number(clock.monotonicTimeNanosUnsafe() - began) / 1e9
      duration(method, scheme)(route, String(status)).updateUnsafe(seconds, context)
    }
  }
})
