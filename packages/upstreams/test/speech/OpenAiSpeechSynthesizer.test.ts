import type { ServerResponse } from "node:http"
import { InvalidInput, Speech, UpstreamUnavailable } from "@millrace/core"
import { OpenAiSpeechSynthesizer } from "@millrace/upstreams"
import { Deferred, Effect, Fiber, Queue, Redacted, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type Answer, json, nobody, serve } from "../shared/LocalService.ts"
import { API_KEY, failure, MODEL, openAi, silence, soundOf, speak } from "./SpeechService.ts"

const TEXT = "Good morning, Ångström 😀"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

type Options = Omit<OpenAiSpeechSynthesizer.Options, "baseUrl">

const provide = (url: URL, options: Options) =>
  Effect.provide(OpenAiSpeechSynthesizer.layer({ baseUrl: new URL("v1", url), apiKey: Redacted.make(API_KEY), ...options }))

const pieces = (url: URL, options: Options = {}, request: Partial<Speech.SpeechRequest> = {}) =>
  Stream.unwrap(
    Speech.SpeechSynthesizer.use(({ synthesize }) =>
      Effect.succeed(synthesize({ accountId: "acc_1", text: TEXT, voice: "nova", idempotencyKey: "job_1", ...request }))
    ).pipe(provide(url, options))
  )

const say = (...args: Parameters<typeof pieces>) => Effect.map(Stream.runCollect(pieces(...args)), (all) => Buffer.concat(all))

/** Sound, after headers of its own, to an end of its own. */
const sound =
  (headers: Readonly<Record<string, string | number>>, finish: (response: ServerResponse) => void): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": "audio/mpeg", ...headers })
    response.write(silence(4), () => finish(response))
  }

const BROKEN: ReadonlyArray<readonly [string, Answer]> = [
  ["401", failure(401, "Incorrect API key provided", { code: "invalid_api_key" })],
  ["403", failure(403, "Country, region, or territory not supported", { code: "unsupported_country_region_territory" })],
  ["404", failure(404, "The model does not exist", { param: "model", code: "model_not_found" })],
  ["500, though with sound", (response) => response.writeHead(500, { "content-type": "audio/mpeg" }).end(silence(4))],
  ["503 without a body", (response) => response.writeHead(503).end()],
  ["201 with sound", (response) => response.writeHead(201, { "content-type": "audio/mpeg" }).end(silence(4))],
  [
    "a redirect, though to sound",
    (response, request) =>
      request.path === "/elsewhere" ? speak(silence(4))(response, request) : response.writeHead(307, { location: "/elsewhere" }).end()
  ],
  ["JSON", json({ audio: silence(4).toString("base64") })],
  ["JSON that calls itself sound", (response) => response.writeHead(200, { "content-type": "audio/mpeg" }).end('{"error":{}}')],
  ["WAV that calls itself MP3", (response) => response.writeHead(200, { "content-type": "audio/mpeg" }).end("RIFF....WAVEfmt ")],
  ["sound without a content type", (response) => response.writeHead(200).end(silence(4))],
  ["sound of another type", (response) => response.writeHead(200, { "content-type": "audio/ogg" }).end(silence(4))],
  ["nothing", (response) => response.writeHead(200, { "content-type": "audio/mpeg", "content-length": 0 }).end()],
  ["half a header", (response) => response.writeHead(200, { "content-type": "audio/mpeg" }).end(silence(1).subarray(0, 6))],
  ["a body cut off before its length", sound({ "content-length": 2_000 }, (response) => response.destroy())],
  ["a body cut off between its chunks", sound({ "transfer-encoding": "chunked" }, (response) => response.destroy())],
  ["a connection closed without a word", (response) => response.destroy()],
  [
    "a body that ends with the connection",
    (response) => {
      response.useChunkedEncodingByDefault = false
      response.writeHead(200, { "content-type": "audio/mpeg", connection: "close" }).end(silence(4))
    }
  ],
  ["too many bytes", speak(silence(500))],
  ["a body without an end", sound({}, (response) => pour(response))]
]

const pour = (response: ServerResponse): void => {
  const more = () => {
    while (!response.destroyed && response.write(silence(10)));
  }
  response.on("drain", more)
  more()
}

describe("an OpenAI-compatible speech service", () => {
  test("is asked by its API, and its audio is returned unchanged", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(openAi)
        expect(yield* say(service.url)).toEqual(soundOf(TEXT))
        const { method, path, headers, body } = yield* service.received
        expect([method, path]).toEqual(["POST", "/v1/audio/speech"])
        expect(headers).toMatchObject({ accept: "audio/mpeg", authorization: `Bearer ${API_KEY}`, "idempotency-key": "job_1" })
        expect(JSON.parse(body)).toEqual({ model: MODEL, input: TEXT, voice: "nova", response_format: "mp3" })
      })
    ))

  test("gets any text whole, with lone surrogates replaced", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(openAi)
        const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 1, maxLength: Speech.MAX_TEXT, size: "max" })
        for (const codes of fc.sample(units, { seed: 1, numRuns: 20 })) {
          const text = String.fromCharCode(...codes)
          expect(yield* say(service.url, {}, { text })).toEqual(soundOf(text))
          expect(JSON.parse((yield* service.received).body).input).toBe(text.toWellFormed())
        }
      })
    ))

  test("is asked by another model and path, and without a key if there is none", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(speak(silence(3)))
        const layer = OpenAiSpeechSynthesizer.layer({ baseUrl: new URL("/tts/v1/", service.url), model: "kokoro" })
        yield* Speech.SpeechSynthesizer.use(({ synthesize }) =>
          Stream.runDrain(synthesize({ accountId: "acc_1", text: TEXT, voice: "af_sky", idempotencyKey: "job_2" }))
        ).pipe(Effect.provide(layer))
        const { path, headers, body } = yield* service.received
        expect(path).toBe("/tts/v1/audio/speech")
        expect(headers).not.toHaveProperty("authorization")
        expect(JSON.parse(body)).toMatchObject({ model: "kokoro", voice: "af_sky" })
      })
    ))

  test("is streamed while it speaks", () =>
    run(
      Effect.gen(function* () {
        const goOn = yield* Deferred.make<void>()
        const service = yield* serve((response) => {
          response.writeHead(200, { "content-type": "audio/mpeg" }).write(silence(2))
          Effect.runFork(Effect.map(Deferred.await(goOn), () => response.end(silence(3))))
        })
        const sizes = yield* Queue.unbounded<number>()
        const fiber = yield* Effect.forkChild(Stream.runForEach(pieces(service.url), ({ length }) => Queue.offer(sizes, length)))
        expect(yield* Queue.take(sizes)).toBe(silence(2).length)
        yield* Deferred.succeed(goOn, undefined)
        yield* Fiber.join(fiber)
        expect(yield* Queue.take(sizes)).toBe(silence(3).length)
      })
    ))

  test("may send its first bytes one by one, with or without a tag", () =>
    run(
      Effect.gen(function* () {
        for (const beginning of [Buffer.alloc(0), Buffer.from("ID3\u0004\0\0\0\0\0\0")]) {
          const whole = Buffer.concat([beginning, silence(2)])
          const service = yield* serve((response) => {
            response.writeHead(200, { "content-type": "Audio/MPEG; charset=binary" })
            const next = (at: number): void => {
              if (at < 12) response.write(whole.subarray(at, at + 1), () => setImmediate(() => next(at + 1)))
              else response.end(whole.subarray(at))
            }
            next(0)
          })
          expect(yield* say(service.url)).toEqual(whole)
        }
      })
    ))

  test.each(BROKEN)("is unavailable if it answers with %s", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const error = yield* Effect.flip(say(url, { byteLimit: 65_536 }))
        expect(error).toBeInstanceOf(UpstreamUnavailable)
        expect(error).not.toHaveProperty("isolated")
        expect(JSON.stringify(error)).not.toMatch(/sk-|Incorrect|Good morning/u)
      })
    )
  )

  test("is unavailable if it cannot be reached", () =>
    run(
      Effect.gen(function* () {
        expect(yield* Effect.flip(say(yield* nobody))).toMatchObject({
          _tag: "UpstreamUnavailable",
          reason: expect.stringMatching(/ECONNREFUSED/u)
        })
      })
    ))

  test("is unavailable if it limits the rate, and its wait is reported", () =>
    run(
      Effect.gen(function* () {
        const answers: ReadonlyArray<readonly [string | undefined, string]> = [
          ["20", "it answered with status 429, and to wait: 20"],
          ["Wed, 21 Oct 2015 07:28:00 GMT", "it answered with status 429, and to wait: Wed, 21 Oct 2015 07:28:00 GMT"],
          ["<script>", "it answered with status 429"],
          [undefined, "it answered with status 429"]
        ]
        for (const [wait, reason] of answers) {
          const { url } = yield* serve((response) =>
            response.writeHead(429, wait === undefined ? {} : { "retry-after": wait }).end('{"error":{"code":"rate_limit_exceeded"}}')
          )
          expect(yield* Effect.flip(say(url))).toMatchObject({ _tag: "UpstreamUnavailable", reason })
        }
      })
    ))

  test.each([
    ["a text too long", failure(400, "String should have at most 4096 characters.", { param: "input" }), "text"],
    ["a text by its policy", failure(400, "Your request was rejected", { code: "content_policy_violation" }), "text"],
    ["a text by Azure's filter", failure(422, "filtered", { code: "content_filter" }), "text"],
    ["a voice", failure(400, "Input should be 'nova'", { param: "voice" }), "voice"]
  ])("that refuses %s gives the caller an error in our own words", (_, answer, field) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const message = field === "text" ? "the provider refuses to speak this text" : 'the provider refuses voice "nova"'
        expect(yield* Effect.flip(say(url))).toEqual(new InvalidInput({ field, message }))
      })
    )
  )

  test.each([
    ["for a reason of its own", failure(400, "Unknown parameter", { param: "response_format" })],
    ["in a shape of its own", json({ detail: [{ loc: ["body", "input"], msg: TEXT }] }, 422)],
    ["without a word", (response: ServerResponse) => response.writeHead(400).end()],
    ["at great length", json({ error: { param: "input", message: "x".repeat(100_000) } }, 400)]
  ])("that refuses %s is unavailable for this text alone", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const error = yield* Effect.flip(say(url))
        expect(error).toMatchObject({
          _tag: "UpstreamUnavailable",
          isolated: true,
          reason: expect.stringMatching(/^it answered with status 4\d\d$/u)
        })
      })
    )
  )

  test.each([
    ["before its headers", () => undefined],
    ["after its headers", (response: ServerResponse) => response.writeHead(200, { "content-type": "audio/mpeg" }).flushHeaders()],
    ["within its sound", sound({}, () => undefined)],
    ["within an error", (response: ServerResponse) => response.writeHead(400).write('{"error":')]
  ])("is unavailable if it hangs %s longer than allowed, and the connection is closed", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer)
        const asked = yield* Effect.forkChild(Effect.flip(say(service.url)), { startImmediately: true })
        yield* service.received
        yield* TestClock.adjust("2 minutes")
        expect(yield* Fiber.join(asked)).toMatchObject({ _tag: "UpstreamUnavailable", reason: "its reply exceeds the time limit" })
        yield* service.abandoned
      })
    )
  )

  test("is disconnected when a text is interrupted, also while it speaks", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(sound({}, () => undefined))
        const heard = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(Stream.runForEach(pieces(service.url), () => Deferred.succeed(heard, undefined)))
        yield* Deferred.await(heard)
        yield* Fiber.interrupt(fiber)
        yield* service.abandoned
      })
    ))

  test("is disconnected by a consumer that takes only the beginning", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(sound({}, () => undefined))
        const [first] = yield* Stream.runCollect(Stream.take(pieces(service.url), 1))
        expect(first?.length).toBe(silence(4).length)
        yield* service.abandoned
      })
    ))
})

describe("the voices", () => {
  const voices = (options: Options) =>
    Effect.runSync(Speech.SpeechSynthesizer.use(({ voices }) => voices).pipe(provide(new URL("http://localhost"), options)))

  test("are the published ones by default, and speak all languages", () =>
    run(
      Effect.gen(function* () {
        const { default_voice, voices: published } = voices({})
        expect(default_voice).toBe("alloy")
        expect(published[0]).toEqual({ id: "alloy", name: "Alloy", language: "mul", gender: null, category: "mul" })
        const service = yield* serve(openAi)
        for (const { id } of published) expect(yield* say(service.url, {}, { voice: id })).toEqual(soundOf(TEXT))
      })
    ))

  test("are those of the model, if given", () => {
    expect(voices({ voices: [{ id: "af_sky", language: "en-US", gender: "female" }, { id: "x" }], defaultVoice: "x" })).toEqual({
      default_voice: "x",
      voices: [
        { id: "af_sky", name: "af_sky", language: "en-US", gender: "female", category: "en" },
        { id: "x", name: "x", language: "mul", gender: null, category: "mul" }
      ]
    })
  })
})
