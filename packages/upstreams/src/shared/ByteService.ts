/** A client of an untrusted HTTP service, with limits of bytes and time. The caller interprets the status. */
import { UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Schema, Stream } from "effect"
import { HttpClient, type HttpClientError, type HttpClientRequest } from "effect/http"
import * as Wire from "./Wire.ts"

export interface Reply {
  readonly status: number
  /** Headers, with names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Uint8Array
}

/** Sends a request. The reason of `UpstreamUnavailable` never quotes a reply or a URL, which may contain a caller's text. */
export type Ask = (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<Reply, UpstreamUnavailable>

export interface Options {
  /** The service's name in errors. */
  readonly upstream: string
  /** The time limit of an exchange, from the connection to the last byte. */
  readonly timeLimit: Duration.Input
  /** The most bytes of a reply's body. */
  readonly byteLimit: number
}

const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])

export const make = (options: Options): Effect.Effect<Ask, never, HttpClient.HttpClient> => makeReading(options, Effect.succeed)

/** {@link make} with `read`, which interprets a reply. A failure of `read` is also the span's. */
export const makeReading = <A, E>(options: Options, read: (reply: Reply) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const unavailable = (reason: string) => new UpstreamUnavailable({ upstream: options.upstream, reason })
    const invalid = (reason: string) => new UpstreamUnavailable({ upstream: options.upstream, reason, invalidReply: true })
    const broken = (error: HttpClientError.HttpClientError) => unavailable(Wire.reasonOf(error))

    const exchange = Effect.fnUntraced(function* (request: HttpClientRequest.HttpClientRequest) {
      const response = yield* Effect.mapError(Wire.send(client, request), broken)
      const { status, headers } = response
      // Their `stream` is an error, as they have no body
      const stream = BODILESS.has(status) ? Stream.empty : response.stream
      const pieces: Array<Uint8Array> = []
      let size = 0
      yield* Stream.runForEach(Stream.mapError(stream, broken), (piece) => {
        pieces.push(piece)
        size += piece.byteLength
        return size > options.byteLimit ? Effect.fail(invalid(`its reply exceeds ${options.byteLimit} bytes`)) : Effect.void
      })
      return { status, headers, bytes: Buffer.concat(pieces, size) }
    })

    return (request: HttpClientRequest.HttpClientRequest) =>
      Wire.traced(
        options.upstream,
        request,
        Effect.flatMap(exchange(request), read).pipe(
          Effect.timeoutOrElse({ duration: options.timeLimit, orElse: () => Effect.fail(unavailable("its reply exceeds the time limit")) }),
          Effect.scoped
        )
      )
  })

/** Decodes a reply as JSON. The reason of a failure names the malformed places, by `placesOf`. */
export const decoder = <A>(
  upstream: string,
  shape: Schema.Decoder<A>,
  placesOf: (error: Schema.SchemaError) => string = () => ""
): ((reply: Reply) => Effect.Effect<A, UpstreamUnavailable>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(shape))
  return ({ bytes }) =>
    Effect.mapError(
      decode(new TextDecoder().decode(bytes)),
      (error) => new UpstreamUnavailable({ upstream, reason: `its reply is malformed${placesOf(error)}`, invalidReply: true })
    )
}
