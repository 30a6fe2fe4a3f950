/** The HTTP API of a ComfyUI server: queues workflows (`/prompt`), finds them (`/history`, `/queue`), reads images (`/view`). */
import type { Image } from "@millrace/core"
import { type Duration, Effect, Schema } from "effect"
import { HttpClientRequest } from "effect/http"
import * as ByteService from "../shared/ByteService.ts"
import { below } from "../shared/JsonService.ts"
import * as Wire from "../shared/Wire.ts"
import type * as ComfyWorkflow from "./ComfyWorkflow.ts"
import * as ImageFile from "./ImageFile.ts"

export const UPSTREAM = "comfyui"

/** The most bytes of a JSON reply: histories and queues hold whole workflows. */
const JSON_LIMIT = 16 * 1024 * 1024

/** The time limit of an exchange: none waits for an image. */
const EXCHANGE_LIMIT = "30 seconds"

/** The time limit of an exchange that stops or removes work. */
const STOP_LIMIT = "5 seconds"

const PromptReply = Schema.Struct({ prompt_id: Schema.String })

const File = Schema.Struct({ filename: Schema.String, subfolder: Schema.String, type: Schema.String })

/** The history's entry of ended work. */
const HistoryEntry = Schema.Struct({
  outputs: Schema.Record(Schema.String, Schema.Struct({ images: Schema.optionalKey(Schema.Array(File)) })),
  status: Schema.optionalKey(Schema.NullOr(Schema.Struct({ status_str: Schema.String, completed: Schema.Boolean })))
})
export type HistoryEntry = typeof HistoryEntry.Type

/** Whether the work failed or was stopped. */
export const isFailed = ({ status }: HistoryEntry): boolean => status?.status_str === "error"

const HistoryReply = Schema.Record(Schema.String, HistoryEntry)

/** Work in the queue: tuples whose second item is the id. */
const Queued = Schema.Array(Schema.Array(Schema.Unknown))

const QueueReply = Schema.Struct({ queue_running: Queued, queue_pending: Queued })

const has = (queued: typeof Queued.Type, id: string): boolean => queued.some((item) => item[1] === id)

const UploadReply = Schema.Struct({ name: Schema.String, subfolder: Schema.String })

export interface Options {
  /** Such as `http://localhost:8188`. */
  readonly baseUrl: URL
  /** Headers of each request, such as the key for a proxy. */
  readonly headers?: Readonly<Record<string, string>>
}

export type ComfyUiServer = Effect.Success<ReturnType<typeof make>>

/** `UpstreamUnavailable` for any status but 200, and for a reply that is malformed, too large or too late. */
export const make = (options: Options) =>
  Effect.gen(function* () {
    const { get, post, postJson } = requests(options)
    const ask = yield* asking(EXCHANGE_LIMIT, JSON_LIMIT)
    const fetch = yield* asking(EXCHANGE_LIMIT, ImageFile.MAX_BYTES)
    const tell = yield* asking(STOP_LIMIT, JSON_LIMIT)

    const ofPrompt = ByteService.decoder(UPSTREAM, PromptReply)
    const ofHistory = ByteService.decoder(UPSTREAM, HistoryReply)
    const ofQueue = ByteService.decoder(UPSTREAM, QueueReply)
    const ofUpload = ByteService.decoder(UPSTREAM, UploadReply)

    return {
      /** Queues a workflow under an id. Returns the id that the server uses. */
      submit: Effect.fnUntraced(function* (id: string, workflow: ComfyWorkflow.Workflow) {
        return (yield* ofPrompt(yield* ask(postJson("prompt", { prompt: workflow, prompt_id: id })))).prompt_id
      }),
      /** The history's entry of work; undefined while it has not ended, or if the server does not know it. */
      historyOf: Effect.fnUntraced(function* (id: string) {
        return (yield* ofHistory(yield* ask(get(`history/${encodeURIComponent(id)}`))))[id]
      }),
      isQueued: Effect.fnUntraced(function* (id: string) {
        const { queue_running, queue_pending } = yield* ofQueue(yield* ask(get("queue")))
        return has(queue_running, id) || has(queue_pending, id)
      }),
      /** Uploads an image to the folder that the server empties when it starts. Returns its name. */
      upload: Effect.fnUntraced(function* (image: Image.Picture, id: string) {
        const { name, subfolder } = yield* ofUpload(yield* ask(HttpClientRequest.bodyFormData(post("upload/image"), uploadForm(image, id))))
        return `${subfolder === "" ? name : `${subfolder}/${name}`} [temp]`
      }),
      view: (file: typeof File.Type) => Effect.map(fetch(get("view", file)), ({ bytes }) => bytes),
      /** Removes ended work from the history, which holds its prompt. A failure is ignored. */
      forget: (id: string) => Effect.ignore(tell(postJson("history", { delete: [id] }))),
      /** Removes work from the queue, or interrupts it, but no other work. A failure is ignored. */
      stop: Effect.fnUntraced(
        function* (id: string) {
          yield* tell(postJson("queue", { delete: [id] }))
          const { queue_running } = yield* ofQueue(yield* tell(get("queue")))
          if (has(queue_running, id)) yield* tell(postJson("interrupt", { prompt_id: id }))
        },
        (stopping) => Effect.ignore(stopping)
      )
    }
  })

const requests = ({ baseUrl, headers = {} }: Options) => {
  const post = (path: string) => HttpClientRequest.post(below(baseUrl, path), { headers })
  return {
    get: (path: string, urlParams: Readonly<Record<string, string>> = {}) =>
      HttpClientRequest.get(below(baseUrl, path), { headers, urlParams }),
    post,
    postJson: (path: string, body: unknown) => HttpClientRequest.bodyJsonUnsafe(post(path), body)
  }
}

const asking = (timeLimit: Duration.Input, byteLimit: number) =>
  Effect.map(
    ByteService.make({ upstream: UPSTREAM, timeLimit, byteLimit }),
    (ask): ByteService.Ask =>
      (request) =>
        Effect.flatMap(ask(request), (reply) =>
          reply.status === 200 ? Effect.succeed(reply) : Effect.fail(Wire.unexpected(UPSTREAM, reply.status))
        )
  )

const uploadForm = (image: Image.Picture, id: string): FormData => {
  const form = new FormData()
  form.append("image", new Blob([Buffer.from(image.bytes)], { type: image.contentType }), `millrace-${id}.png`)
  form.append("type", "temp")
  form.append("overwrite", "true")
  return form
}
