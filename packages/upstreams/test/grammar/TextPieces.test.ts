import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { textPieces } from "../../src/grammar/TextPieces.ts"

const LIMIT = 40

describe("a text in pieces", () => {
  test("joins to the text, with pieces within the limit and whole characters", () => {
    const part = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("Some words. ", "a ", "\n\n", "?! ", "x".repeat(50), "😀".repeat(30), "   ", 'He said "no." ')
    )
    fc.assert(
      fc.property(fc.array(part), fc.integer({ min: 2, max: LIMIT }), (parts, limit) => {
        const text = parts.join("").toWellFormed()
        const pieces = textPieces(text, limit)
        expect(pieces.map(({ text }) => text).join("")).toBe(text)
        for (const { offset, text: piece } of pieces) {
          expect(text.startsWith(piece, offset)).toBe(true)
          expect(piece.length).toBeGreaterThan(0)
          expect(piece.length).toBeLessThanOrEqual(limit)
          expect(piece.isWellFormed()).toBe(true)
        }
      })
    )
  })

  test("is cut after paragraphs, or after sentences if those are too long", () => {
    const sentences = ["This is one. ", 'She said "two!" ', "Mr. is e.g. not the end of three.\n\n", "Four follows, it is (here). "]
    const whole = new Set(sentences.map((sentence) => sentence.trim()))
    for (const { ends, text } of textPieces(sentences.join("").repeat(5).trim(), LIMIT)) {
      expect([...whole].some((sentence) => text.trim().endsWith(sentence))).toBe(true)
      expect(ends).toBe(text.endsWith("\n\n") || text.endsWith("(here).") ? "paragraph" : "sentence")
    }
    expect(textPieces("One. Two.\n\nThree. And four. And five. And six. Seven.", LIMIT)).toEqual([
      { text: "One. Two.\n\n", offset: 0, after: "paragraph", ends: "paragraph" },
      { text: "Three. And four. And five. And six. ", offset: 11, after: "paragraph", ends: "sentence" },
      { text: "Seven.", offset: 47, after: "sentence", ends: "paragraph" }
    ])
  })

  test("is cut after words if a sentence is too long, and says so", () => {
    const pieces = textPieces(`${"word ".repeat(20)}end. Next.`, LIMIT)
    expect(pieces.map(({ after, ends, text }) => [after, ends, text])).toEqual([
      ["paragraph", "word", "word ".repeat(8)],
      ["word", "word", "word ".repeat(8)],
      ["word", "paragraph", `${"word ".repeat(4)}end. Next.`]
    ])
  })

  test("is cut anywhere if a word is too long", () => {
    expect(textPieces("x".repeat(100), LIMIT).map(({ text }) => text.length)).toEqual([40, 40, 20])
    expect(textPieces("", LIMIT)).toEqual([])
  })

  // Each took a pattern that looks for the last sentence of a piece time quadratic or cubic to it
  test.each(["\n", " ", ".", ". ", ".)", "\n ", "a"])("is made of 50,000 characters of %j", (unit) => {
    const text = unit.repeat(50_000 / unit.length)
    expect(textPieces(text, 1_000).length).toBeLessThanOrEqual(51)
  })
})
