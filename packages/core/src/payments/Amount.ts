/** Amounts of money in the smallest unit of their currency, such as cents, and how people read them. */
import { memoised } from "../Memoised.ts"
import type { Amount } from "./PaymentGateway.ts"

/** How many decimals a currency has: 2 for USD, 0 for JPY. */
export const decimalsOf: (currency: string) => number = memoised(
  (currency) => new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2
)

/** An amount in units of its currency, as an exact decimal text: `10.00`. */
export const toText = ({ currency, minor }: Amount): string => {
  const decimals = decimalsOf(currency)
  const digits = String(minor).padStart(decimals + 1, "0")
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

/** An amount in units of its currency, as a number: 10 for 1,000 cents. */
export const toDecimal = (amount: Amount): number => Number(toText(amount))

/** `whole × part / of`, rounded down: exact for integers of any size. `of` is positive. */
export const share = (whole: number, part: number, of: number): number => Number((BigInt(whole) * BigInt(part)) / BigInt(of))

/** A number of units of a currency in its smallest unit: 1,050 for 10.5 dollars. Undefined if it is negative or has too many decimals. */
export const fromDecimal = (amount: number, currency: string): number | undefined => {
  const decimals = decimalsOf(currency)
  const minor = Math.round(amount * 10 ** decimals)
  const isExact = Number.isSafeInteger(minor) && minor >= 0 && Number(toText({ minor, currency })) === amount
  return isExact ? minor : undefined
}
