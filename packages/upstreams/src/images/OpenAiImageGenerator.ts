/** `ImageGenerator` on OpenAI's images API or a compatible one: `POST {base}/images/generations` and `POST {base}/images/edits`. */
import { Image, UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Layer, type Redacted, Schema } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import * as ByteService from "../shared/ByteService.ts"
import { below } from "../shared/JsonService.ts"
import * as Wire from "../shared/Wire.ts"
import * as Pictures from "./Pictures.ts"

const UPSTREAM = "openai images"

const ImagesReply = Schema.Struct({ data: Schema.Array(Schema.Struct({ b64_json: Schema.String })) })

const ErrorReply = Schema.Struct({
  error: Schema.Struct({ code: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Number]))) })
})

/** OpenAI's and Azure's error codes for a violation of the content policy. */
const REFUSALS: ReadonlySet<unknown> = new Set(["content_policy_violation", "moderation_blocked", "content_filter", "contentFilter"])

/** Sizes of the GPT image models. */
const SIZES: ReadonlyArray<Image.Size> = [
  { width: 1024, height: 1024 },
  { width: 1536, height: 1024 },
  { width: 1024, height: 1536 }
]

export interface Options {
  /** The URL above `/images`, such as `https://api.openai.com/v1`. */
  readonly baseUrl: URL
  readonly apiKey?: Redacted.Redacted
  /** `gpt-image-1` by default. */
  readonly model?: string
  /**
   * The model's sizes, by default those of the GPT image models; `any` for no restriction. The size with the nearest proportions is used.
   */
  readonly sizes?: ReadonlyArray<Image.Size> | "any"
  /** The most images of one call of the model, such as 1 for `dall-e-3`; 4 by default. */
  readonly maxSamples?: number
  /** The time limit of a call of the provider; 3 minutes by default. */
  readonly timeLimit?: Duration.Input
  /** The most bytes of a reply; 96 MiB by default. */
  readonly byteLimit?: number
}

/** The difference in proportions. A size smaller than wanted counts as slightly more different. */
const distance = (wanted: Image.Size, { width, height }: Image.Size): number =>
  Math.abs(Math.log((width / height) * (wanted.height / wanted.width))) + Math.max(0, Math.log(wanted.width / width)) / 100

const nearest = (wanted: Image.Size, sizes: Options["sizes"]): Image.Size =>
  sizes === "any" || sizes === undefined
    ? wanted
    : sizes.reduce((best, size) => (distance(wanted, size) < distance(wanted, best) ? size : best), sizes[0] ?? wanted)

/**
 * The API has no `strength`. `InvalidInput` if the content policy refuses the request. `UpstreamUnavailable` for any other status but 200
 * (isolated for 400, which concerns this request only), and for a reply that is malformed, lacks images, is too large or too late. The
 * idempotency key is sent as `Idempotency-Key`, with the number of the call if there are several.
 */
export const layer = (options: Options): Layer.Layer<Image.ImageGenerator> => {
  const { model = "gpt-image-1", sizes = SIZES, maxSamples = Image.MAX_SAMPLES } = options
  // GPT image models always reply in base64, and refuse this parameter
  const format: Readonly<Record<string, string>> = /^(?:gpt|chatgpt)-image/u.test(model) ? {} : { response_format: "b64_json" }
  const to = (path: string, idempotencyKey: string) =>
    HttpClientRequest.post(below(options.baseUrl, path)).pipe(
      HttpClientRequest.acceptJson,
      HttpClientRequest.setHeader("idempotency-key", idempotencyKey),
      (request) => (options.apiKey === undefined ? request : HttpClientRequest.bearerToken(request, options.apiKey))
    )

  return Layer.effect(
    Image.ImageGenerator,
    Effect.map(asking(options), (ask) => {
      const generated = Effect.fnUntraced(function* ({ prompt, samples, idempotencyKey, ...scene }: Pictures.Scene) {
        const { width, height } = nearest(scene, sizes)
        const files: Array<Uint8Array> = []
        for (let call = 0; files.length < samples; call++) {
          const n = Math.min(maxSamples, samples - files.length)
          const key = call === 0 ? idempotencyKey : `${idempotencyKey}-${call}`
          const body = { model, prompt, n, size: `${width}x${height}`, ...format }
          const drawn = yield* ask(HttpClientRequest.bodyJsonUnsafe(to("images/generations", key), body))
          if (drawn.length === 0) return yield* new UpstreamUnavailable({ upstream: UPSTREAM, reason: "it gave no image" })
          files.push(...drawn)
        }
        return files
      })

      const edited = (image: Image.Picture, { prompt, idempotencyKey, ...scene }: Pictures.Scene) => {
        const { width, height } = nearest(scene, sizes)
        const form = new FormData()
        const fields = { model, prompt, n: "1", size: `${width}x${height}`, ...format }
        for (const [name, value] of Object.entries(fields)) form.append(name, value)
        form.append("image", new Blob([Buffer.from(image.bytes)], { type: image.contentType }), "image.png")
        return ask(HttpClientRequest.bodyFormData(to("images/edits", idempotencyKey), form))
      }

      return Pictures.generator("OpenAiImageGenerator", UPSTREAM, (scene) =>
        scene.image === undefined ? generated(scene) : edited(scene.image, scene)
      )
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
}

/** Sends a request and returns the files, or maps a refusal to an error. */
const asking = ({ timeLimit = "3 minutes", byteLimit = 96 * 1024 * 1024 }: Options) =>
  Effect.gen(function* () {
    const ask = yield* ByteService.make({ upstream: UPSTREAM, timeLimit, byteLimit })
    const imagesOf = ByteService.decoder(UPSTREAM, ImagesReply)
    const errorOf = ByteService.decoder(UPSTREAM, ErrorReply)

    return Effect.fnUntraced(function* (request: HttpClientRequest.HttpClientRequest) {
      const reply = yield* ask(request)
      if (reply.status === 200) {
        const { data } = yield* imagesOf(reply)
        return yield* Pictures.allFromBase64(
          UPSTREAM,
          data.map(({ b64_json }) => b64_json)
        )
      }
      const failed = Wire.unexpected(UPSTREAM, reply.status, reply.status === 400)
      if (reply.status !== 400 && reply.status !== 403) return yield* failed
      const { error } = yield* Effect.mapError(errorOf(reply), () => failed)
      return yield* REFUSALS.has(error.code) ? Pictures.refused : failed
    })
  })
