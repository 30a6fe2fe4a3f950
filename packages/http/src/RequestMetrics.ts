/** The metrics of requests, with OpenTelemetry's names. The values of attributes are bounded: routes, never paths. */
import { Metrics } from "@millrace/core"
import { Clock, type Context, Effect, Metric } from "effect"
import type { HttpServerRequest } from "effect/http"

/** The methods of RFC 9110 and RFC 5789. All other methods are counted as one. */
const METHODS: ReadonlySet<string> = new Set(["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"])
const OTHER = "_OTHER"

export const methodOf = ({ method }: { readonly method: string }): string => (METHODS.has(method) ? method : OTHER)

/** The scheme of the request; behind a proxy, the scheme that the proxy used. */
export const schemeOf = ({ source }: HttpServerRequest.HttpServerRequest): string =>
  "url" in source && typeof source.url === "string" && source.url.startsWith("https:") ? "https" : "http"

/** The `error.type` of a response: its status, if it is 500 or above. */
export const errorOf = (status: number): string | undefined => (status >= 500 ? String(status) : undefined)

const active = Metrics.table("http.request.method", "url.scheme", (attributes) =>
  // Not incremental: it goes up and down
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

/** A request that is being answered. Call one of its functions once. */
export interface Measurement {
  /** Counts it as answered; `route` is undefined where none matched. */
  readonly end: (route: string | undefined, status: number) => void
  /** Counts nothing: the request is answered another way. */
  readonly cancel: () => void
}

/** Counts a request that begins. `method` and `scheme` as {@link methodOf} and {@link schemeOf} tell them. */
export type RequestMetrics = (method: string, scheme: string) => Measurement

export const make: Effect.Effect<RequestMetrics> = Effect.gen(function* () {
  const context: Context.Context<never> = yield* Effect.context<never>()
  const clock = yield* Clock.Clock
  return (method, scheme) => {
    const began = clock.monotonicTimeNanosUnsafe()
    const count = active(method, scheme)
    count.updateUnsafe(1, context)
    const cancel = () => count.updateUnsafe(-1, context)
    const end = (route = "", status: number) => {
      cancel()
      const seconds = Number(clock.monotonicTimeNanosUnsafe() - began) / 1e9
      duration(method, scheme)(route, String(status)).updateUnsafe(seconds, context)
    }
    return { end, cancel }
  }
})
