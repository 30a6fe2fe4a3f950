/** The settings of invoices: who sells, and the tax that prices include. */
import type { Payment } from "@millrace/core"
import type * as Setting from "./Setting.ts"

const TAX = /^(?<name>\p{L}[^%\n]{0,29}?) (?<rate>\d{1,3}(?:\.\d{1,2})?)% (?<region>[A-Z]{2}(?:-[A-Z0-9]{1,3})?)$/u

/** What a host tells of a tax: its name, a rate in percent, and where it is owed by ISO 3166. */
export interface TaxOptions {
  /** As it stands on invoices: `VAT`. */
  readonly name: string
  /** Percent, with at most two decimals: 19. */
  readonly rate: number
  /** `DE`, `US-CA`. */
  readonly region: string
}

/** `VAT 19% DE`. Undefined for anything else. */
export const parseTax = (text: string): Payment.Tax | undefined => {
  const { name, rate, region } = TAX.exec(text.trim())?.groups ?? {}
  if (name === undefined || rate === undefined || region === undefined) return undefined
  const hundredths = Math.round(Number(rate) * 100)
  return hundredths <= 10_000 ? { name, rate: hundredths, region } : undefined
}

/** The same, of the fields that a host gives. */
export const taxOf = (value: unknown): Payment.Tax | undefined => {
  const { name, rate, region } = Object(value) as Partial<Record<keyof TaxOptions, unknown>>
  return parseTax(`${String(name)} ${String(rate)}% ${String(region)}`)
}

export const EXPECTED = "a name, a rate up to 100% and a region, such as VAT 19% DE"

export const tax: Setting.Kind<Payment.Tax> = { metavar: "tax", parse: parseTax, expected: EXPECTED }

const LONGEST = 500

/** Lines of text; `\n` in a setting ends a line. */
export const parseSeller = (text: string): string | undefined => {
  const lines = text.replaceAll("\\n", "\n").trim()
  return lines !== "" && lines.length <= LONGEST ? lines : undefined
}

export const seller: Setting.Kind<string> = { metavar: "text", parse: parseSeller, expected: `a text of at most ${LONGEST} characters` }
