/**
 * A rule: something that is true of every event of an account, given the account as it was before. Rules look at one event at a
 * time and know nothing of each other; together with the fold, which refuses what cannot have happened, they say what a ledger is.
 */
import type { Account, AccountEvent, EventOf } from "@millrace/core"
import type { JobBook } from "../JobBook.ts"
import type { Prices } from "../Prices.ts"

export interface Step {
  /** As all events before have left it. */
  readonly before: Account.Account
  /** When the event was decided, milliseconds since 1970. */
  readonly at: number
  /** What was published so far. */
  readonly prices: Prices
  /** As far as the log was read. */
  readonly jobs: JobBook
  /** For what ends a reservation, or gives it back: its hold, while that is open. */
  readonly hold: Account.Hold | undefined
}

type Tag = AccountEvent["_tag"]

export interface Rule {
  readonly name: string
  /** The events it is about. */
  readonly tags: ReadonlyArray<Tag> | "all"
  /** What is wrong with the event, which is one of those: `rulesFor` chooses. Undefined when nothing is. */
  broken(event: AccountEvent, step: Step): string | undefined
}

/** A rule about events of some types. */
export const rule = <T extends Tag>(
  name: string,
  tags: ReadonlyArray<T>,
  broken: (event: EventOf<T>, step: Step) => string | undefined
): Rule => ({ name, tags, broken })

/** An amount of each of some lots, in thousandths. */
export type Parts = ReadonlyArray<{ readonly lotId: string; readonly amount: number }>

/** Thousandths as a person reads them. */
export const credits = (thousandths: number): string => String(thousandths / 1000)

/** What a list of parts comes to, without the fold's own arithmetic. */
export const sum = (parts: Parts): number => {
  let total = 0
  for (const { amount } of parts) total += amount
  return total
}

/** A lot that stands in a list more than once. */
export const repeated = (parts: Parts): string | undefined => {
  for (let i = 1; i < parts.length; i++) {
    const lotId = parts[i]?.lotId
    for (let j = 0; j < i; j++) if (parts[j]?.lotId === lotId) return lotId
  }
  return undefined
}

/** Why `parts` are not `amount` in all, lot by lot; undefined when they are. */
export const notThisMuch = (parts: Parts, amount: number, what: string): string | undefined => {
  const twice = repeated(parts)
  if (twice !== undefined) return `${what} names lot ${twice} twice`
  const total = sum(parts)
  return total === amount ? undefined : `${what} is ${credits(amount)}, but its lots come to ${credits(total)}`
}

/** Why two lists do not say the same of every lot; undefined when they do, in whatever order. */
export const differ = (said: Parts, due: Parts, what: string): string | undefined => {
  if (said.length === 0 && due.length === 0) return undefined
  for (const { lotId, amount } of due) {
    const other = amountOf(said, lotId)
    if (other !== amount) return `${what} lot ${lotId} is ${credits(other)} instead of ${credits(amount)}`
  }
  for (const { lotId, amount } of said) {
    if (amountOf(due, lotId) !== amount) return `${what} lot ${lotId} is ${credits(amount)} instead of ${credits(amountOf(due, lotId))}`
  }
  return undefined
}

export const amountOf = (parts: Parts, lotId: string): number => {
  for (const part of parts) if (part.lotId === lotId) return part.amount
  return 0
}
