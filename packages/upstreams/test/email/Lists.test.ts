import { disposableEmailBlocklist } from "disposable-email-domains-js"
import { Effect } from "effect"
import fc from "fast-check"
import mailchecker from "mailchecker"
import { describe, expect, test } from "vitest"
import { isDisposable, isRole } from "../../src/email/Lists.ts"

const RELAYS = ["duck.com", "mozmail.com", "simplelogin.com"]

const alone = await Effect.runPromise(isDisposable({ consensus: false }))
const together = await Effect.runPromise(isDisposable({ consensus: true }))

describe("a disposable domain", () => {
  const first = disposableEmailBlocklist()
  const second = [...mailchecker.blacklist()]

  test("is on the first list, or with consensus on either", () => {
    expect([alone, together].map((disposable) => disposable("mailinator.com"))).toEqual([true, true])
    expect([alone, together].map((disposable) => disposable("passmail.net"))).toEqual([false, true])
    expect([alone, together].map((disposable) => disposable("gmail.com"))).toEqual([false, false])
    expect(first.every(alone)).toBe(true)
    expect([...first, ...second].filter((domain) => !together(domain)).sort()).toEqual(RELAYS)
  })

  test("includes its subdomains", () => {
    fc.assert(
      fc.property(fc.constantFrom(...first, ...second), fc.domain(), (domain, below) => {
        expect(together(`${below}.${domain}`)).toBe(together(domain))
        if (alone(domain)) expect(together(`${below}.${domain}`)).toBe(true)
      }),
      { seed: 1, numRuns: 300 }
    )
  })

  test("does not include names that end alike, or parent domains", () => {
    for (const domain of ["un-mailinator.com", "mailinator.com.example", "com", "example.com"]) expect(together(domain)).toBe(false)
  })

  test("is no relay of permanent addresses", () => {
    for (const relay of RELAYS) {
      expect([alone(relay), together(relay), together(`ada.${relay}`)]).toEqual([false, false, false])
      expect(second).toContain(relay)
    }
  })
})

describe("the address of a role", () => {
  test("is recognised in any case and with any tag", async () => {
    const role = await Effect.runPromise(isRole)
    for (const local of ["info", "Sales", "POSTMASTER", "no-reply", "support+spring", "admin+"]) expect(role(local)).toBe(true)
    for (const local of ["ada", "ada.lovelace", "informa", "ada+info", "+info", ""]) expect(role(local)).toBe(false)
  })
})
