import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { run, SAMPLE_RATE, speak } from "../src/Engine.ts"
import { DEFAULT_VOICE, VOICES } from "../src/Voices.ts"

/** Identifiers and files of all voices in the build, as the command lists them. */
const listVoices = async () => {
  const lines: Array<string> = []
  await run({ arguments: ["--voices"], text: "", write: () => undefined, print: (line) => lines.push(line) })
  return lines.slice(1).map((line) => {
    const [, id = "", , , file = ""] = line.trim().split(/\s+/u)
    return { id, file }
  })
}

/** How long it is, in seconds, and its samples as one number. */
const sound = async (voice: string, text: string) => {
  let samples = 0
  let energy = 0
  await speak({
    voice,
    text,
    sampleLimit: Number.POSITIVE_INFINITY,
    onSamples: (block) => {
      samples += block.length
      for (const sample of block) energy += sample * sample
    }
  })
  return { duration: samples / SAMPLE_RATE, energy }
}

describe("the voices", () => {
  test("are exactly those of the build", async () => {
    const built = await listVoices()
    expect(built.length).toBeGreaterThan(100)
    const male = VOICES.filter(({ gender }) => gender === "male")
    expect(male.map(({ file }) => file).sort()).toEqual(built.map(({ file }) => file).sort())
    // Two of the build share an identifier
    const listed = new Map(built.map(({ id, file }) => [file, file === "sit/yue-Latn-jyutping" ? "yue-latn-jyutping" : id.toLowerCase()]))
    for (const { id, file } of male) expect(id).toBe(listed.get(file))
  })

  test("have unique short ids, and languages in BCP 47", () => {
    expect(new Set(VOICES.map(({ id }) => id.toLowerCase())).size).toBe(VOICES.length)
    for (const { id, language, category } of VOICES) {
      expect(id.length).toBeLessThanOrEqual(50)
      expect(new Intl.Locale(language).language).toBe(category)
    }
    expect(VOICES.map(({ id }) => id)).toContain(DEFAULT_VOICE)
  })

  test("all speak", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...VOICES), async ({ file }) => {
        const { duration, energy } = await sound(file, "Hello 123")
        expect(duration).toBeGreaterThan(0.5)
        expect(duration).toBeLessThan(5)
        expect(energy).toBeGreaterThan(10)
      }),
      { seed: Number(process.env["MILLRACE_SEED"] ?? 1), numRuns: 30 }
    )
  })

  test("differ", async () => {
    const sounds = await Promise.all(["gmw/en-US", "gmw/en-US+f3", "gmw/en", "gmw/de", "roa/fr"].map((file) => sound(file, "radio")))
    expect(new Set(sounds.map(({ energy }) => energy)).size).toBe(sounds.length)
  })
})

describe("the engine", () => {
  test("refuses an unknown voice", () =>
    expect(speak({ voice: "gmw/xx", text: "Hi", sampleLimit: SAMPLE_RATE, onSamples: () => undefined })).rejects.toThrow("status 1"))

  test("stops at the limit", async () => {
    let given = 0
    const onSamples = ({ length }: Float32Array) => {
      given += length
    }
    const text = "one two three four five ".repeat(20)
    expect(await speak({ voice: "gmw/en-US", text, sampleLimit: 5 * SAMPLE_RATE, onSamples })).toBe(false)
    expect(given).toBeLessThanOrEqual(5 * SAMPLE_RATE)
  })

  test("speaks all of a long text", async () => {
    const text = "One, two, three, four and five went home again. "
    const once = await sound("gmw/en-US", text)
    const often = await sound("gmw/en-US", text.repeat(40))
    expect(often.duration / once.duration).toBeGreaterThan(38)
    expect(often.duration / once.duration).toBeLessThan(42)
  })

  test("reads a text that looks like an option as text", async () => {
    const words = await sound("gmw/en-US", "minus minus version")
    const { duration } = await sound("gmw/en-US", "--version")
    expect(duration).toBeGreaterThan(0.3)
    expect(duration).toBeLessThanOrEqual(words.duration)
  })
})
