/** A JSON service over HTTP that is not trusted: its replies are bounded in bytes and time, and decoded; redirects are not followed. */
import { UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Schema, SchemaIssue, Stream } from "effect"
import { FetchHttpClient, HttpClient, type HttpClientError, type HttpClientRequest, type HttpClientResponse } from "effect/http"

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
    const broken = (error: HttpClientError.HttpClientError) => unavailable(`${error.message}: ${rootOf(error.reason.cause)}`)

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
        const response = yield* Effect.mapError(client.execute(request), broken)
        if (response.status !== 200) return yield* Effect.fail(options.refusal(response.status))
        const body = yield* text(response)
        return yield* Effect.mapError(decode(body), (error) => unavailable(`its reply is malformed${places(error)}`))
      },
      Effect.timeoutOrElse({ duration: options.timeLimit, orElse: () => Effect.fail(unavailable("its reply exceeds the time limit")) }),
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      // Ids of traces are nobody's business outside.
      Effect.provideService(HttpClient.TracerPropagationEnabled, false),
      Effect.scoped
    )
  })

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
