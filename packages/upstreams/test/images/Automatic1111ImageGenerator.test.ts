import type { ServerResponse } from "node:http"
import { Image, UpstreamUnavailable } from "@millrace/core"
import { Automatic1111ImageGenerator } from "@millrace/upstreams"
import { Effect, Fiber, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import sharp from "sharp"
import { describe, expect, test } from "vitest"
import { png } from "./Png.ts"
import { type Answer, faults, hangs, json, jsonOf, serve } from "./VendorService.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const drawing = png(64, 48).toString("base64")

/** A reply in the shape of the published API. */
const published = (count: number, image = drawing) => ({
  images: Array.from({ length: count }, () => image),
  parameters: { prompt: "a mill", n_iter: count },
  info: '{"prompt": "a mill", "seed": 1}'
})

/** What it says of its progress, in the shape of the published API. */
const progress = (task?: string | null) => ({
  progress: 0.5,
  eta_relative: 3,
  state: { skipped: false, interrupted: false, job: "scripts_txt2img", job_count: 1, job_no: 0, sampling_step: 5, sampling_steps: 20 },
  current_image: null,
  textinfo: null,
  ...(task === undefined ? {} : { current_task: task })
})

const request: Image.GenerateRequest = { prompt: "a mill", width: 300, height: 260, samples: 1, idempotencyKey: "job_1" }

type Options = Partial<Automatic1111ImageGenerator.Options>

const using = <A, E>(url: URL, options: Options, body: (images: Image.ImageGenerator["Service"]) => Effect.Effect<A, E>) =>
  Image.ImageGenerator.use(body).pipe(Effect.provide(Automatic1111ImageGenerator.layer({ baseUrl: url, ...options })))

const generate = (url: URL, more: Partial<Image.GenerateRequest> = {}, options: Options = {}) =>
  using(url, options, (images) => images.generate({ ...request, ...more }))

const edit = (url: URL, more: Partial<Image.EditRequest> = {}) =>
  using(url, {}, (images) => images.edit({ prompt: "a red mill", image: png(401, 300), idempotencyKey: "job_2", ...more }))

/** Answers drawings as told, and is busy with that task. */
const busy = (answer: Answer, task?: string | null) =>
  serve((response, asked) => {
    if (asked.path === "/sdapi/v1/progress") return json(progress(task))(response, asked)
    if (asked.path === "/sdapi/v1/interrupt") return json(null)(response, asked)
    return answer(response, asked)
  })

describe("AUTOMATIC1111", () => {
  test("is asked by its API, and returns images of the requested size", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published(2)))
        const credentials = { username: "me", password: Redacted.make("secret") }
        const options = {
          credentials,
          parameters: { steps: 30, sampler_name: "Euler a", override_settings: { sd_model_checkpoint: "sdxl" } }
        }
        const pictures = yield* generate(service.url, { samples: 2 }, options)
        expect(pictures.map(({ width, height, contentType }) => [width, height, contentType])).toEqual(
          Array(2).fill([300, 260, "image/png"])
        )
        const asked = yield* service.arrivals
        expect(asked).toMatchObject({ method: "POST", path: "/sdapi/v1/txt2img" })
        expect(asked.headers.authorization).toBe(`Basic ${Buffer.from("me:secret").toString("base64")}`)
        expect(jsonOf(asked)).toEqual({
          ...options.parameters,
          prompt: "a mill",
          n_iter: 2,
          batch_size: 1,
          width: 304,
          height: 264,
          seed: expect.any(Number),
          force_task_id: "job_1",
          send_images: true,
          save_images: false
        })
        expect(service.requests).toHaveLength(1)
      })
    ))

  test("draws the same image for the same key, and another for another key", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published(1)))
        for (const idempotencyKey of ["job_1", "job_1", "job_2"]) yield* generate(service.url, { idempotencyKey })
        const [first, again, other] = service.requests.map((asked) => jsonOf(asked)["seed"])
        expect(first).toBe(again)
        expect(first).not.toBe(other)
      })
    ))

  test.each(["data:image/png;base64,", ""])("returns images after %j", (head) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json(published(1, `${head}${drawing}`)))
        expect(yield* generate(url)).toHaveLength(1)
      })
    )
  )

  test("returns JPEG without metadata if it draws JPEG", () =>
    run(
      Effect.gen(function* () {
        const jpeg = yield* Effect.promise(() =>
          sharp(png(64, 48))
            .withExif({ IFD2: { UserComment: "parameters: a mill" } })
            .jpeg()
            .toBuffer()
        )
        const { url } = yield* serve(json(published(1, jpeg.toString("base64"))))
        const [picture] = yield* generate(url)
        expect(picture?.contentType).toBe("image/jpeg")
        expect(Buffer.from(picture?.bytes ?? []).includes("a mill")).toBe(false)
      })
    ))

  test("edits an image in the requested size and strength", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published(1)))
        expect((yield* edit(service.url, { strength: 0.3 }))[0]).toMatchObject({ width: 401, height: 300 })
        const asked = yield* service.arrivals
        expect(asked).toMatchObject({ method: "POST", path: "/sdapi/v1/img2img" })
        const { init_images, ...rest } = jsonOf(asked)
        expect(rest).toMatchObject({
          prompt: "a red mill",
          denoising_strength: 0.3,
          width: 408,
          height: 304,
          n_iter: 1,
          force_task_id: "job_2"
        })
        const sent = Array.isArray(init_images) ? Buffer.from(String(init_images[0]), "base64") : undefined
        expect(yield* Effect.promise(() => sharp(sent).metadata())).toMatchObject({ format: "png", width: 401, height: 300 })
        yield* edit(service.url, { width: 512, height: 256 })
        expect(jsonOf(yield* service.arrivals)).not.toHaveProperty("denoising_strength")
      })
    ))

  test("draws from the prompt alone without an image", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published(1)))
        yield* edit(service.url, { image: undefined })
        expect((yield* service.arrivals).path).toBe("/sdapi/v1/txt2img")
      })
    ))

  test("returns no more images than requested, though an extension adds some", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json(published(3)))
        expect(yield* generate(url, { samples: 2 })).toHaveLength(2)
      })
    ))

  test.each([
    ...faults(published(1)),
    ["no images", json(published(0))] as const,
    ["null for images", json({ images: null, parameters: {}, info: "" })] as const,
    ["base64 that is none", json(published(1, "data:image/png;base64,%%%"))] as const,
    ["an image that is none", json(published(1, Buffer.from("GIF89a").toString("base64")))] as const
  ])("is unavailable if it answers with %s, and its words reach no log", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* busy(answer, null)
        const error = yield* Effect.flip(generate(url, {}, { byteLimit: 4 * 1024 * 1024 }))
        expect(error).toBeInstanceOf(UpstreamUnavailable)
        expect(JSON.stringify(error)).not.toMatch(/a mill|CUDA/u)
      })
    )
  )

  test.each(hangs)("is told to stop if it hangs %s longer than allowed, and the connection is closed", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* busy(answer, "job_1")
        const asked = yield* Effect.forkChild(Effect.flip(generate(service.url)), { startImmediately: true })
        yield* service.arrivals
        yield* TestClock.adjust("5 minutes")
        expect(yield* Fiber.join(asked)).toMatchObject({ _tag: "UpstreamUnavailable", reason: "its reply exceeds the time limit" })
        expect(yield* service.left).toBe("/sdapi/v1/txt2img")
        expect(service.requests.slice(1).map(({ method, path }) => [method, path])).toEqual([
          ["GET", "/sdapi/v1/progress"],
          ["POST", "/sdapi/v1/interrupt"]
        ])
      })
    )
  )

  test.each([
    ["that task", "job_1", ["progress", "interrupt"]],
    ["it does not say what", undefined, ["progress", "interrupt"]],
    ["another task", "job_of_somebody_else", ["progress"]],
    ["nothing", null, ["progress"]]
  ])("is told to stop when a call is interrupted while it draws %s: %j", (_, task, told) =>
    run(
      Effect.gen(function* () {
        const service = yield* busy(() => undefined, task)
        const asked = yield* Effect.forkChild(generate(service.url), { startImmediately: true })
        yield* service.arrivals
        yield* Fiber.interrupt(asked)
        expect(yield* service.left).toBe("/sdapi/v1/txt2img")
        expect(service.requests.slice(1).map(({ path }) => path)).toEqual(told.map((name) => `/sdapi/v1/${name}`))
      })
    )
  )

  test("delays no call for longer than seconds if it ignores a stop", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(() => undefined)
        const asked = yield* Effect.forkChild(generate(service.url), { startImmediately: true })
        yield* service.arrivals
        const ending = yield* Effect.forkChild(Fiber.interrupt(asked), { startImmediately: true })
        expect((yield* service.arrivals).path).toBe("/sdapi/v1/progress")
        yield* TestClock.adjust("5 seconds")
        yield* Fiber.join(ending)
      })
    ))

  test("draws for one call at a time; interrupting a waiting call does not affect it", () =>
    run(
      Effect.gen(function* () {
        const held: Array<ServerResponse> = []
        const service = yield* serve((response) => held.push(response))
        const body = (images: Image.ImageGenerator["Service"]) =>
          Effect.gen(function* () {
            const first = yield* Effect.forkChild(images.generate(request), { startImmediately: true })
            yield* service.arrivals
            const second = yield* Effect.forkChild(images.generate({ ...request, idempotencyKey: "job_2" }), { startImmediately: true })
            const third = yield* Effect.forkChild(images.generate({ ...request, idempotencyKey: "job_3" }), { startImmediately: true })
            yield* Effect.yieldNow
            yield* Fiber.interrupt(second)
            held
              .shift()
              ?.writeHead(200)
              .end(JSON.stringify(published(1)))
            yield* Fiber.join(first)
            expect(jsonOf(yield* service.arrivals)["force_task_id"]).toBe("job_3")
            held
              .shift()
              ?.writeHead(200)
              .end(JSON.stringify(published(1)))
            yield* Fiber.join(third)
          })
        yield* using(service.url, {}, body)
        expect(service.requests).toHaveLength(2)
      })
    ))
})
