import { Effect, Exit, Result, Schema, Stream } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Speech from "../../src/operations/Speech.ts"
import { InvalidInput, UpstreamNotConfigured } from "../../src/work/OperationError.ts"
import { check } from "../vault/Property.ts"

const CALLER = { accountId: "acc_1", requestId: "req_1", reservationId: "res_1" }

const voice = (id: string, name: string, language: string, gender: Speech.Voice["gender"] = null): Speech.Voice => ({
  id,
  name,
  language,
  gender,
  category: language.slice(0, 2)
})

const VOICES: ReadonlyArray<Speech.Voice> = [
  voice("de", "German", "de", "male"),
  voice("en-gb", "English (Great Britain)", "en-GB"),
  voice("en-us", "English (America)", "en-US"),
  voice("en-us+f3", "English (America), female", "en-US", "female"),
  voice("eo", "Esperanto", "eo"),
  voice("es", "Spanish (Spain)", "es"),
  voice("Nova", "Nova", "mul"),
  voice("nova", "Another Nova", "mul"),
  voice("shimmer", "Shimmer", "mul")
]

const provide = Effect.provideService(Speech.SpeechSynthesizer, {
  voices: Effect.succeed({ default_voice: "en-us", voices: VOICES }),
  synthesize: () => Stream.empty
})

const resolve = (id: string | undefined) => Effect.runSync(Effect.result(provide(Speech.voiceOf(id))))
const close = (wanted: string) => Speech.closest(wanted, VOICES).map(({ id }) => id)

/** The whole table of Wagner and Fischer. */
const editsOf = (a: string, b: string): number => {
  const cells = Array.from({ length: a.length + 1 }, (_, i) => Array.from({ length: b.length + 1 }, (_, j) => i + j))
  const at = (i: number, j: number) => cells[i]?.[j] ?? Number.POSITIVE_INFINITY
  cells.slice(1).forEach((row, i) => {
    for (let j = 0; j < b.length; j++) row[j + 1] = Math.min(at(i, j) + (a[i] === b[j] ? 0 : 1), at(i, j + 1) + 1, at(i + 1, j) + 1)
  })
  return at(a.length, b.length)
}

describe("a voice", () => {
  test("is found by its id in any case; without an id it is the default", () => {
    for (const { id } of VOICES) expect(resolve(id)).toMatchObject(Result.succeed({ id }))
    expect(resolve("EN-gb")).toEqual(Result.succeed(VOICES[1]))
    expect(resolve("NOVA")).toEqual(Result.succeed(VOICES[6]))
    expect(resolve(undefined)).toEqual(Result.succeed(VOICES[2]))
  })

  test("that is unknown is refused with similar voices", () => {
    const refusal = (message: string) => Result.fail(new InvalidInput({ field: "voice", message }))
    expect(resolve("en-uk")).toEqual(refusal('voice "en-uk" is unknown; close to it: en-gb, en-us, en-us+f3'))
    expect(resolve("zzz")).toEqual(refusal('voice "zzz" is unknown; GET /audio/voices lists all'))
  })

  test("is suggested for its language, the beginning of its name, and a mistyped id", () => {
    expect(close("en")).toEqual(["en-gb", "en-us", "en-us+f3", "eo", "es"])
    expect(close("EN_au")).toEqual(["en-gb", "en-us", "en-us+f3"])
    expect(close("de-AT")).toEqual(["de"])
    expect(close("german")).toEqual(["de"])
    expect(close("englis")).toEqual(["en-gb", "en-us", "en-us+f3"])
    expect(close("shimer")).toEqual(["shimmer"])
    expect(close("en-us+m3")).toEqual(["en-us+f3", "en-us", "en-gb"])
    expect(close("")).toEqual([])
  })

  test("is always suggested for an id with one wrong letter, among at most five", () => {
    const wanted = fc.constantFrom(...VOICES).chain(({ id }) =>
      fc.record({ id: fc.constant(id), at: fc.nat(id.length - 1), letter: fc.constantFrom("", "q") }).map(({ id, at, letter }) => ({
        id,
        typed: id.slice(0, at) + letter + id.slice(at + 1)
      }))
    )
    check(
      fc.property(wanted, ({ id, typed }) => {
        const found = close(typed)
        expect(found.length).toBeLessThanOrEqual(5)
        if (id.length > 2) expect(found).toContain(id)
      })
    )
  })
})

describe("the edits between two strings", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "-"), maxLength: 12 })

  test("equal those of the whole table, up to the limit", () =>
    check(
      fc.property(word, word, fc.nat(5), (a, b, limit) => {
        expect(Speech.editsBetween(a, b, limit)).toBe(Math.min(editsOf(a, b), limit + 1))
      }),
      500
    ))

  test("are symmetric", () =>
    check(
      fc.property(fc.string({ maxLength: 50 }), fc.string({ maxLength: 50 }), fc.nat(3), (a, b, limit) => {
        expect(Speech.editsBetween(a, b, limit)).toBe(Speech.editsBetween(b, a, limit))
        expect(Speech.editsBetween(a, a, limit)).toBe(0)
      })
    ))
})

describe("speech.voices", () => {
  const list = (category?: string) =>
    Effect.runSync(provide(Speech.voices.run(category === undefined ? {} : { category }, CALLER))).data.voices.map(({ id }) => id)

  test("is free, and its example matches its schema", () => {
    expect(Speech.voices.price).toBe(0)
    expect(Schema.is(Speech.voices.success)(Speech.voices.example?.data)).toBe(true)
  })

  test("lists all voices, or those of a category in any case", () => {
    expect(list()).toEqual(VOICES.map(({ id }) => id))
    expect(list("en")).toEqual(["en-gb", "en-us", "en-us+f3"])
    expect(list("MU")).toEqual(["Nova", "nova", "shimmer"])
    expect(list("fr")).toEqual([])
  })

  test("fails with UpstreamNotConfigured without a provider, as all of speech does", async () => {
    const missing = Exit.fail(new UpstreamNotConfigured({ upstream: "speech" }))
    const speak = Speech.SpeechSynthesizer.use(({ synthesize }) =>
      Stream.runDrain(synthesize({ accountId: "acc_1", text: "Hi", voice: "en-us", idempotencyKey: "job_1" }))
    )
    for (const effect of [Speech.voices.configured, Speech.voices.run({}, CALLER), Speech.voiceOf("en-us"), speak])
      expect(await Effect.runPromiseExit(Effect.provide(Effect.asVoid(effect), Speech.SpeechSynthesizer.unconfigured))).toEqual(missing)
  })
})
