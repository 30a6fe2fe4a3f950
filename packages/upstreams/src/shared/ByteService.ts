/**
 * A service over HTTP that is not trusted, asked for bytes: its replies are bounded in bytes and time, redirects are not followed, and
 * what a status means is left to whoever asked. The trace of a call goes on there.
 */
import { Spans, TraceContext, UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Schema, Stream } from "effect"
import { FetchHttpClient, HttpClient, type HttpClientError, HttpClientRequest } from "effect/http"
import * as Wire from "./Wire.ts"

export interface Reply {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Uint8Array
}

/** Fails with `UpstreamUnavailable`, whose reason never quotes a reply or an address: either may repeat a caller's text. */
export type Ask = (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<Reply, UpstreamUnavailable>

/** `timeLimit` is for a whole exchange, from the connection to the last byte. */
export const make = (options: {
  readonly upstream: string
  readonly timeLimit: Duration.Input
  readonly byteLimit: number
}): Effect.Effect<Ask, never, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const client = HttpClient.withScope(yield* HttpClient.HttpClient)
    const unavailable = (reason: string) => new UpstreamUnavailable({ upstream: options.upstream, reason })
    const broken = (error: HttpClientError.HttpClientError) => unavailable(Wire.reasonOf(error))

    const exchange = Effect.fnUntraced(function* (request: HttpClientRequest.HttpClientRequest) {
      const trace = yield* TraceContext.headers
      const { status, headers, stream } = yield* Effect.mapError(client.execute(HttpClientRequest.setHeaders(request, trace)), broken)
      yield* Effect.annotateCurrentSpan("http.response.status_code", status)
      const pieces: Array<Uint8Array> = []
      let size = 0
      yield* Stream.runForEach(Stream.mapError(stream, broken), (piece) => {
        pieces.push(piece)
        size += piece.byteLength
        return size > options.byteLimit ? Effect.fail(unavailable(`its reply exceeds ${options.byteLimit} bytes`)) : Effect.void
      })
      return { status, headers, bytes: Buffer.concat(pieces, size) }
    })

    return (request) =>
      Spans.around(
        exchange(request).pipe(
          Effect.timeoutOrElse({ duration: options.timeLimit, orElse: () => Effect.fail(unavailable("its reply exceeds the time limit")) }),
          Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
          // Its spans show whole addresses, and what a caller asked may be in them
          Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
          Effect.scoped
        ),
        () => ({
          name: request.method,
          kind: "client",
          attributes: { ...Wire.attributesOf(request), "millrace.upstream": options.upstream }
        })
      )
  })

/** What a reply says, as JSON of that shape. */
export const decoder = <A>(upstream: string, shape: Schema.Decoder<A>): ((reply: Reply) => Effect.Effect<A, UpstreamUnavailable>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(shape))
  return ({ bytes }) =>
    Effect.mapError(decode(new TextDecoder().decode(bytes)), () => new UpstreamUnavailable({ upstream, reason: "its reply is malformed" }))
}
