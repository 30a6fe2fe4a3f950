/** The page after sign-in: whatever is accepted as a setting stays on the server, wherever a proxy serves it. */
import fc from "fast-check"
import { expect, test } from "vitest"
import * as SignInHome from "../src/SignInHome.ts"

/** Where the script of the sign-in page goes: see `SignInPage.ts`. */
const targetOf = (home: string, base: string): URL => new URL(`.${home}`, `${base}sign-in`)

const BASES = ["https://api.example.com/", "https://api.example.com/millrace/", "http://127.0.0.1:8787/"]

/** Texts that look like addresses more often than chance has it. */
const texts = fc
  .array(
    fc.oneof(
      fc.constantFrom("/", "//", "\\", "..", ".", "@", ":", "?", "#", "https:", "javascript:", "evil.example", "\t", "\n", "%2f", " "),
      fc.string()
    ),
    {
      maxLength: 8
    }
  )
  .chain((parts) => fc.constantFrom(parts.join(""), `/${parts.join("")}`))

test("no accepted path leaves the server", () => {
  let accepted = 0
  fc.assert(
    fc.property(texts, fc.constantFrom(...BASES), (text, base) => {
      const home = SignInHome.kind.parse(text)
      if (home === undefined) return
      accepted++
      expect(home).toBe(text)
      expect(targetOf(home, base).origin).toBe(new URL(base).origin)
      // Nor as an address of its own, which a script or a proxy may make of it
      expect(new URL(home, base).origin).toBe(new URL(base).origin)
    }),
    { numRuns: 5_000 }
  )
  expect(accepted).toBeGreaterThan(500)
})

test("other hosts are refused, in every spelling that browsers know", () => {
  const others = [
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https://evil.example",
    "javascript:alert(1)",
    "/\t/evil.example",
    "evil",
    "",
    "/a b"
  ]
  expect(others.map((text) => SignInHome.kind.parse(text))).toEqual(others.map(() => undefined))
  expect(["/", "/account?from=mail", "/#/billing", "/a//b"].map((text) => SignInHome.kind.parse(text))).not.toContain(undefined)
})
