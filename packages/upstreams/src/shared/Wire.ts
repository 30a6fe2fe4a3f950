/**
 * Sends HTTP requests to upstreams. Traces and errors name the host and the failure, but never the request or the reply, which may contain
 * a caller's text.
 */
import { Spans, TraceContext, UpstreamUnavailable } from "@millrace/core"
import { Effect } from "effect"
import { FetchHttpClient, HttpClient, type HttpClientError, HttpClientRequest } from "effect/http"

/** Sends a request within the current trace. Returns when the headers of the reply have arrived. */
export const send = Effect.fnUntraced(function* (client: HttpClient.HttpClient, request: HttpClientRequest.HttpClientRequest) {
  const trace = yield* TraceContext.headers
  const response = yield* HttpClient.withScope(client).execute(HttpClientRequest.setHeaders(request, trace))
  yield* Effect.annotateCurrentSpan("http.response.status_code", response.status)
  return response
})

/** Runs an exchange in a span. Its redirects are not followed. */
export const traced = <A, E, R>(
  upstream: string,
  request: HttpClientRequest.HttpClientRequest,
  exchange: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Spans.around(
    exchange.pipe(
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      // Effect's own spans contain whole URLs
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true)
    ),
    () => ({ name: request.method, kind: "client", attributes: { ...attributesOf(request), "millrace.upstream": upstream } })
  )

/** The error of a status that the upstream should not answer. `isolated`: it concerns this request only. */
export const unexpected = (upstream: string, status: number, isolated = false): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, reason: `it answered with status ${status}`, ...(isolated ? { isolated } : {}) })

/** Without the path. */
const attributesOf = ({ method, url }: HttpClientRequest.HttpClientRequest): Readonly<Record<string, unknown>> => {
  const { hostname, port, protocol } = new URL(url)
  return {
    "http.request.method": method,
    "server.address": hostname,
    "server.port": Number(port || (protocol === "https:" ? 443 : 80)),
    "url.scheme": protocol.slice(0, -1)
  }
}

/** Omits the error's own message, which quotes the whole URL. */
export const reasonOf = ({ reason }: HttpClientError.HttpClientError): string => `${reason._tag}: ${rootOf(reason.cause)}`

/** `fetch` quotes a header that it cannot send, which may be a key. */
const isOfHeader = ({ message, name }: Error): boolean => name === "TypeError" && /header/iu.test(message)

/** The innermost cause: the message of `fetch` says only that it failed. */
const rootOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return "no cause given"
  if (isOfHeader(cause)) return "a header of the request is malformed"
  if (cause.cause instanceof Error) return rootOf(cause.cause)
  return cause instanceof AggregateError ? cause.errors.map(rootOf).join(", ") : cause.message
}
