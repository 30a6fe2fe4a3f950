import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { redact } from "../../src/work/Reason.ts"

describe("redact", () => {
  test("keeps the message of the upstream and removes the input of the caller", () => {
    const input = { email: "ada.lovelace@example.org", nested: [{ prompt: "A mill (by night)" }], n: 7 }
    const text = `550 <Ada.Lovelace@example.org> unknown at example.org; prompt "A mill (by night)" at\n https://user:pass@api.host/v1?key=secret#x`
    expect(redact(text, input)).toBe(`550 <[input]> unknown at [input]; prompt "[input]" at https://api.host/v1`)
  })

  test("removes every text of the input", () => {
    const secret = fc.string({ unit: "binary-ascii", minLength: 4, maxLength: 40 }).filter((text) => !/\s/u.test(text))
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (text, before, after) => {
        fc.pre(!"[input]".includes(text.toLowerCase()))
        expect(redact(`${before} ${text} ${after}`, { deep: [{ text }] }).toLowerCase()).not.toContain(text.toLowerCase())
      })
    )
  })

  test("limits the length of a reason", () => {
    expect(redact("x".repeat(100_000), {}).length).toBeLessThan(510)
  })
})
