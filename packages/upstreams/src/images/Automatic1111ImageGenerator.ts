/** `ImageGenerator` on AUTOMATIC1111's web UI (`--api`) or a compatible one: `POST {base}/sdapi/v1/txt2img` and `img2img`. */
import { Image } from "@millrace/core"
import { type Duration, Effect, Layer, Redacted, Schema, Semaphore } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import * as ByteService from "../shared/ByteService.ts"
import { below } from "../shared/JsonService.ts"
import * as Wire from "../shared/Wire.ts"
import * as Pictures from "./Pictures.ts"

const UPSTREAM = "automatic1111"

const ImagesReply = Schema.Struct({ images: Schema.Array(Schema.String) })

const ProgressReply = Schema.Struct({ current_task: Schema.optionalKey(Schema.NullOr(Schema.String)) })

/** The time limit of requests that stop work. */
const STOP_LIMIT = "5 seconds"

export interface Options {
  /** The URL above `/sdapi`, such as `http://localhost:7860`. */
  readonly baseUrl: URL
  /** The value of `--api-auth`. */
  readonly credentials?: { readonly username: string; readonly password: Redacted.Redacted }
  /** Further parameters of a request, such as `steps`, `sampler_name`, `cfg_scale`, `negative_prompt` or `override_settings`. */
  readonly parameters?: Readonly<Record<string, unknown>>
  /** The time limit of a call, from its turn on; 5 minutes by default. */
  readonly timeLimit?: Duration.Input
  /** The most bytes of a reply; 96 MiB by default. */
  readonly byteLimit?: number
}

/**
 * The server draws one call at a time and has no content policy. Calls wait here for their turn, so that an interrupted or late call stops
 * only its own work. The idempotency key determines the task id and the seed. `UpstreamUnavailable` for any status but 200, and for a reply
 * that is malformed, lacks images, is too large or too late.
 */
export const layer = (options: Options): Layer.Layer<Image.ImageGenerator> =>
  Layer.effect(
    Image.ImageGenerator,
    Effect.map(drawing(options), (draw) => Pictures.generator("Automatic1111ImageGenerator", UPSTREAM, draw))
  ).pipe(Layer.provide(FetchHttpClient.layer))

/** Draws with an endpoint such as `txt2img`, one call at a time. Returns the files. */
const drawing = ({ baseUrl, credentials, parameters = {}, timeLimit = "5 minutes", byteLimit = 96 * 1024 * 1024 }: Options) =>
  Effect.gen(function* () {
    const signed = (request: HttpClientRequest.HttpClientRequest) =>
      credentials === undefined ? request : HttpClientRequest.basicAuth(request, credentials.username, Redacted.value(credentials.password))
    const path = (name: string) => below(baseUrl, `sdapi/v1/${name}`)
    const ask = yield* ByteService.make({ upstream: UPSTREAM, timeLimit, byteLimit })
    const tell = yield* ByteService.make({ upstream: UPSTREAM, timeLimit: STOP_LIMIT, byteLimit: 1024 * 1024 })
    const imagesOf = ByteService.decoder(UPSTREAM, ImagesReply)
    const progressOf = ByteService.decoder(UPSTREAM, ProgressReply)
    const turn = yield* Semaphore.make(1)

    /** Interrupts the server only if it draws this task: it may draw for another client. Older servers do not name the task. */
    const stop = Effect.fnUntraced(
      function* (task: string) {
        const progress = HttpClientRequest.get(path("progress"), { urlParams: { skip_current_image: "true" } })
        const { current_task } = yield* progressOf(yield* tell(signed(progress)))
        if (current_task === undefined || current_task === task) yield* tell(signed(HttpClientRequest.post(path("interrupt"))))
      },
      (telling) => Effect.ignore(telling)
    )

    return Effect.fnUntraced(function* (scene: Pictures.Scene) {
      const { prompt, samples, image, strength, idempotencyKey: task } = scene
      const request = HttpClientRequest.post(path(image === undefined ? "txt2img" : "img2img")).pipe(
        HttpClientRequest.acceptJson,
        HttpClientRequest.bodyJsonUnsafe({
          ...parameters,
          prompt,
          n_iter: samples,
          width: Pictures.byEight(scene.width),
          height: Pictures.byEight(scene.height),
          ...(image === undefined ? {} : { init_images: [Buffer.from(image.bytes).toString("base64")] }),
          ...(image === undefined || strength === undefined ? {} : { denoising_strength: strength }),
          seed: Pictures.seedOf(task),
          force_task_id: task,
          batch_size: 1,
          send_images: true,
          save_images: false
        })
      )
      const reply = yield* turn.withPermit(Effect.onError(ask(signed(request)), () => stop(task)))
      if (reply.status !== 200) return yield* Wire.unexpected(UPSTREAM, reply.status)
      return yield* Pictures.allFromBase64(UPSTREAM, (yield* imagesOf(reply)).images)
    })
  })
