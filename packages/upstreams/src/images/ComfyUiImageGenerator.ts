/** `ImageGenerator` on a ComfyUI server: a workflow is queued (`/prompt`), asked after (`/history`, `/queue`), and its pictures are fetched (`/view`). */
import { createHash } from "node:crypto"
import { Image, UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Layer, Schema } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import * as ByteService from "../shared/ByteService.ts"
import { below } from "../shared/JsonService.ts"
import * as ComfyWorkflow from "./ComfyWorkflow.ts"
import * as ImageFile from "./ImageFile.ts"
import * as Pictures from "./Pictures.ts"

const UPSTREAM = "comfyui"

/** Of what is said in JSON: histories and queues hold whole workflows. */
const JSON_LIMIT = 16 * 1024 * 1024

/** For one exchange: nothing there waits for a picture to be drawn. */
const EXCHANGE_LIMIT = "30 seconds"

/** For being told to stop. */
const STOP_LIMIT = "5 seconds"

/** As KSampler has it where nothing is said. */
const STRENGTH = 0.75

const PromptReply = Schema.Struct({ prompt_id: Schema.String })

const File = Schema.Struct({ filename: Schema.String, subfolder: Schema.String, type: Schema.String })

const Entry = Schema.Struct({
  outputs: Schema.Record(Schema.String, Schema.Struct({ images: Schema.optionalKey(Schema.Array(File)) })),
  status: Schema.optionalKey(Schema.NullOr(Schema.Struct({ status_str: Schema.String, completed: Schema.Boolean })))
})

const HistoryReply = Schema.Record(Schema.String, Entry)

/** Also one that was stopped is. */
const isFailed = ({ status }: Pick<typeof Entry.Type, "status">): boolean => status?.status_str === "error"

/** Each a tuple whose second is the id. */
const Queued = Schema.Array(Schema.Array(Schema.Unknown))

const QueueReply = Schema.Struct({ queue_running: Queued, queue_pending: Queued })

const UploadReply = Schema.Struct({ name: Schema.String, subfolder: Schema.String })

const has = (queued: typeof Queued.Type, id: string): boolean => queued.some((item) => item[1] === id)

export interface Options {
  /** Such as `http://localhost:8188`. */
  readonly baseUrl: URL
  /** What it is told to do: that of a checkpoint (`ComfyWorkflow.standard`), or one's own. */
  readonly workflow: ComfyWorkflow.Settings | ((scene: ComfyWorkflow.Scene) => ComfyWorkflow.Workflow)
  /** Sent with each request, such as the key of a proxy before it. */
  readonly headers?: Readonly<Record<string, string>>
  /** Between two looks at whether it is drawn; a second unless told. */
  readonly pollInterval?: Duration.Input
  /** For all of it, waiting in its queue included; 5 minutes unless told. */
  readonly timeLimit?: Duration.Input
}

/** The id under which work is queued there: the same for the same work, so that an attempt made again finds what the first began. */
const idOf = (idempotencyKey: string): string => {
  const bytes = createHash("sha256").update(idempotencyKey).digest().subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, "$1-$2-$3-$4-$5")
}

/**
 * It knows no refusals of its own. Work that is interrupted or too late leaves its queue, or is stopped where it is being drawn. Once
 * fetched, it is struck from the history there, which holds the prompt. `UpstreamUnavailable` on any status but 200, on work that
 * failed or got lost there, and on a reply that is malformed, too large or too late.
 */
export const layer = ({
  baseUrl,
  workflow,
  headers = {},
  pollInterval = "1 second",
  timeLimit = "5 minutes"
}: Options): Layer.Layer<Image.ImageGenerator> => {
  const unavailable = (reason: string) => new UpstreamUnavailable({ upstream: UPSTREAM, reason })
  const graphOf = typeof workflow === "function" ? workflow : ComfyWorkflow.standard(workflow)
  const get = (path: string, urlParams: Readonly<Record<string, string>> = {}) =>
    HttpClientRequest.get(below(baseUrl, path), { headers, urlParams })
  const post = (path: string) => HttpClientRequest.post(below(baseUrl, path), { headers })
  const postJson = (path: string, body: unknown) => HttpClientRequest.bodyJsonUnsafe(post(path), body)

  return Layer.effect(
    Image.ImageGenerator,
    Effect.gen(function* () {
      const limited = (timeLimit: Duration.Input, byteLimit: number) =>
        Effect.map(
          ByteService.make({ upstream: UPSTREAM, timeLimit, byteLimit }),
          (ask): ByteService.Ask =>
            (request) =>
              Effect.flatMap(ask(request), (reply) =>
                reply.status === 200 ? Effect.succeed(reply) : Effect.fail(unavailable(`it answered with status ${reply.status}`))
              )
        )
      const ask = yield* limited(EXCHANGE_LIMIT, JSON_LIMIT)
      const fetch = yield* limited(EXCHANGE_LIMIT, ImageFile.MAX_BYTES)
      const tell = yield* limited(STOP_LIMIT, JSON_LIMIT)
      const promptOf = ByteService.decoder(UPSTREAM, PromptReply)
      const historyOf = ByteService.decoder(UPSTREAM, HistoryReply)
      const queueOf = ByteService.decoder(UPSTREAM, QueueReply)
      const uploadOf = ByteService.decoder(UPSTREAM, UploadReply)

      const entryOf = (id: string) =>
        Effect.map(Effect.flatMap(ask(get(`history/${encodeURIComponent(id)}`)), historyOf), (history) => history[id])
      const isQueued = (id: string) =>
        Effect.map(
          Effect.flatMap(ask(get("queue")), queueOf),
          ({ queue_running, queue_pending }) => has(queue_running, id) || has(queue_pending, id)
        )

      const forget = (id: string) => Effect.ignore(tell(postJson("history", { delete: [id] })))

      /** Leaves alone what it draws for others. */
      const stop = Effect.fnUntraced(
        function* (id: string) {
          yield* tell(postJson("queue", { delete: [id] }))
          const { queue_running } = yield* queueOf(yield* tell(get("queue")))
          if (has(queue_running, id)) yield* tell(postJson("interrupt", { prompt_id: id }))
        },
        (telling) => Effect.ignore(telling)
      )

      /** Into the folder that is emptied when it starts, under a name of this work. */
      const upload = Effect.fnUntraced(function* (image: Image.Picture, id: string) {
        const form = new FormData()
        form.append("image", new Blob([Buffer.from(image.bytes)], { type: image.contentType }), `millrace-${id}.png`)
        form.append("type", "temp")
        form.append("overwrite", "true")
        const { name, subfolder } = yield* uploadOf(yield* ask(HttpClientRequest.bodyFormData(post("upload/image"), form)))
        return `${subfolder === "" ? name : `${subfolder}/${name}`} [temp]`
      })

      const submit = Effect.fnUntraced(function* (scene: ComfyWorkflow.Scene, id: string) {
        return (yield* promptOf(yield* ask(postJson("prompt", { prompt: graphOf(scene), prompt_id: id })))).prompt_id
      })

      const drawn = Effect.fnUntraced(function* (id: string) {
        for (;;) {
          // It leaves the queue before it is in the history, or after; but lost is only what is in neither, whatever the order
          const entry = (yield* entryOf(id)) ?? ((yield* isQueued(id)) ? undefined : ((yield* entryOf(id)) ?? "lost"))
          if (entry === "lost") return yield* unavailable("it lost the work")
          if (entry !== undefined) return entry
          yield* Effect.sleep(pollInterval)
        }
      })

      const pictures = Effect.fnUntraced(function* (id: string, samples: number) {
        const { outputs, ...entry } = yield* drawn(id)
        if (isFailed(entry)) {
          yield* forget(id)
          return yield* unavailable("the work failed there")
        }
        const files = Object.values(outputs).flatMap(({ images = [] }) => images)
        const bytes = yield* Effect.forEach(files.slice(0, samples), (file) => Effect.map(fetch(get("view", file)), ({ bytes }) => bytes))
        yield* forget(id)
        return bytes
      })

      /** Whether an attempt before this one got so far. One that failed, or was stopped, must not be taken for this one. */
      const isBegun = Effect.fnUntraced(function* (id: string) {
        const entry = yield* entryOf(id)
        if (entry === undefined) return yield* isQueued(id)
        if (isFailed(entry)) yield* forget(id)
        return !isFailed(entry)
      })

      const begin = Effect.fnUntraced(function* (scene: Omit<ComfyWorkflow.Scene, "image">, id: string, image: Image.Picture | undefined) {
        const shown = image === undefined ? undefined : yield* upload(image, id)
        return yield* Effect.onInterrupt(submit({ ...scene, image: shown }, id), () => stop(id))
      })

      const draw = Effect.fnUntraced(
        function* (idempotencyKey: string, scene: Omit<ComfyWorkflow.Scene, "image" | "seed">, image: Image.Picture | undefined) {
          const own = idOf(idempotencyKey)
          const id = (yield* isBegun(own)) ? own : yield* begin({ ...scene, seed: Pictures.seedOf(idempotencyKey) }, own, image)
          return yield* Effect.onInterrupt(pictures(id, scene.samples), () => stop(id))
        },
        Effect.timeoutOrElse({ duration: timeLimit, orElse: () => Effect.fail(unavailable("it exceeds the time limit")) })
      )

      const generate = Effect.fn("ComfyUiImageGenerator.generate")(function* (request: Image.GenerateRequest) {
        const { prompt, samples } = request
        const size = { width: Pictures.byEight(request.width), height: Pictures.byEight(request.height) }
        const files = yield* draw(request.idempotencyKey, { prompt, samples, strength: 1, ...size }, undefined)
        return yield* Pictures.finish(UPSTREAM, files, request)
      })

      const edit = Effect.fn("ComfyUiImageGenerator.edit")(function* (request: Image.EditRequest) {
        const { image, width, height } = yield* Pictures.begin(request)
        const { prompt, strength = STRENGTH, idempotencyKey } = request
        if (image === undefined) return yield* generate({ prompt, width, height, samples: 1, idempotencyKey })
        const size = { width: Pictures.byEight(width), height: Pictures.byEight(height) }
        const files = yield* draw(idempotencyKey, { prompt, samples: 1, strength, ...size }, image)
        return yield* Pictures.finish(UPSTREAM, files, { width, height, samples: 1 })
      })

      return { configured: Effect.void, generate, edit }
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
}
