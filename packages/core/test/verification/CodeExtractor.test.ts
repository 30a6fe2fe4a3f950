import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { extract } from "../../src/verification/CodeExtractor.ts"
import { type Sample, samples, tuned, unseen } from "./Corpus.ts"

const wrong = (part: ReadonlyArray<Sample>) =>
  part.filter(({ code, text }) => extract(text) !== code).map(({ code, text }) => ({ text, code, found: extract(text) }))

describe("the code of a message", () => {
  test("is found, or that there is none, in 99 of 100 messages, also of those that were not looked at", () => {
    expect(samples.length).toBeGreaterThanOrEqual(300)
    expect(new Set(samples.map(({ language }) => language)).size).toBeGreaterThanOrEqual(10)
    expect(unseen.length).toBeGreaterThan(samples.length / 4)
    for (const part of [tuned, unseen]) expect(wrong(part).length / part.length, JSON.stringify(wrong(part))).toBeLessThanOrEqual(0.01)
  })

  test.each([
    ["747723 is your code\n\n@example.com #747724", "747724"],
    ["G-104422", "104422"],
    ["Your code: 12345678", "12345678"],
    ["Your code: 123", undefined],
    ["Your code: 123456789", undefined],
    ["Your code: 123-456", "123456"],
    ["Your code: 800-555-0199", undefined],
    ["Your code: +491234567", undefined],
    ["Your code costs $4821", undefined],
    ["Your code: A1234", undefined],
    ["Your code: 18:45", undefined],
    ["رمز التحقق: ۴۸۲۹۱۳", "482913"],
    ["Your code: １２３４", "1234"],
    ["", undefined]
  ])("of %j is %j", (text, code) => {
    expect(extract(text)).toBe(code)
  })

  test("has 4 to 8 digits, whatever the message", () => {
    const piece = fc.oneof(fc.constantFrom("code ", "@a.b #", "G-", "1", "1234", " ", "-", "order ", "$", ". ", "\n"), fc.string())
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const code = extract(pieces.join(""))
        if (code !== undefined) expect(code).toMatch(/^[0-9]{4,8}$/u)
      })
    )
  })

  test("is not looked for beyond what a message can hold", () => {
    expect(extract(`${"a ".repeat(900)}code 1234`)).toBe("1234")
    expect(extract(`${"a ".repeat(1_000)}code 1234`)).toBeUndefined()
  })
})
