/** Payments at simulated hosts: their operations, which are free, and what hosts give on top. */
import { Billing, type CheckoutOptions, Credits, type Operation } from "@millrace/core"

/** The operations, with their first prices in thousandths of a credit. */
export const OFFERS: ReadonlyArray<{ readonly operation: Operation.Any; readonly price: number }> = [
  { operation: Billing.topUp, price: 0 },
  { operation: Billing.captureTopUp, price: 0 }
]

/** Thousandths of a credit on top of some packs. */
export const BONUSES = { "25": Credits.of(1_000_000), "100": Credits.of(1) } as const

/** How many payments of an account may be pending. */
export const PENDING_LIMIT = 20

/** The tax that prices include. */
const TAX = { name: "VAT", rate: 1_900, region: "DE" }

export const terms: CheckoutOptions = { bonuses: BONUSES, tax: TAX, lifetime: "1 hour", pendingLimit: PENDING_LIMIT }
