/**
 * A JSON service over HTTP that is not trusted: its replies are bounded in bytes and time, and decoded; redirects are not followed. The
 * trace of a call goes on there.
 */
import { Spans, TraceContext, UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Schema, SchemaIssue, Stream } from "effect"
import { FetchHttpClient, HttpClient, type HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"

/** How long a whole exchange may take, from the connection to the last byte, and how many bytes the body of a reply may have. */
export interface Limits {
  readonly timeLimit?: Duration.Input
  readonly byteLimit?: number
}

/** The address of a path below a base address, whether or not that ends in a slash. */
export const below = (base: URL, path: string): URL =>
  new URL(`${base.pathname.endsWith("/") ? base.pathname : `${base.pathname}/`}${path}`, base)

/**
 * A way to ask the service, giving the decoded body of a reply with status 200; what any other status means is said by `refusal`.
 * All else is `UpstreamUnavailable`, whose reason never quotes a reply: it may repeat a caller's text.
 */
export const make = <A, E>(options: {
  readonly upstream: string
  readonly reply: Schema.Decoder<A>
  readonly refusal: (status: number) => E
  readonly timeLimit: Duration.Input
  readonly byteLimit: number
}): Effect.Effect<
  (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<A, E | UpstreamUnavailable>,
  never,
  HttpClient.HttpClient
> =>
  Effect.gen(function* () {
    const client = HttpClient.withScope(yield* HttpClient.HttpClient)
    const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(options.reply))
    const unavailable = (reason: string) => new UpstreamUnavailable({ upstream: options.upstream, reason })
    // Its message names the whole address
    const broken = ({ reason }: HttpClientError.HttpClientError) => unavailable(`${reason._tag}: ${rootOf(reason.cause)}`)

    const text = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse) {
      const decoder = new TextDecoder()
      let bytes = 0
      let text = ""
      yield* Stream.runForEach(Stream.mapError(response.stream, broken), (chunk) => {
        bytes += chunk.byteLength
        text += decoder.decode(chunk, { stream: true })
        return bytes > options.byteLimit ? Effect.fail(unavailable(`its reply exceeds ${options.byteLimit} bytes`)) : Effect.void
      })
      return text + decoder.decode()
    })

    return Effect.fnUntraced(
      function* (request: HttpClientRequest.HttpClientRequest) {
        const trace = yield* TraceContext.headers
        const response = yield* Effect.mapError(client.execute(HttpClientRequest.setHeaders(request, trace)), broken)
        yield* Effect.annotateCurrentSpan("http.response.status_code", response.status)
        if (response.status !== 200) return yield* Effect.fail(options.refusal(response.status))
        const body = yield* text(response)
        return yield* Effect.mapError(decode(body), (error) => unavailable(`its reply is malformed${places(error)}`))
      },
      Effect.timeoutOrElse({ duration: options.timeLimit, orElse: () => Effect.fail(unavailable("its reply exceeds the time limit")) }),
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      // Its spans show whole addresses, and what a caller asked may be in them
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
      Effect.scoped,
      (exchange, { method, url }) =>
        Spans.around(exchange, () => ({
          name: method,
          kind: "client",
          attributes: { "http.request.method": method, ...hostOf(url), "millrace.upstream": options.upstream }
        }))
    )
  })

/** Where it is; never the path, which may hold what was asked for. */
const hostOf = (address: string): Readonly<Record<string, unknown>> => {
  const { hostname, port, protocol } = new URL(address)
  return {
    "server.address": hostname,
    "server.port": Number(port || (protocol === "https:" ? 443 : 80)),
    "url.scheme": protocol.slice(0, -1)
  }
}

/** What happened on the wire: fetch itself says no more than that it failed. */
const rootOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return "no cause given"
  if (cause.cause instanceof Error) return rootOf(cause.cause)
  return cause instanceof AggregateError ? cause.errors.map(rootOf).join(", ") : cause.message
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const places = (error: Schema.SchemaError): string => {
  const paths = format(error.issue).issues.flatMap(({ path }) => (path === undefined || path.length === 0 ? [] : [path.join(".")]))
  return paths.length === 0 ? "" : ` at ${paths.join(", ")}`
}
