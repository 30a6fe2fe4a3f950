import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { proseOf } from "../../src/grammar/TextPieces.ts"

describe("the prose of a text", () => {
  test("keeps its offsets", () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom("-".repeat(40), "x".repeat(120), "привет, мир. ".repeat(5), "😀".repeat(40), "Plain words. ")
    )
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = pieces.join("")
        const prose = proseOf(text)
        expect(prose).toHaveLength(text.length)
        for (let at = 0; at < text.length; at += 1) if (prose[at] !== text[at]) expect(prose[at]).toBe("\n")
      }),
      { seed: 1 }
    )
  })

  test("is all of an ordinary text", () => {
    for (const text of [
      "Naïve café—“quoted”, isn't it?! (Yes…) 3 × 4 = 12; 50 % £9.99 #1 @you 👍🏽",
      "A URL such as https://example.com/some/path?with=a&query=string#and-a-fragment is a word.",
      "Привет is Russian for hello, and こんにちは is Japanese.",
      "Heading\n=======\n\n- one\n- two\n\n| a | b |\n|---|---|\n"
    ]) {
      expect(proseOf(text)).toBe(text)
    }
  })

  test("leaves out runs without words", () => {
    for (const run of [
      "x".repeat(100),
      "-".repeat(32),
      `${"( ".repeat(31)}(`,
      "привет мир как дела сегодня утром, сэр Джон",
      "漢".repeat(32)
    ]) {
      expect(proseOf(`This ${run} is`)).toBe(`This ${"\n".repeat(run.length)} is`)
    }
  })
})
