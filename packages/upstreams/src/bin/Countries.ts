/** Countries as a BIN record shows them. */
import type { Bin } from "@millrace/core"
import { countries } from "countries-list"

type Country = NonNullable<(typeof Bin.BinRecord.Type)["country"]>

/** ISO 4217 codes of units of account in which no card is billed; `countries-list` gives them beside the money. */
const FUNDS = new Set(["BOV", "CHE", "CHW", "CLF", "COU", "MXV", "USN", "USS", "UYI", "UYW"])

const CURRENCIES: ReadonlyMap<string, ReadonlyArray<string>> = new Map(
  Object.entries(countries).map(([code, { currency }]) => [code, currency])
)

const NAMES = new Intl.DisplayNames("en", { type: "region" })

/** The country of an ISO 3166-1 alpha-2 code, in any case, with its first currency; nothing when the code is not assigned. */
export const countryOf = (alpha2: string): Country | undefined => {
  const code = alpha2.toUpperCase()
  const currencies = CURRENCIES.get(code)
  if (currencies === undefined) return undefined
  return { name: NAMES.of(code) ?? code, code, currency: currencies.find((currency) => !FUNDS.has(currency)) ?? null }
}
