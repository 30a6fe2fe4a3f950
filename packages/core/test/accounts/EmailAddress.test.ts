import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { normalise } from "../../src/accounts/EmailAddress.ts"
import { check } from "../vault/Property.ts"

describe("an e-mail address", () => {
  test.for([
    ["ada@example.com", "ada@example.com"],
    ["  Ada.Lovelace+mill@Example.COM\n", "ada.lovelace+mill@example.com"],
    ["o'neill@sub.example.co.uk", "o'neill@sub.example.co.uk"],
    ["JOSE\u0301@EXAMPLE.com", "jos\u00e9@example.com"],
    // Unicode composes it only in lower case
    ["J\u030ca@example.com", "\u01f0a@example.com"],
    ["jos\u00e9@m\u00fcnchen.example", "jos\u00e9@m\u00fcnchen.example"],
    [`${"a".repeat(64)}@${"b".repeat(63)}.example`, `${"a".repeat(64)}@${"b".repeat(63)}.example`]
  ] as const)("%j is %j", ([text, address]) => expect(normalise(text)).toBe(address))

  test.for([
    "",
    "@",
    "ada",
    "ada@",
    "@example.com",
    "ada@localhost",
    "ada@example..com",
    "ada@.example.com",
    "ada@example.com.",
    "ada@-example.com",
    "ada@example-.com",
    "ada@exam_ple.com",
    ".ada@example.com",
    "a..da@example.com",
    "ada.@example.com",
    "ada lovelace@example.com",
    "ada\u0000@example.com",
    "ada\u200b@example.com",
    "ada@@example.com",
    '"ada"@example.com',
    "Ada <ada@example.com>",
    "a@b.example,c@d.example",
    `${"a".repeat(65)}@example.com`,
    `ada@${"b".repeat(64)}.example`,
    `ada@${"b.".repeat(130)}example`
  ])("%j is invalid", (text) => expect(normalise(text)).toBeUndefined())

  test("has one normal form, which is stable", () => {
    const part = fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" })
    let met = 0
    check(
      fc.property(part, part, part, (local, domain, top) => {
        const text = `${local}@${domain}.${top}`
        const address = normalise(text)
        if (address === undefined) return
        met++
        expect(normalise(address)).toBe(address)
        expect(normalise(` ${text.normalize("NFD")}\t`)).toBe(address)
      }),
      3_000
    )
    expect(met).toBeGreaterThan(20)
  })

  test("is checked in linear time, whatever its length", () => {
    const long = 5_000_000
    for (const text of ["a".repeat(long), `${"a.".repeat(long)}@b`, `a@${"b.".repeat(long)}`, "@".repeat(long)])
      expect(normalise(text)).toBeUndefined()
  })
})
