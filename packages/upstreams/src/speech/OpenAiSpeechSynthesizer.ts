/** `SpeechSynthesizer` on OpenAI's speech API or a compatible one: `POST {base}/audio/speech`. */
import { InvalidInput, MEDIA_TYPE_BYTES, mediaTypeOf, Speech, UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Layer, type Redacted, Result, Schema, Stream } from "effect"
import { FetchHttpClient, HttpClient, type HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { below } from "../shared/JsonService.ts"
import * as Wire from "../shared/Wire.ts"

const UPSTREAM = "openai speech"

/** The fields of an error that are used. For a malformed error, only the status counts. */
const ErrorReply = Schema.Struct({
  error: Schema.Struct({
    code: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite]))),
    param: Schema.optionalKey(Schema.NullOr(Schema.String))
  })
})

/** OpenAI's and Azure's error codes for a violation of the content policy. */
const REFUSALS: ReadonlySet<unknown> = new Set(["content_policy_violation", "moderation_blocked", "content_filter", "contentFilter"])

/** The most UTF-16 code units to read of an error's body. */
const ERROR_LENGTH = 64 * 1024

const MEDIA_TYPES: ReadonlySet<string> = new Set([Speech.CONTENT_TYPE, "audio/mp3"])

export interface Options {
  /** The URL above `/audio/speech`, such as `https://api.openai.com/v1`. */
  readonly baseUrl: URL
  readonly apiKey?: Redacted.Redacted
  /** `gpt-4o-mini-tts` by default. */
  readonly model?: string
  /** The voices of the model, by default those that OpenAI publishes. A voice without a language speaks all languages. */
  readonly voices?: ReadonlyArray<Pick<Speech.Voice, "id"> & Partial<Speech.Voice>>
  /** The voice for calls that name none; the first one by default. */
  readonly defaultVoice?: string
  /** The time limit from the connection to the last byte, even if the consumer is slow; 2 minutes by default. */
  readonly timeLimit?: Duration.Input
  /** The most bytes of the audio; 32 MiB by default. */
  readonly byteLimit?: number
}

/** The voices of `gpt-4o-mini-tts`. Older models lack some of them. */
const PUBLISHED = ["alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse"]

const capitalised = (id: string): string => id.slice(0, 1).toUpperCase() + id.slice(1)

const voiceListOf = ({ voices = PUBLISHED.map((id) => ({ id, name: capitalised(id) })), defaultVoice }: Options): Speech.VoiceList => {
  const list = voices.map(({ id, name = id, language = "mul", gender = null, category }): Speech.Voice => {
    const [subtag = language] = language.toLowerCase().split("-", 1)
    return { id, name, language, gender, category: category ?? subtag }
  })
  return { default_voice: defaultVoice ?? list[0]?.id ?? "", voices: list }
}

const unavailable = (reason: string) => new UpstreamUnavailable({ upstream: UPSTREAM, reason })

const broken = (error: HttpClientError.HttpClientError) => unavailable(Wire.reasonOf(error))

/**
 * Streams the audio as it arrives. `InvalidInput` if the provider refuses the text or the voice. `UpstreamUnavailable` for any other status
 * but 200 (isolated for 400 and 422, which concern this text only), and for a reply that is not MP3, is truncated, or exceeds its limits.
 * The idempotency key is sent as `Idempotency-Key`.
 */
export const layer = (options: Options): Layer.Layer<Speech.SpeechSynthesizer> => {
  const { baseUrl, apiKey, model = "gpt-4o-mini-tts", timeLimit = "2 minutes", byteLimit = 32 * 1024 * 1024 } = options
  const voices = Effect.succeed(voiceListOf(options))
  const late = Effect.andThen(Effect.sleep(timeLimit), Effect.fail(unavailable("its reply exceeds the time limit")))

  const requestOf = ({ text, voice, idempotencyKey }: Speech.SpeechRequest) =>
    HttpClientRequest.post(below(baseUrl, "audio/speech")).pipe(
      HttpClientRequest.accept(Speech.CONTENT_TYPE),
      HttpClientRequest.setHeader("idempotency-key", idempotencyKey),
      HttpClientRequest.bodyJsonUnsafe({ model, input: text.toWellFormed(), voice, response_format: "mp3" }),
      (request) => (apiKey === undefined ? request : HttpClientRequest.bearerToken(request, apiKey))
    )

  return Layer.effect(
    Speech.SpeechSynthesizer,
    Effect.gen(function* () {
      const client = yield* HttpClient.HttpClient

      const speak = Effect.fn("OpenAiSpeechSynthesizer.synthesize")(function* (request: Speech.SpeechRequest) {
        const sent = requestOf(request)
        const response = yield* Wire.traced(UPSTREAM, sent, Effect.mapError(Wire.send(client, sent), broken))
        if (response.status !== 200) return yield* refusalOf(response, request.voice)
        if (!MEDIA_TYPES.has(mediaTypeIn(response.headers["content-type"]))) return yield* NO_MP3
        if (mayEndAnywhere(response.headers)) return yield* unavailable("its reply does not say where it ends")
        return mp3Of(bodyOf(response), byteLimit)
      })

      return {
        voices,
        synthesize: (request) => Stream.interruptWhen(Stream.unwrap(speak(request)), late)
      }
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
}

/** The audio. Fails if it does not begin like MP3, or exceeds the limit. */
const mp3Of = (body: Stream.Stream<Uint8Array, UpstreamUnavailable>, byteLimit: number) =>
  Stream.suspend(() => {
    let size = 0
    let head: Uint8Array = new Uint8Array()
    let isMp3 = false
    const judge = (piece: Uint8Array): Result.Result<Uint8Array, UpstreamUnavailable> => {
      size += piece.length
      if (size > byteLimit) return Result.fail(unavailable(`its reply exceeds ${byteLimit} bytes`))
      if (isMp3) return Result.succeed(piece)
      head = Buffer.concat([head, piece])
      if (head.length < MEDIA_TYPE_BYTES) return Result.succeed(new Uint8Array())
      isMp3 = mediaTypeOf(head) === Speech.CONTENT_TYPE
      return isMp3 ? Result.succeed(head) : Result.fail(NO_MP3)
    }
    const end = Stream.suspend(() => (isMp3 ? Stream.empty : Stream.fail(NO_MP3)))
    return Stream.mapEffect(body, (piece) => Effect.fromResult(judge(piece))).pipe(
      Stream.filter((piece) => piece.length > 0),
      Stream.concat(end)
    )
  })

const NO_MP3 = unavailable("its reply is no MP3")

const mediaTypeIn = (contentType = ""): string => contentType.split(";", 1).join("").trim().toLowerCase()

/** Without a length or chunks, a body ends with the connection, so a truncated one looks complete (RFC 9112, 6.3). */
const mayEndAnywhere = (headers: Readonly<Record<string, string | undefined>>): boolean =>
  headers["connection"]?.toLowerCase() === "close" && headers["content-length"] === undefined && headers["transfer-encoding"] === undefined

const bodyOf = ({ stream }: HttpClientResponse.HttpClientResponse): Stream.Stream<Uint8Array, UpstreamUnavailable> =>
  Stream.mapError(stream, broken)

const decodeError = Schema.decodeUnknownEffect(Schema.fromJsonString(ErrorReply))

/** Maps a reply with a status other than 200 to an error. */
const refusalOf = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse, voice: string) {
  const { status, headers } = response
  if (status === 429) return yield* unavailable(`it answered with status 429${waitIn(headers["retry-after"])}`)
  if (status !== 400 && status !== 422) return yield* Wire.unexpected(UPSTREAM, status)
  const failed = Wire.unexpected(UPSTREAM, status, true)
  const { error } = yield* bodyText(response).pipe(
    Effect.flatMap(decodeError),
    Effect.mapError(() => failed)
  )
  if (error.param === "input" || REFUSALS.has(error.code))
    return yield* new InvalidInput({ field: "text", message: "the provider refuses to speak this text" })
  if (error.param === "voice")
    return yield* new InvalidInput({ field: "voice", message: `the provider refuses voice ${JSON.stringify(voice)}` })
  return yield* failed
})

const bodyText = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse) {
  const decoder = new TextDecoder()
  let text = ""
  yield* Stream.runForEachWhile(bodyOf(response), (piece) => {
    text += decoder.decode(piece, { stream: true })
    return Effect.succeed(text.length <= ERROR_LENGTH)
  })
  return text.length <= ERROR_LENGTH ? text : ""
})

/** Describes the header `Retry-After`: seconds or a date. */
const waitIn = (retryAfter: string | undefined): string =>
  retryAfter !== undefined && /^[\w ,:]{1,40}$/u.test(retryAfter) ? `, and to wait: ${retryAfter}` : ""
