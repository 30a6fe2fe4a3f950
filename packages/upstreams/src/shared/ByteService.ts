/**
 * An untrusted service over HTTP that answers in bytes: its replies are bounded in bytes and time, redirects are not followed, and the
 * caller decides what a status means. The trace of a call is sent along.
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

export interface Options {
  /** Names the service in errors. */
  readonly upstream: string
  /** For a whole exchange, from the connection to the last byte. */
  readonly timeLimit: Duration.Input
  /** Of the body of a reply. */
  readonly byteLimit: number
}

export const make = (options: Options): Effect.Effect<Ask, never, HttpClient.HttpClient> => makeReading(options, Effect.succeed)

/** As {@link make}; `read` says what a reply means, and its failure is the span's. */
export const makeReading = <A, E>(
  options: Options,
  read: (reply: Reply) => Effect.Effect<A, E>
): Effect.Effect<
  (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<A, E | UpstreamUnavailable>,
  never,
  HttpClient.HttpClient
> =>
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
        Effect.flatMap(exchange(request), read).pipe(
          Effect.timeoutOrElse({ duration: options.timeLimit, orElse: () => Effect.fail(unavailable("its reply exceeds the time limit")) }),
          Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
          // Effect's own spans show whole addresses, which may hold a caller's text
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

/** Decodes a reply as JSON of that shape. `placesOf` tells in the reason where it is malformed. */
export const decoder = <A>(
  upstream: string,
  shape: Schema.Decoder<A>,
  placesOf: (error: Schema.SchemaError) => string = () => ""
): ((reply: Reply) => Effect.Effect<A, UpstreamUnavailable>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(shape))
  return ({ bytes }) =>
    Effect.mapError(
      decode(new TextDecoder().decode(bytes)),
      (error) => new UpstreamUnavailable({ upstream, reason: `its reply is malformed${placesOf(error)}` })
    )
}
