/** Packs of credits: 1,000 credits for each US dollar. */
import * as Credits from "../Credits.ts"
import type { Terms as Order } from "./Payment.ts"
import type { Tax } from "./PaymentEvent.ts"

/** The packs, by their price in US dollars. */
export const PACKS = ["10", "25", "50", "100"] as const
export type Pack = (typeof PACKS)[number]

export const DEFAULT_PACK: Pack = "10"

const CREDITS_PER_DOLLAR = 1_000

/** What a host gives and owes with each pack. */
export interface Terms {
  /** Credits on top of a pack, in thousandths: a lot of its own. None by default. */
  readonly bonuses?: Readonly<Partial<Record<Pack, Credits.Credits>>>
  /** The tax that prices include: none by default. */
  readonly tax?: Tax
  /** Who sells, as it stands on invoices: lines of text. Nothing by default. */
  readonly seller?: string
}

/** What a pack costs and brings. */
export type Offer = Pick<Order, "amount" | "bonus" | "credits" | "currency" | "purchase" | "seller" | "tax">

export const offer =
  ({ bonuses = {}, seller, tax }: Terms) =>
  (pack: Pack): Offer => {
    const dollars = Number(pack)
    return {
      amount: dollars * 100,
      currency: "USD",
      purchase: { _tag: "Pack", pack },
      credits: Credits.of(dollars * CREDITS_PER_DOLLAR * 1_000),
      bonus: bonuses[pack] ?? Credits.zero,
      ...(tax === undefined ? {} : { tax }),
      ...(seller === undefined ? {} : { seller })
    }
  }
