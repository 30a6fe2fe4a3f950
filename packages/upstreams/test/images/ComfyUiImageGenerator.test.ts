import { Image, UpstreamUnavailable } from "@millrace/core"
import { ComfyUiImageGenerator, type ComfyWorkflow } from "@millrace/upstreams"
import { Effect, Fiber, Schema, type Scope } from "effect"
import { TestClock } from "effect/testing"
import sharp from "sharp"
import { describe, expect, test } from "vitest"
import * as ComfyServer from "./ComfyServer.ts"
import { png } from "./Png.ts"
import { type Answer, faults, hangs, json, jsonOf } from "./VendorService.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => Effect.runPromise(Effect.scoped(effect))

/** Where the clock stands still but for the test. */
const timed = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => run(Effect.provide(effect, TestClock.layer()))

const request: Image.GenerateRequest = { prompt: "a mill", width: 300, height: 260, samples: 1, idempotencyKey: "job_1" }

type Options = Partial<ComfyUiImageGenerator.Options>

const using = <A, E>(url: URL, options: Options, body: (images: Image.ImageGenerator["Service"]) => Effect.Effect<A, E>) =>
  Image.ImageGenerator.use(body).pipe(
    Effect.provide(
      ComfyUiImageGenerator.layer({ baseUrl: url, workflow: { checkpoint: "sd.safetensors" }, pollInterval: "5 millis", ...options })
    )
  )

const generate = (url: URL, more: Partial<Image.GenerateRequest> = {}, options: Options = {}) =>
  using(url, options, (images) => images.generate({ ...request, ...more }))

const edit = (url: URL, more: Partial<Image.EditRequest> = {}) =>
  using(url, {}, (images) => images.edit({ prompt: "a red mill", image: png(401, 300), idempotencyKey: "job_2", ...more }))

type Server = Effect.Success<ReturnType<typeof ComfyServer.start>>

/** Waits until it was asked for this. */
const asked = (server: Server, path: string): Effect.Effect<void> =>
  Effect.flatMap(server.arrivals, (request) => (request.path.startsWith(path) ? Effect.void : asked(server, path)))

const Workflow = Schema.Record(
  Schema.String,
  Schema.Struct({ class_type: Schema.String, inputs: Schema.Record(Schema.String, Schema.Unknown) })
)

/** The one workflow that was queued. */
const workflowOf = (server: Server): typeof Workflow.Type => {
  const [queued, ...others] = server.requests.filter(({ path }) => path === "/prompt")
  if (queued === undefined || others.length > 0) throw new Error("not one workflow was queued")
  return Schema.decodeUnknownSync(Workflow)(jsonOf(queued)["prompt"])
}

describe("ComfyUI", () => {
  test("runs a workflow, returns images of the requested size, and keeps none", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start({ draws: [png(64, 48), png(64, 48)] })
        const pictures = yield* generate(server.url, { samples: 2 }, { headers: { "x-key": "secret" } })
        expect(pictures.map(({ width, height, contentType }) => [width, height, contentType])).toEqual(
          Array(2).fill([300, 260, "image/png"])
        )
        const workflow = workflowOf(server)
        expect(workflow["checkpoint"]?.inputs).toEqual({ ckpt_name: "sd.safetensors" })
        expect(workflow["positive"]?.inputs["text"]).toBe("a mill")
        expect(workflow["latent"]).toEqual({ class_type: "EmptyLatentImage", inputs: { width: 304, height: 264, batch_size: 2 } })
        expect(workflow["sampler"]?.inputs).toMatchObject({ denoise: 1, steps: 25, seed: expect.any(Number) })
        // Each link leads to a node that is there
        for (const { inputs } of Object.values(workflow)) {
          for (const input of Object.values(inputs)) if (Array.isArray(input)) expect(workflow).toHaveProperty([input[0]])
        }
        expect(server.requests.every(({ headers }) => headers["x-key"] === "secret")).toBe(true)
        expect(server.history.size).toBe(0)
        expect(server.interrupted).toEqual([])
      })
    ))

  test("edits an image that is uploaded to its temporary folder", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start({ draws: [png(64, 48), png(64, 48)] })
        const [picture] = yield* edit(server.url, { strength: 0.4 })
        expect(picture).toMatchObject({ width: 401, height: 300 })
        const [form] = server.uploads
        const file = form?.get("image")
        if (!(file instanceof File)) throw new Error("no file")
        expect([form?.get("type"), form?.get("overwrite")]).toEqual(["temp", "true"])
        const { format, width, height } = yield* Effect.promise(async () => sharp(Buffer.from(await file.arrayBuffer())).metadata())
        expect([format, width, height]).toEqual(["png", 401, 300])
        const workflow = workflowOf(server)
        expect(workflow["image"]).toEqual({ class_type: "LoadImage", inputs: { image: `${file.name} [temp]` } })
        expect(workflow["sampler"]?.inputs["denoise"]).toBe(0.4)
        expect(workflow["latent"]?.class_type).toBe("VAEEncode")
      })
    ))

  test("draws from the prompt alone without an image", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start({ draws: [png(64, 48), png(64, 48)] })
        expect((yield* edit(server.url, { image: undefined }))[0]).toMatchObject({
          width: 1024,
          height: 1024
        })
        expect(server.uploads).toEqual([])
      })
    ))

  test("runs a custom workflow", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start({ draws: [png(64, 48), png(64, 48)] })
        const workflow = (scene: ComfyWorkflow.Scene) => ({ only: { class_type: "Draw", inputs: { ...scene } } })
        yield* generate(server.url, {}, { workflow })
        expect(workflowOf(server)).toMatchObject({
          only: { inputs: { prompt: "a mill", width: 304, height: 264, samples: 1, strength: 1 } }
        })
      })
    ))

  test("is asked by its own ids if it makes them", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start({ knowsIds: false, draws: [png(64, 48)] })
        expect(yield* generate(server.url)).toHaveLength(1)
      })
    ))

  test("is polled until it has drawn", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start()
        const calling = yield* Effect.forkChild(generate(server.url), { startImmediately: true })
        yield* asked(server, "/prompt")
        for (const step of [() => server.begin(), () => undefined, () => server.finish([png(64, 48)])]) {
          yield* asked(server, "/queue")
          step()
        }
        expect(yield* Fiber.join(calling)).toHaveLength(1)
      })
    ))

  test("continues the work of an earlier attempt that is queued, running or done", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start()
        // It sleeps for so long that it may as well be dead
        const dead = yield* Effect.forkChild(generate(server.url, {}, { pollInterval: "1 hour" }), { startImmediately: true })
        yield* asked(server, "/prompt")
        yield* asked(server, "/queue")
        const second = yield* Effect.forkChild(generate(server.url), { startImmediately: true })
        yield* asked(server, "/queue")
        const id = server.begin() ?? ""
        yield* asked(server, "/queue")
        server.finish([png(64, 48)])
        const done = server.history.get(id)
        expect(yield* Fiber.join(second)).toHaveLength(1)
        server.history.set(id, done)
        expect(yield* generate(server.url)).toHaveLength(1)
        expect(server.requests.filter(({ path }) => path === "/prompt")).toHaveLength(1)
        yield* Fiber.interrupt(dead)
      })
    ))

  test("repeats work that failed or was stopped in an earlier attempt", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start()
        const failing = yield* Effect.forkChild(Effect.flip(generate(server.url)), { startImmediately: true })
        yield* asked(server, "/prompt")
        server.begin()
        server.finish([], "error")
        expect(yield* Fiber.join(failing)).toMatchObject({ reason: "the work failed there" })
        expect(server.history.size).toBe(0)
        const stopped = {
          prompt: [],
          outputs: {},
          status: { status_str: "error", completed: false, messages: [["execution_interrupted", {}]] }
        }
        const queued = server.requests.filter(({ path }) => path === "/prompt").map(jsonOf)
        server.history.set(String(queued[0]?.["prompt_id"]), stopped)
        const again = yield* Effect.forkChild(generate(server.url), { startImmediately: true })
        yield* asked(server, "/prompt")
        // It has looked, and found nothing
        yield* asked(server, "/queue")
        server.begin()
        server.finish([png(64, 48)])
        expect(yield* Fiber.join(again)).toHaveLength(1)
      })
    ))

  test("has nothing in its queue after an interruption before it draws", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start()
        const calling = yield* Effect.forkChild(generate(server.url), { startImmediately: true })
        yield* asked(server, "/prompt")
        yield* asked(server, "/queue")
        expect(server.pending).toHaveLength(1)
        yield* Fiber.interrupt(calling)
        expect(server.pending).toEqual([])
        expect(server.interrupted).toEqual([])
      })
    ))

  test("is told to stop only this work after an interruption while it draws", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start()
        const calling = yield* Effect.forkChild(generate(server.url), { startImmediately: true })
        yield* asked(server, "/prompt")
        const id = server.begin()
        yield* asked(server, "/queue")
        yield* Fiber.interrupt(calling)
        expect(server.interrupted).toEqual([id])
        const other = yield* Effect.forkChild(generate(server.url, { idempotencyKey: "job_3" }), { startImmediately: true })
        yield* asked(server, "/prompt")
        yield* Fiber.interrupt(other)
        expect(server.interrupted).toEqual([id])
        expect(server.running).toHaveLength(1)
      })
    ))

  test("is told to stop after an interruption while the work is submitted", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start({ answers: { "/prompt": () => undefined } })
        const calling = yield* Effect.forkChild(generate(server.url), { startImmediately: true })
        yield* asked(server, "/prompt")
        yield* Fiber.interrupt(calling)
        expect(yield* server.left).toBe("/prompt")
        expect(server.requests.filter(({ method, path }) => method === "POST" && path === "/queue")).toHaveLength(1)
      })
    ))

  test("is told to stop if it takes too long", () =>
    timed(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start()
        const options = { timeLimit: "20 seconds" } as const
        const calling = yield* Effect.forkChild(Effect.flip(generate(server.url, {}, options)), { startImmediately: true })
        yield* asked(server, "/prompt")
        const id = server.begin()
        yield* TestClock.adjust("20 seconds")
        expect(yield* Fiber.join(calling)).toEqual(new UpstreamUnavailable({ upstream: "comfyui", reason: "it exceeds the time limit" }))
        expect(server.interrupted).toEqual([id])
      })
    ))

  test("is unavailable if a restart lost the work", () =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start()
        const calling = yield* Effect.forkChild(Effect.flip(generate(server.url)), { startImmediately: true })
        yield* asked(server, "/prompt")
        yield* asked(server, "/queue")
        server.forget()
        expect(yield* Fiber.join(calling)).toMatchObject({ _tag: "UpstreamUnavailable", reason: "it lost the work" })
      })
    ))

  const rejected = json(
    {
      error: { type: "prompt_outputs_failed_validation", message: "Prompt outputs failed validation", details: "a mill", extra_info: {} },
      node_errors: { checkpoint: { errors: [{ type: "value_not_in_list", message: "Value not in list", details: "ckpt_name: 'a mill'" }] } }
    },
    400
  )

  const done = { outputs: { preview: { images: [{ filename: "a.png", subfolder: "", type: "temp" }] } }, status: null }

  /** What it answers at one place, where all else is well. */
  const wrong: ReadonlyArray<readonly [string, string, Answer]> = [
    ["/prompt", "a workflow that it rejects", rejected],
    ["/view", "a file that is gone", (response) => response.writeHead(404).end()],
    ["/view", "a file that is no image", (response) => response.writeHead(200).end("<html></html>")],
    ["/view", "half an image", (response) => response.writeHead(200).end(png(400, 400).subarray(0, 200))],
    [
      "/history",
      "nothing drawn",
      (response, asked) => json({ [asked.path.slice("/history/".length)]: { outputs: {}, status: null } })(response, asked)
    ],
    ...faults({ prompt_id: "a" }).map(([name, answer]) => ["/prompt", name, answer] as const),
    ...faults({ a: done }).map(([name, answer]) => ["/history", name, answer] as const),
    ...faults({ queue_running: [], queue_pending: [] }).map(([name, answer]) => ["/queue", name, answer] as const),
    ...faults({}).map(([name, answer]) => ["/view", name, answer] as const)
  ]

  test.each(wrong)("is unavailable if it answers at %s with %s, and its words reach no log", (path, _, answer) =>
    run(
      Effect.gen(function* () {
        const server = yield* ComfyServer.start({ draws: [png(64, 48)], answers: { [path]: answer } })
        const error = yield* Effect.flip(generate(server.url))
        expect(error).toBeInstanceOf(UpstreamUnavailable)
        expect(JSON.stringify(error)).not.toContain("a mill")
      })
    )
  )

  test.each(["/upload/image", "/prompt", "/history", "/queue", "/view"])(
    "is unavailable if it hangs at %s longer than allowed, and the connection is closed",
    (path) =>
      timed(
        Effect.gen(function* () {
          for (const [, answer] of hangs) {
            const server = yield* ComfyServer.start({ draws: [png(64, 48)], answers: { [path]: answer } })
            const calling = yield* Effect.forkChild(Effect.flip(edit(server.url)), { startImmediately: true })
            yield* asked(server, path)
            yield* TestClock.adjust("30 seconds")
            expect(yield* Fiber.join(calling)).toMatchObject({ _tag: "UpstreamUnavailable", reason: "its reply exceeds the time limit" })
            expect((yield* server.left).startsWith(path)).toBe(true)
          }
        })
      )
  )
})
