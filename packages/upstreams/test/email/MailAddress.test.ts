import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { domainOf, parse } from "../../src/email/MailAddress.ts"

const LABEL = "b".repeat(63)
const LOCAL = "a".repeat(64)

/** With a local part of 64 octets, and in UTF-8: 233 octets and these. */
const long = (octets: number) => `${LOCAL}@${`${"é".repeat(20)}.`.repeat(4)}${"x".repeat(octets)}.com`

describe("an e-mail address", () => {
  test.each([
    ["ada@example.com", "ada", "example.com"],
    ["Ada.Lovelace@EXAMPLE.Com", "Ada.Lovelace", "example.com"],
    ["ada+notes@sub.example.co.uk", "ada+notes", "sub.example.co.uk"],
    ["o'brien@example.ie", "o'brien", "example.ie"],
    ['"ada lovelace"@example.com', '"ada lovelace"', "example.com"],
    ['"ada@home"@example.com', '"ada@home"', "example.com"],
    ['""@example.com', '""', "example.com"],
    ["用户@例子.公司", "用户", "xn--fsqu00a.xn--55qx5d"],
    ["ada@MÜNCHEN.de", "ada", "xn--mnchen-3ya.de"],
    ["ada@xn--mnchen-3ya.de", "ada", "xn--mnchen-3ya.de"],
    ["ada@mail。example.com", "ada", "mail.example.com"],
    [`${LOCAL}@example.com`, LOCAL, "example.com"],
    [`ada@${LABEL}.com`, "ada", `${LABEL}.com`]
  ])("is %s", (text, local, domain) => {
    expect(parse(text)).toEqual({ local, domain })
  })

  test.each([
    "",
    "ada",
    "@",
    "ada@",
    "@example.com",
    "ada@localhost",
    "ada@example.c",
    "ada@[192.0.2.1]",
    "ada@[IPv6:2001:db8::1]",
    "ada@192.0.2.1",
    "ada@example.com.",
    "ada@.example.com",
    "ada@example..com",
    "ada@-example.com",
    "ada@exa_mple.com",
    "ada@mail。。example.com",
    "ada@\u00ad.example.com",
    "ada@exa mple.com",
    " ada@example.com",
    "ada@example.com ",
    "ada@example.com\n",
    "ada lovelace@example.com",
    "ada@home@example.com",
    ".ada@example.com",
    "ada.@example.com",
    "ada..lovelace@example.com",
    "Ada <ada@example.com>",
    "mailto:ada@example.com",
    '"@example.com',
    'ada"@example.com',
    '"a"da"@example.com',
    '"ada\r\nBcc: eve@example.net"@example.com',
    '"ada\u0000"@example.com',
    "ada\u2028@example.com",
    "\ud800@example.com",
    "ada@exam\udc00ple.com",
    `${LOCAL}a@example.com`,
    `${"é".repeat(33)}@example.com`,
    `ada@${LABEL}b.com`,
    `ada@${"ü".repeat(63)}.com`,
    `ada@${Array(4).fill(LABEL).join(".")}.com`,
    `${LOCAL}@${Array(3).fill("b".repeat(62)).join(".")}.com`
  ])("cannot be %j", (text) => {
    expect(parse(text)).toBeUndefined()
  })

  test("has at most 254 octets", () => {
    expect([long(21), long(22)].map((text) => [Buffer.byteLength(text), parse(text) !== undefined])).toEqual([
      [254, true],
      [255, false]
    ])
  })

  test("is unchanged by parsing its normal form", () => {
    const text = fc.oneof(
      fc.emailAddress(),
      fc.tuple(fc.string({ unit: "grapheme" }), fc.domain()).map(([local, domain]) => `${local}@${domain}`),
      fc.tuple(fc.stringMatching(/^[a-z"\\.]{1,6}$/u), fc.string({ unit: "grapheme" })).map(([local, domain]) => `${local}@${domain}.com`)
    )
    fc.assert(
      fc.property(text, (text) => {
        const address = parse(text)
        if (address === undefined) return
        expect(address.domain).toMatch(/^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+$/u)
        expect(parse(`${address.local}@${address.domain}`)).toEqual(address)
      }),
      { seed: 1, numRuns: 500 }
    )
  })

  test("may be parsed from any text", () => {
    const unit = fc.constantFrom("a", "@", ".", '"', "\\", " ", "-", "ü", "。", "\ud83d", "\udc00", "\r", "[", "]", ":", "1", "%")
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit, maxLength: 255 }), fc.string({ unit: "binary", maxLength: 255 })), (text) => {
        const address = parse(text)
        if (address !== undefined) expect(text.startsWith(`${address.local}@`)).toBe(true)
      }),
      { seed: 1, numRuns: 500 }
    )
  })
})

test("has as its domain the text after the last @", () => {
  expect(["Ada@Home@EXAMPLE.com", "ada@", "ada", "ada@[192.0.2.1]"].map(domainOf)).toEqual(["example.com", "", "", "[192.0.2.1]"])
})
