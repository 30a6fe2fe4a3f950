import { countries } from "countries-list"
import { describe, expect, test } from "vitest"
import { countryOf } from "../../src/bin/Countries.ts"

describe("a country", () => {
  test("has a currency that cards are billed in, and no fund", () => {
    const money = {
      CH: "CHF",
      US: "USD",
      CL: "CLP",
      UY: "UYU",
      BO: "BOB",
      MX: "MXN",
      CO: "COP",
      DE: "EUR",
      HR: "EUR",
      SV: "USD",
      PA: "PAB"
    }
    for (const [code, currency] of Object.entries(money)) expect(countryOf(code)?.currency).toBe(currency)
    expect(countryOf("AQ")?.currency).toBeNull()
  })

  test("has a name for every code", () => {
    for (const code of Object.keys(countries)) {
      expect(countryOf(code.toLowerCase())).toMatchObject({ code, name: expect.stringMatching(/\p{L}{3}/u) })
    }
    expect(countryOf("ci")?.name).toBe("Côte d’Ivoire")
  })

  test("is undefined for an unassigned code", () => {
    for (const code of ["", "ZZ", "AN", "USA", "constructor", "D"]) expect(countryOf(code)).toBeUndefined()
  })
})
