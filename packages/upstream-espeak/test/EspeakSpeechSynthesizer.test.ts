import { InvalidInput, Speech, UpstreamUnavailable } from "@millrace/core"
import { EspeakSpeechSynthesizer } from "@millrace/upstream-espeak"
import { Effect, Exit, Fiber, ManagedRuntime, Result, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { afterAll, describe, expect, test } from "vitest"
import { watchThreads } from "../../upstreams/test/shared/Threads.ts"
import { SAMPLE_RATE, speak } from "../src/Engine.ts"
import { spokenTextOf } from "../src/SpokenText.ts"
import { VOICES } from "../src/Voices.ts"
import { framesOf, SAMPLES_PER_FRAME } from "./Mp3.ts"

const say = (text: string, voice = "en-us") =>
  Speech.SpeechSynthesizer.use(({ synthesize }) =>
    Stream.runCollect(synthesize({ accountId: "acc_1", text, voice, idempotencyKey: "job_1" }))
  ).pipe(Effect.map((pieces) => Buffer.concat(pieces)))

const samplesOf = async (text: string, file: string): Promise<number> => {
  let samples = 0
  const onSamples = ({ length }: Float32Array) => {
    samples += length
  }
  await speak({ voice: file, text: spokenTextOf(text), sampleLimit: Number.POSITIVE_INFINITY, onSamples })
  return samples
}

const refusal = (message: string) => Result.fail(new InvalidInput({ field: "text", message }))
const NOTHING = refusal("there is nothing in the text to speak")

const SENTENCE = "The quick brown fox jumps over the lazy dog. "

describe("espeak-ng", () => {
  const runtime = ManagedRuntime.make(EspeakSpeechSynthesizer.layer())
  afterAll(() => runtime.dispose())

  test("speaks MP3 frame by frame, of the expected length, without silence at its end", async () => {
    const mp3 = await runtime.runPromise(say(SENTENCE.repeat(3)))
    const frames = framesOf(mp3)
    for (const { bitRate, sampleRate } of frames) expect([bitRate, sampleRate]).toEqual([48_000, SAMPLE_RATE])
    const samples = await samplesOf(SENTENCE.repeat(3), "gmw/en-US")
    expect(samples / SAMPLE_RATE).toBeGreaterThan(5)
    expect(samples / SAMPLE_RATE).toBeLessThan(15)
    // What encoder and decoder keep back, and the rest of the last frame
    expect(frames.length * SAMPLES_PER_FRAME).toBeGreaterThanOrEqual(samples)
    expect(frames.length * SAMPLES_PER_FRAME - samples).toBeLessThan(4 * SAMPLES_PER_FRAME)
    expect(frames.filter(({ soundBits }) => soundBits > 100).length / frames.length).toBeGreaterThan(0.8)
  })

  test("gives equal bytes for equal texts, and other bytes for other texts", async () => {
    const first = await runtime.runPromise(say("Hello, world."))
    const other = await runtime.runPromise(say("Good night.", "de"))
    expect(await runtime.runPromise(say("Hello, world."))).toEqual(first)
    expect(other).not.toEqual(first)
    expect(await runtime.runPromise(say("Hello, world.", "en-us+f3"))).not.toEqual(first)
  })

  test("gives a long text in pieces", async () => {
    const text = SENTENCE.repeat(50).slice(0, Speech.MAX_TEXT)
    const speech = Speech.SpeechSynthesizer.use(({ synthesize }) =>
      Stream.runCollect(synthesize({ accountId: "acc_1", text, voice: "en-gb", idempotencyKey: "job_1" }))
    )
    const pieces = await runtime.runPromise(speech)
    expect(pieces.length).toBeGreaterThan(5)
    expect(framesOf(Buffer.concat(pieces)).length * SAMPLES_PER_FRAME).toBeGreaterThan(90 * SAMPLE_RATE)
  })

  test("speaks any text or refuses it as silent, and continues to work", async () => {
    const text = fc.oneof(
      fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 }),
      fc.string({ unit: "binary", minLength: 1, maxLength: 30 }),
      fc.string({
        unit: fc.constantFrom("[", "[[", "]]", "<", ">", "&", "-", "\u0001", "5", "\ud800", "\n", "é", "中", "😀"),
        maxLength: 40
      })
    )
    await fc.assert(
      fc.asyncProperty(text, fc.constantFrom(...VOICES), async (text, { id }) => {
        const result = await runtime.runPromise(Effect.result(say(text, id)))
        if (Result.isFailure(result)) expect(result).toEqual(NOTHING)
        else expect(framesOf(result.success).length).toBeGreaterThan(0)
      }),
      { seed: Number(process.env["MILLRACE_SEED"] ?? 1), numRuns: 30 }
    )
  })

  test.each(["", "   ", "\n\n", "...", "\u200b", "\u0000\u0001"])("refuses %j, which has nothing to speak", async (text) => {
    expect(await runtime.runPromise(Effect.result(say(text)))).toEqual(NOTHING)
  })

  test("does not interpret markup, phonemes or commands in a text", async () => {
    const [plain, markup] = await Promise.all([
      runtime.runPromise(say("hello")),
      runtime.runPromise(say('<prosody rate="x-slow">hello</prosody>'))
    ])
    expect(markup.length).toBeGreaterThan(2 * plain.length)
    const [spelled, phonemes] = await Promise.all([runtime.runPromise(say("[ [a]]")), runtime.runPromise(say("[[a]]"))])
    expect(phonemes).toEqual(spelled)
    expect(await runtime.runPromise(say("\u0001100S hello"))).toEqual(await runtime.runPromise(say(" 100S hello")))
  })

  test("lists its voices, and refuses others", async () => {
    const { default_voice, voices } = await runtime.runPromise(Speech.SpeechSynthesizer.use(({ voices }) => voices))
    expect(voices.length).toBe(VOICES.length)
    for (const voice of voices) expect(Object.keys(voice)).toEqual(["id", "name", "language", "gender", "category"])
    expect(voices.find(({ id }) => id === default_voice)).toMatchObject({ language: "en-US" })
    const unknown = new InvalidInput({ field: "voice", message: 'voice "../etc" is unknown' })
    expect(await runtime.runPromise(Effect.result(say("Hi", "../etc")))).toEqual(Result.fail(unknown))
    const message = 'voice "en-uk" is unknown; close to it: en-gb, en-us, en-029, en-gb+f3, en-us+f3'
    expect(await runtime.runPromise(Effect.result(Speech.voiceOf("en-uk")))).toEqual(
      Result.fail(new InvalidInput({ field: "voice", message }))
    )
  })
})

describe("the thread", () => {
  const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
    Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

  const unavailable = (reason: string) => Result.fail(new UpstreamUnavailable({ upstream: "espeak-ng", reason, isolated: true }))

  /** Takes seconds to speak. */
  const LONG = "中 ".repeat(1_000)

  test("starts with the first text, ends when idle, and ends with the scope", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        yield* Effect.gen(function* () {
          yield* Speech.SpeechSynthesizer.use(({ voices }) => voices)
          expect(threads.started.length).toBe(0)
          yield* say("Hi")
          yield* say("Hi")
          expect(threads.started.length).toBe(1)
          yield* TestClock.adjust("1 minute")
          yield* threads.nextEnd
          yield* say("Hi")
          expect(threads.started.length).toBe(2)
        }).pipe(Effect.provide(EspeakSpeechSynthesizer.layer()), Effect.scoped)
        expect(threads.ended.length).toBe(2)
      })
    ))

  test("is replaced after a text is interrupted", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        yield* say("Hi")
        const fiber = yield* Effect.forkChild(say(LONG), { startImmediately: true })
        yield* Fiber.interrupt(fiber)
        expect(threads.ended.length).toBe(1)
        expect(framesOf(yield* say("Hi")).length).toBeGreaterThan(0)
        expect(threads.started.length).toBe(2)
      }).pipe(Effect.provide(EspeakSpeechSynthesizer.layer()))
    ))

  test("is replaced after a text exceeds the time limit", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        yield* say("Hi")
        const fiber = yield* Effect.forkChild(Effect.result(say(LONG)), { startImmediately: true })
        yield* TestClock.adjust("5 seconds")
        expect(yield* Fiber.join(fiber)).toEqual(unavailable("the worker thread exceeded its time limit"))
        expect(threads.ended.length).toBe(1)
        expect(framesOf(yield* say("Hi")).length).toBeGreaterThan(0)
      }).pipe(Effect.provide(EspeakSpeechSynthesizer.layer({ timeLimit: "5 seconds" })))
    ))

  test("refuses texts while its queue is full", () =>
    run(
      Effect.gen(function* () {
        const texts = ["one", "two", "three"]
        const fibers = yield* Effect.forEach(texts, (text) => Effect.forkChild(Effect.exit(say(text)), { startImmediately: true }))
        const exits = yield* Effect.forEach(fibers, Fiber.join)
        expect(exits.map(Exit.isSuccess)).toEqual([true, true, false])
        expect(yield* Effect.result(say("four"))).toMatchObject({ _tag: "Success" })
      }).pipe(Effect.provide(EspeakSpeechSynthesizer.layer({ queueLimit: 2 })))
    ))

  test("refuses a text whose audio exceeds the limit", () =>
    run(
      Effect.gen(function* () {
        expect(yield* Effect.result(say(SENTENCE.repeat(9)))).toEqual(refusal("the text takes longer than 10s to say"))
        expect(framesOf(yield* say(SENTENCE)).length).toBeGreaterThan(0)
      }).pipe(Effect.provide(EspeakSpeechSynthesizer.layer({ durationLimit: "10 seconds" })))
    ))
})
