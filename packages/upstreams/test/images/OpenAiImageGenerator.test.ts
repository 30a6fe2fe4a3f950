import { Image, UpstreamUnavailable } from "@millrace/core"
import { OpenAiImageGenerator } from "@millrace/upstreams"
import { Effect, Fiber, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import sharp from "sharp"
import { describe, expect, test } from "vitest"
import { png } from "./Png.ts"
import { type Asked, faults, formOf, hangs, json, jsonOf, serve } from "./VendorService.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const drawing = png(64, 48).toString("base64")

/** A reply in the shape of the published API, with all of its fields. */
const published = (count: number, b64_json = drawing) => ({
  created: 1713833628,
  background: "opaque",
  output_format: "png",
  quality: "high",
  size: "1024x1024",
  data: Array.from({ length: count }, () => ({ b64_json })),
  usage: { total_tokens: 100, input_tokens: 50, output_tokens: 50, input_tokens_details: { text_tokens: 10, image_tokens: 40 } }
})

const refusal = (code: string) => ({
  error: { message: "Your request was rejected as a result of our safety system.", type: "image_generation_user_error", param: null, code }
})

const request: Image.GenerateRequest = { prompt: "a mill", width: 300, height: 256, samples: 1, idempotencyKey: "job_1" }

type Options = Partial<OpenAiImageGenerator.Options>

const using = <A, E>(url: URL, options: Options, body: (images: Image.ImageGenerator["Service"]) => Effect.Effect<A, E>) =>
  Image.ImageGenerator.use(body).pipe(Effect.provide(OpenAiImageGenerator.layer({ baseUrl: new URL("/v1", url), ...options })))

const generate = (url: URL, more: Partial<Image.GenerateRequest> = {}, options: Options = {}) =>
  using(url, options, (images) => images.generate({ ...request, ...more }))

const edit = (url: URL, more: Partial<Image.EditRequest> = {}, options: Options = {}) =>
  using(url, options, (images) => images.edit({ prompt: "a red mill", image: png(400, 300), idempotencyKey: "job_2", ...more }))

/** As many as it was asked for. */
const counting = serve((response, asked) => json(published(Number(jsonOf(asked)["n"])))(response, asked))

describe("an OpenAI-compatible service", () => {
  test("is asked by its API, and returns images of the requested size", () =>
    run(
      Effect.gen(function* () {
        const service = yield* counting
        const pictures = yield* generate(service.url, { samples: 3 }, { apiKey: Redacted.make("sk-secret") })
        expect(pictures.map(({ width, height, contentType }) => [width, height, contentType])).toEqual(
          Array(3).fill([300, 256, "image/png"])
        )
        const metadata = yield* Effect.promise(() => sharp(pictures[0]?.bytes).metadata())
        expect([metadata.format, metadata.width, metadata.height]).toEqual(["png", 300, 256])
        const asked = yield* service.arrivals
        expect(asked).toMatchObject({ method: "POST", path: "/v1/images/generations" })
        expect(asked.headers).toMatchObject({ authorization: "Bearer sk-secret", "idempotency-key": "job_1" })
        expect(jsonOf(asked)).toEqual({ model: "gpt-image-1", prompt: "a mill", n: 3, size: "1024x1024" })
      })
    ))

  test.each([
    [{ width: 2048, height: 1024 }, {}, "1536x1024"],
    [{ width: 256, height: 2048 }, {}, "1024x1536"],
    [{ width: 1000, height: 1001 }, {}, "1024x1024"],
    [{ width: 1000, height: 1001 }, { sizes: "any" }, "1000x1001"],
    [{ width: 300, height: 300 }, { sizes: squares() }, "512x512"],
    [{ width: 256, height: 256 }, { sizes: squares() }, "256x256"],
    [{ width: 2048, height: 2048 }, { sizes: squares() }, "1024x1024"]
  ] as const)("is asked for %j of what it draws %j as %s", (size, options, asked) =>
    run(
      Effect.gen(function* () {
        const service = yield* counting
        expect((yield* generate(service.url, size, options))[0]).toMatchObject(size)
        expect(jsonOf(yield* service.arrivals)).toMatchObject({ size: asked })
      })
    )
  )

  test("is asked several times if it draws one image at a time, each under its own key", () =>
    run(
      Effect.gen(function* () {
        const service = yield* counting
        expect(yield* generate(service.url, { samples: 3 }, { model: "dall-e-3", maxSamples: 1 })).toHaveLength(3)
        expect(service.requests.map(jsonOf)).toEqual(
          Array(3).fill({ model: "dall-e-3", prompt: "a mill", n: 1, size: "1024x1024", response_format: "b64_json" })
        )
        expect(service.requests.map(({ headers }) => headers["idempotency-key"])).toEqual(["job_1", "job_1-1", "job_1-2"])
      })
    ))

  test("edits an image that is sent as a file, encoded again", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published(1)))
        const image = yield* Effect.promise(() =>
          sharp({ create: { width: 400, height: 300, channels: 3, background: "red" } })
            .withExif({ IFD0: { Copyright: "canary" } })
            .jpeg()
            .toBuffer()
        )
        const [picture] = yield* edit(service.url, { image, strength: 0.5 }, { apiKey: Redacted.make("sk-secret") })
        expect(picture).toMatchObject({ width: 400, height: 300, contentType: "image/png" })
        const asked = yield* service.arrivals
        expect(asked).toMatchObject({ method: "POST", path: "/v1/images/edits" })
        expect(asked.headers).toMatchObject({ authorization: "Bearer sk-secret", "idempotency-key": "job_2" })
        expect(asked.body.includes("canary")).toBe(false)
        const form = yield* Effect.promise(() => formOf(asked))
        const file = form.get("image")
        form.delete("image")
        expect(Object.fromEntries(form)).toEqual({ model: "gpt-image-1", prompt: "a red mill", n: "1", size: "1536x1024" })
        if (!(file instanceof Blob)) throw new Error("no file")
        expect(file.type).toBe("image/png")
        const { format, width, height } = yield* Effect.promise(async () => sharp(Buffer.from(await file.arrayBuffer())).metadata())
        expect([format, width, height]).toEqual(["png", 400, 300])
      })
    ))

  test("draws from the prompt alone without an image", () =>
    run(
      Effect.gen(function* () {
        const service = yield* counting
        expect((yield* edit(service.url, { image: undefined }))[0]).toMatchObject({ width: 1024, height: 1024 })
        expect((yield* edit(service.url, { image: undefined, width: 512 }))[0]).toMatchObject({ width: 512, height: 512 })
        expect(service.requests.map(({ path }) => path)).toEqual(Array(2).fill("/v1/images/generations"))
      })
    ))

  test("is not asked with an undecodable image", () =>
    run(
      Effect.gen(function* () {
        const service = yield* counting
        const error = yield* Effect.flip(edit(service.url, { image: Buffer.from("<svg/>") }))
        expect(error).toMatchObject({ _tag: "InvalidInput", field: "image", message: "image is no PNG, JPEG or WebP image" })
        expect(service.requests).toEqual([])
      })
    ))

  test.each([
    [400, refusal("moderation_blocked")],
    [400, refusal("content_policy_violation")],
    [400, { error: { code: "contentFilter", message: "Your task failed as a result of our safety system." } }],
    [403, { error: { code: "content_filter", message: "no" } }]
  ])("that refuses the content with %i %j gives an error in our own words", (status, body) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json(body, status))
        const message = "prompt or image is refused by the content policy of the image provider"
        const refused = { _tag: "InvalidInput", field: "prompt", message }
        expect(yield* Effect.flip(generate(url))).toMatchObject(refused)
        expect(yield* Effect.flip(edit(url))).toMatchObject(refused)
      })
    )
  )

  test.each([
    ...faults(published(1)),
    ["400 for something else", json({ error: { code: "invalid_value", message: "Invalid size a mill" } }, 400)] as const,
    ["400 without a code", json({ error: { message: "a mill", code: null } }, 400)] as const,
    ["400 in HTML", json("<html>", 400)] as const,
    ["403 for the key", json({ error: { code: "unsupported_country_region_territory" } }, 403)] as const,
    ["no images", json(published(0))] as const,
    ["an address instead of an image", json({ created: 1, data: [{ url: "http://127.0.0.1/" }] })] as const,
    ["base64 of text", json(published(1, Buffer.from("hello").toString("base64")))] as const,
    ["half an image", json(published(1, png(400, 400).subarray(0, 100).toString("base64")))] as const
  ])("is unavailable if it answers with %s, and its words reach no log", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const error = yield* Effect.flip(generate(url, {}, { byteLimit: 4 * 1024 * 1024 }))
        expect(error).toBeInstanceOf(UpstreamUnavailable)
        expect(JSON.stringify(error)).not.toContain("a mill")
      })
    )
  )

  test.each([
    ["text", "not base64!"],
    ["a hole", `${drawing.slice(0, 20)} ${drawing.slice(21)}`],
    ["a sign of another alphabet", `${drawing.slice(0, 20)}.${drawing.slice(21)}`],
    ["no end", drawing.slice(0, -3)],
    ["a sign too many", `${drawing}A`],
    ["something behind its end", `${drawing}==${drawing}`],
    ["nothing", ""],
    ["a head alone", "data:image/png;base64,"]
  ])("is unavailable if it gives base64 with %s", (_, text) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json(published(1, text)))
        expect(yield* Effect.flip(generate(url))).toMatchObject({ reason: "an image in its reply is no base64" })
      })
    )
  )

  test("is unavailable for this prompt only if it answers 400", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json({ error: { code: "invalid_value", message: "no" } }, 400))
        expect(yield* Effect.flip(generate(url))).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
        const busy = yield* serve(json({ error: { code: "rate_limit_exceeded", message: "no" } }, 429))
        expect(yield* Effect.flip(generate(busy.url))).not.toHaveProperty("isolated")
      })
    ))

  test("is asked for the rest if it gives fewer images than requested", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published(1)))
        expect(yield* generate(service.url, { samples: 2 })).toHaveLength(2)
        expect(service.requests.map((asked: Asked) => jsonOf(asked)["n"])).toEqual([2, 1])
      })
    ))

  test.each(hangs)("is unavailable if it hangs %s longer than allowed, and the connection is closed", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer)
        const asked = yield* Effect.forkChild(Effect.flip(generate(service.url)), { startImmediately: true })
        yield* service.arrivals
        yield* TestClock.adjust("3 minutes")
        expect(yield* Fiber.join(asked)).toMatchObject({ _tag: "UpstreamUnavailable", reason: "its reply exceeds the time limit" })
        expect(yield* service.left).toBe("/v1/images/generations")
      })
    )
  )

  test.each([
    ["generations", (url: URL) => generate(url)],
    ["edits", (url: URL) => edit(url)]
  ])("is disconnected when the call of its %s is interrupted", (name, call) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(() => undefined)
        const asked = yield* Effect.forkChild(call(service.url), { startImmediately: true })
        yield* service.arrivals
        yield* Fiber.interrupt(asked)
        expect(yield* service.left).toBe(`/v1/images/${name}`)
      })
    )
  )
})

/** As an older model has them. */
function squares(): ReadonlyArray<Image.Size> {
  return [256, 512, 1024].map((side) => ({ width: side, height: side }))
}
