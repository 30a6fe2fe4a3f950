import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { spokenTextOf } from "../src/SpokenText.ts"

const anyText = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "binary" }),
  // Lone surrogates too
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  fc.string({ unit: fc.constantFrom("[", "]", "\u0001", "\ue001", "\u00ad", "\r", "\n", "a", "\ud800", "\udfff") })
)

const check = (holds: (text: string) => void) => fc.assert(fc.property(anyText, holds), { seed: 1, numRuns: 500 })

describe("a sanitized text", () => {
  test("is well-formed, without commands, phonemes and the engine's own characters", () =>
    check((text) => {
      const spoken = spokenTextOf(text)
      expect(spoken.isWellFormed()).toBe(true)
      expect(spoken).not.toMatch(/[\p{Cc}--\n]|\p{Co}|\p{Cn}|\[\[/v)
    }))

  test("does not change when sanitized again", () =>
    check((text) => {
      const spoken = spokenTextOf(text)
      expect(spokenTextOf(spoken)).toBe(spoken)
    }))

  test("has every word of the text", () =>
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-zäéß\u0e01-\u0e2e]{1,9}$/u)), fc.constantFrom(" ", "\n", ", "), (words, gap) => {
        expect(spokenTextOf(words.join(gap))).toBe(words.join(gap))
      }),
      { seed: 1 }
    ))

  test.each([
    ["words at a soft hyphen", "syl\u00adla\u00adble", "syllable"],
    ["marks of direction", "\u200fשלום\u200e", "שלום"],
    ["joiners", "می\u200cخواهم 👩\u200d🚀", "می\u200cخواهم 👩\u200d🚀"],
    ["a letter and its accent", "e\u0301", "é"],
    ["tabs and ends of lines", "a\tb\r\nc", "a b \nc"],
    ["a command", "\u0001100P", " 100P"],
    ["many brackets", "[[[a]]", "[ [ [a]]"],
    ["half a character", "a\ud83d", "a\ufffd"]
  ])("keeps or drops %s", (_, text, spoken) => expect(spokenTextOf(text)).toBe(spoken))
})
