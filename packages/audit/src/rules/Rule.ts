/**
 * A rule: a statement that is true of every event of an account, given the state of the account before it. Rules check one event at a time
 * and do not depend on each other. Together with the fold, which rejects impossible events, they define a correct ledger.
 */
import type { Account, AccountEvent, EventOf } from "@millrace/core"
import type { JobIndex } from "../JobIndex.ts"
import type { Prices } from "../Prices.ts"

export interface Step {
  /** The account before the event. */
  readonly before: Account.Account
  /** When the event was decided, milliseconds since 1970. */
  readonly at: number
  /** The prices published so far. */
  readonly prices: Prices
  /** The jobs, as far as the log was read. */
  readonly jobs: JobIndex
  /** For an event that settles or refunds a reservation: its hold, while that is open. */
  readonly hold: Account.Hold | undefined
}

type Tag = AccountEvent["_tag"]

export interface Rule {
  readonly name: string
  /** The types of events that it checks. */
  readonly tags: ReadonlyArray<Tag> | "all"
  /** What is wrong with an event of these types; undefined if nothing is. */
  broken(event: AccountEvent, step: Step): string | undefined
}

/** A rule for events of some types. */
export const rule = <T extends Tag>(
  name: string,
  tags: ReadonlyArray<T>,
  broken: (event: EventOf<T>, step: Step) => string | undefined
): Rule => ({ name, tags, broken })

/** An amount of each of some lots, in thousandths. */
export type Parts = ReadonlyArray<{ readonly lotId: string; readonly amount: number }>

/** Thousandths as credits, for messages. */
export const credits = (thousandths: number): string => String(thousandths / 1000)

/** Why the parts do not sum to `amount`, or name a lot twice; undefined if neither. */
export const wrongTotal = (parts: Parts, amount: number, what: string): string | undefined => {
  let total = 0
  for (const [i, part] of parts.entries()) {
    for (let j = 0; j < i; j++) if (parts[j]?.lotId === part.lotId) return `${what} names lot ${part.lotId} twice`
    total += part.amount
  }
  return total === amount ? undefined : `${what} is ${credits(amount)}, but its lots sum to ${credits(total)}`
}

/** Why two lists differ in the amount of some lot; undefined if they agree, in any order. */
export const differ = (actual: Parts, expected: Parts, what: string): string | undefined => {
  for (const { lotId } of [...expected, ...actual]) {
    const [is, due] = [amountOf(actual, lotId), amountOf(expected, lotId)]
    if (is !== due) return `${what} lot ${lotId} is ${credits(is)} instead of ${credits(due)}`
  }
  return undefined
}

export const amountOf = (parts: Parts, lotId: string): number => {
  for (const part of parts) if (part.lotId === lotId) return part.amount
  return 0
}
