/** Countries of BIN records. */
import type { Bin } from "@millrace/core"
import { countries } from "countries-list"

type Country = NonNullable<(typeof Bin.BinRecord.Type)["country"]>

/** ISO 4217 codes of units of account, in which no card is billed. `countries-list` has them among the currencies. */
const FUNDS = new Set(["BOV", "CHE", "CHW", "CLF", "COU", "MXV", "USN", "USS", "UYI", "UYW"])

const NAMES = new Intl.DisplayNames("en", { type: "region" })

const COUNTRIES: ReadonlyMap<string, Country> = new Map(
  Object.entries(countries).map(([code, { currency }]) => [
    code,
    { name: NAMES.of(code) ?? code, code, currency: currency.find((money) => !FUNDS.has(money)) ?? null }
  ])
)

/** The country of an ISO 3166-1 alpha-2 code in any case, with its first currency; undefined if the code is not assigned. */
export const countryOf = (alpha2: string): Country | undefined => COUNTRIES.get(alpha2.toUpperCase())
