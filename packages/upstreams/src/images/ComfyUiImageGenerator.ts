/** `ImageGenerator` on a ComfyUI server: queues a workflow, polls until it has ended, and fetches its images. */
import { createHash } from "node:crypto"
import { Image, UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import * as ComfyUiServer from "./ComfyUiServer.ts"
import * as ComfyWorkflow from "./ComfyWorkflow.ts"
import * as Pictures from "./Pictures.ts"

const { UPSTREAM } = ComfyUiServer
type Server = ComfyUiServer.ComfyUiServer

/** KSampler's own default. */
const STRENGTH = 0.75

export interface Options extends ComfyUiServer.Options {
  /** Settings of the standard workflow (`ComfyWorkflow.standard`), or a custom workflow. */
  readonly workflow: ComfyWorkflow.Settings | ((scene: ComfyWorkflow.Scene) => ComfyWorkflow.Workflow)
  /** The interval between polls; a second by default. */
  readonly pollInterval?: Duration.Input
  /** The time limit of a call, including the wait in the server's queue; 5 minutes by default. */
  readonly timeLimit?: Duration.Input
}

/**
 * The server has no content policy. Interrupted or late work is removed from its queue, or stopped. Fetched work is removed from the
 * server's history, which holds the prompt. `UpstreamUnavailable` for any status but 200, for work that failed or was lost, and for a reply
 * that is malformed, too large or too late.
 */
export const layer = (options: Options): Layer.Layer<Image.ImageGenerator> =>
  Layer.effect(
    Image.ImageGenerator,
    Effect.map(ComfyUiServer.make(options), (server) => Pictures.generator("ComfyUiImageGenerator", UPSTREAM, drawing(server, options)))
  ).pipe(Layer.provide(FetchHttpClient.layer))

/** Draws a scene and returns the files. Another attempt under the same key continues the work of the first. */
const drawing = (server: Server, { workflow, pollInterval = "1 second", timeLimit = "5 minutes" }: Options) => {
  const workflowOf = typeof workflow === "function" ? workflow : ComfyWorkflow.standard(workflow)

  const begin = Effect.fnUntraced(function* (id: string, { prompt, samples, image, strength = STRENGTH, ...scene }: Pictures.Scene) {
    const graph = workflowOf({
      prompt,
      samples,
      seed: Pictures.seedOf(scene.idempotencyKey),
      strength: image === undefined ? 1 : strength,
      width: Pictures.byEight(scene.width),
      height: Pictures.byEight(scene.height),
      image: image === undefined ? undefined : yield* server.upload(image, id)
    })
    return yield* Effect.onInterrupt(server.submit(id, graph), () => server.stop(id))
  })

  return Effect.fnUntraced(
    function* (scene: Pictures.Scene) {
      const own = idOf(scene.idempotencyKey)
      const id = (yield* isBegun(server, own)) ? own : yield* begin(own, scene)
      return yield* Effect.onInterrupt(filesOf(server, id, scene.samples, pollInterval), () => server.stop(id))
    },
    Effect.timeoutOrElse({ duration: timeLimit, orElse: () => Effect.fail(unavailable("it exceeds the time limit")) })
  )
}

/** Whether an earlier attempt queued the work. Removes failed or stopped work from the history, so that it is queued again. */
const isBegun = Effect.fnUntraced(function* (server: Server, id: string) {
  const entry = yield* server.historyOf(id)
  if (entry === undefined) return yield* server.isQueued(id)
  if (ComfyUiServer.isFailed(entry)) yield* server.forget(id)
  return !ComfyUiServer.isFailed(entry)
})

const filesOf = Effect.fnUntraced(function* (server: Server, id: string, samples: number, pollInterval: Duration.Input) {
  const entry = yield* ended(server, id, pollInterval)
  if (ComfyUiServer.isFailed(entry)) {
    yield* server.forget(id)
    return yield* unavailable("the work failed there")
  }
  const files = Object.values(entry.outputs).flatMap(({ images = [] }) => images)
  const bytes = yield* Effect.forEach(files.slice(0, samples), server.view)
  yield* server.forget(id)
  return bytes
})

const ended = Effect.fnUntraced(function* (server: Server, id: string, pollInterval: Duration.Input) {
  for (;;) {
    // Work may leave the queue before or after it enters the history, so read the history again before the work counts as lost
    const entry = (yield* server.historyOf(id)) ?? ((yield* server.isQueued(id)) ? undefined : ((yield* server.historyOf(id)) ?? "lost"))
    if (entry === "lost") return yield* unavailable("it lost the work")
    if (entry !== undefined) return entry
    yield* Effect.sleep(pollInterval)
  }
})

const unavailable = (reason: string) => new UpstreamUnavailable({ upstream: UPSTREAM, reason })

/** The work's id on the server, a UUID derived from the key, so that another attempt finds the work of the first. */
const idOf = (idempotencyKey: string): string => {
  const bytes = createHash("sha256").update(idempotencyKey).digest().subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, "$1-$2-$3-$4-$5")
}
