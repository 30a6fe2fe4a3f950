/** What a finding means in money, for an auditor who does not program: whose money, how much, and a sentence. */
import { Credits, Money } from "@millrace/core"
import { Schema } from "effect"

/** Amounts are decimal credits. */
export const Means = Schema.Struct({
  /** The account whose money it is; null where no account is concerned, or none is known. */
  account: Schema.NullOr(Schema.String),
  lot: Schema.optionalKey(Schema.String),
  /** What the account could spend before the event. For a rule about books: what the books say. */
  before: Schema.optionalKey(Schema.Finite),
  /** What the account could spend after it. For a rule about books: what the lots say. */
  after: Schema.optionalKey(Schema.Finite),
  /** The amount in question. */
  credits: Schema.optionalKey(Schema.Finite),
  /** The amount in question in money: `0.0015 USD`. */
  worth: Schema.optionalKey(Schema.String),
  sentence: Schema.String
})
export type Means = typeof Means.Type

/** What a broken rule puts at stake. Amounts in thousandths of a credit. */
export interface Stake {
  readonly account?: string | undefined
  readonly lot?: string | undefined
  readonly before?: number | undefined
  readonly after?: number | undefined
  readonly amount?: number | undefined
  readonly sentence: string
}

/** Writes thousandths in credits and in money: `1.5 credits (0.0015 USD)`. The sign is left to the sentence. */
export type Say = (thousandths: number) => string

const asCredits = (thousandths: number): Credits.Credits | undefined => {
  const amount = Math.abs(Math.round(thousandths))
  return amount <= Credits.MAXIMUM ? Credits.of(amount) : undefined
}

const worthIn = (money: Money.Money, thousandths: number): string | undefined => {
  const amount = asCredits(thousandths)
  return amount === undefined ? undefined : `${Money.worthOf(amount, money)} ${money.currency}`
}

export const sayIn =
  (money: Money.Money): Say =>
  (thousandths) => {
    const amount = asCredits(thousandths)
    // A forged event may name an amount that no ledger has
    return amount === undefined ? `${thousandths / 1000} ${money.credits}` : `${Money.text(amount, money)} (${worthIn(money, amount)})`
  }

const decimal = (thousandths: number | undefined) =>
  thousandths === undefined || !Number.isFinite(thousandths) ? undefined : thousandths / 1000

/** A stake as it is reported. An amount is reported without its sign, which the sentence tells. */
export const meansOf = ({ account, after, amount, before, lot, sentence }: Stake, money: Money.Money): Means => {
  const known = {
    lot,
    before: decimal(before),
    after: decimal(after),
    credits: amount === undefined ? undefined : decimal(Math.abs(amount)),
    worth: amount === undefined ? undefined : worthIn(money, amount)
  }
  const fields = Object.entries(known).filter(([, value]) => value !== undefined)
  return { account: account ?? null, ...Object.fromEntries(fields), sentence }
}

/** The stake of a finding that moves no money. */
export const noAmount = (why: string): Stake => ({ sentence: `No amount changes: ${why}.` })
