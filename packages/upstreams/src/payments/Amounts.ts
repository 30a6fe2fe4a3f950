/** Amounts of money as gateways write them: their own smallest units, or decimal digits. */
import type { PaymentGateway } from "@millrace/core"

type Amount = PaymentGateway.Amount

/** Digits after the point, by ISO 4217, where they are not two. */
const DIGITS: ReadonlyMap<string, number> = new Map([
  ...["BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"].map(
    (currency) => [currency, 0] as const
  ),
  ...["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"].map((currency) => [currency, 3] as const),
  ...["CLF", "UYW"].map((currency) => [currency, 4] as const)
])

/** Digits after the point of a currency by ISO 4217: 2 for `USD`, 0 for `JPY`. */
export const digitsOf = (currency: string): number => DIGITS.get(currency) ?? 2

/** A currency as a gateway counts it, where that is not ISO 4217. `step`: amounts are multiples of it, in the gateway's unit. */
export interface Unit {
  /** Digits after the point of the major unit, by the gateway. */
  readonly digits: number
  readonly step: number
}

/** Where Stripe differs: https://docs.stripe.com/currencies#zero-decimal and #special-cases */
const STRIPE: ReadonlyMap<string, Unit> = new Map([
  ["MGA", { digits: 0, step: 1 }],
  ["ISK", { digits: 2, step: 100 }],
  ["UGX", { digits: 2, step: 100 }],
  ...["BHD", "JOD", "KWD", "OMR", "TND"].map((currency) => [currency, { digits: 3, step: 10 }] as const)
])

/** Where PayPal differs: https://developer.paypal.com/reference/currency-codes/ */
const PAYPAL: ReadonlyMap<string, Unit> = new Map([
  ["HUF", { digits: 0, step: 1 }],
  ["TWD", { digits: 0, step: 1 }]
])

const unitIn = (units: ReadonlyMap<string, Unit>, currency: string): Unit => units.get(currency) ?? { digits: digitsOf(currency), step: 1 }

/** An amount in units of `unit`. Undefined if it cannot be written so, such as half a forint at PayPal. */
const toUnits = ({ minor, currency }: Amount, { digits, step }: Unit): number | undefined => {
  const units = rescaled(minor, digitsOf(currency), digits)
  return units === undefined || units % step !== 0 ? undefined : units
}

/** A count of units of 10^-`from`, in units of 10^-`to`. Undefined if it is not whole, or too large to be exact. */
const rescaled = (units: number, from: number, to: number): number | undefined => {
  const scaled = to >= from ? units * 10 ** (to - from) : units / 10 ** (from - to)
  return Number.isSafeInteger(units) && Number.isSafeInteger(scaled) ? scaled : undefined
}

/** What Stripe calls `amount`. Undefined if Stripe does not take such an amount. */
export const toStripe = (amount: Amount): number | undefined => toUnits(amount, unitIn(STRIPE, amount.currency))

/** The smallest units of ISO 4217 in an `amount` of Stripe. Undefined if they are not whole. */
export const fromStripe = (amount: number, currency: string): number | undefined =>
  rescaled(amount, unitIn(STRIPE, currency).digits, digitsOf(currency))

/** What PayPal calls `value`: `10.00`, or `1000` for yen. Undefined if PayPal does not take such an amount. */
export const toPayPal = (amount: Amount): string | undefined => {
  const unit = unitIn(PAYPAL, amount.currency)
  const units = toUnits(amount, unit)
  return units === undefined || units < 0 ? undefined : decimal(units, unit.digits)
}

const decimal = (units: number, digits: number): string => {
  const text = String(units).padStart(digits + 1, "0")
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`
}

const DECIMAL = /^(?<whole>\d{1,15})(?:\.(?<part>\d{1,4}))?$/u

/** The smallest units of ISO 4217 in decimal digits, such as `10.00`, `10` or `10.0`. Undefined if they are malformed or not whole. */
export const fromPayPal = (value: string, currency: string): number | undefined => {
  const { whole, part = "" } = DECIMAL.exec(value)?.groups ?? {}
  return whole === undefined ? undefined : rescaled(Number(whole + part), part.length, digitsOf(currency))
}
