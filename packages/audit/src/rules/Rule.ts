/**
 * A rule: a statement that is true of every event of an account, given the state of the account before it. Rules check one event at a time
 * and do not depend on each other. Together with the fold, which rejects impossible events, they define a correct ledger.
 */
import type { Account, AccountEvent, EventOf } from "@millrace/core"
import type { CallIndex } from "../CallIndex.ts"
import type { JobIndex } from "../JobIndex.ts"
import { noAmount, type Say, type Stake } from "../Means.ts"
import type { PaymentIndex } from "../PaymentIndex.ts"
import type { Prices } from "../Prices.ts"
import type { RuleName } from "./Catalog.ts"

export interface Step {
  readonly accountId: string
  /** The account before the event. */
  readonly before: Account.Account
  /** When the event was decided, milliseconds since 1970. */
  readonly at: number
  /** When the event before it in its stream was decided; for the first event, its own time. */
  readonly since: number
  /** The prices published so far. */
  readonly prices: Prices
  /** The jobs, as far as the log was read. */
  readonly jobs: JobIndex
  /** What calls left in streams of their own, as far as the log was read. */
  readonly calls: CallIndex
  /** The payments made here, as far as the log was read. */
  readonly payments: PaymentIndex
  /** For an event that settles or refunds a reservation: its hold, while that is open. */
  readonly hold: Account.Hold | undefined
}

type Tag = AccountEvent["_tag"]

export interface Rule {
  readonly name: RuleName
  /** The types of events that it checks. */
  readonly tags: ReadonlyArray<Tag> | "all"
  /** What is wrong with an event of these types; undefined if nothing is. */
  broken(event: AccountEvent, step: Step): string | undefined
  /** What it means in money for the account that an event breaks this rule. Asked only of an event that does. */
  means(event: AccountEvent, step: Step, say: Say): Stake
}

/** A rule for events of some types. */
export const rule = <T extends Tag>(
  name: RuleName,
  tags: ReadonlyArray<T>,
  broken: (event: EventOf<T>, step: Step) => string | undefined,
  means: (event: EventOf<T>, step: Step, say: Say) => Stake
): Rule => ({ name, tags, broken, means })

/** An amount of each of some lots, in thousandths. */
export type Parts = ReadonlyArray<{ readonly lotId: string; readonly amount: number }>

/** Thousandths as credits, for messages. */
export const credits = (thousandths: number): string => String(thousandths / 1000)

/** Why the parts do not sum to `amount`, or name a lot twice; undefined if neither. */
export const wrongTotal = (parts: Parts, amount: number, what: string): string | undefined => {
  let total = 0
  let before = 0
  for (const part of parts) {
    for (let i = 0; i < before; i++) if (parts[i]?.lotId === part.lotId) return `${what} names lot ${part.lotId} twice`
    total += part.amount
    before++
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

export const totalOf = (parts: Parts): number => parts.reduce((total, { amount }) => total + amount, 0)

/** What an event does with how many thousandths, for sentences: `10 credits (0.01 USD) were granted`. Undefined if it moves none. */
export const moved = (event: AccountEvent): readonly [amount: number, done: string, lot?: string] | undefined => {
  switch (event._tag) {
    case "CreditsGranted":
      return [event.amount, "granted", event.lotId]
    case "CreditReserved":
      return [event.amount, `held for ${event.operation}`]
    case "OperationSucceeded":
      return [event.charged, "charged"]
    case "Refunded":
      return [event.amount, event.stage === "reserved" ? "released" : "refunded"]
    case "LotExpired":
      return [event.amount, "written off as expired", event.lotId]
    case "CreditsClawedBack":
      return [event.amount, "taken back with their payment", event.lotId]
    case "DebtRepaid":
      return [event.amount, "used to repay debt", event.lotId]
    case "ClawbackReversed":
      return [event.amount, "returned with their payment", event.lotId]
    default:
      return undefined
  }
}

/** The verb after an amount of thousandths. */
export const wasOrWere = (amount: number): string => (amount === 1000 ? "was" : "were")

/** The stake of an event as a whole: `10 credits (0.01 USD) were granted, {clause}`. */
export const wholeOf = (event: AccountEvent, clause: string, say: Say): Stake => {
  const [amount, done, lot] = moved(event) ?? []
  if (amount === undefined) return noAmount(`${event._tag} moves no credits, ${clause}`)
  return { amount, lot, sentence: `${say(amount)} ${wasOrWere(amount)} ${done}, ${clause}.` }
}

/** The stake of an amount that differs from what is right: `1 credit (0.001 USD) too much was {done}: 3 credits (…) instead of 2 credits (…)`. */
export const excess = (is: number, right: number, done: string, say: Say, lot?: string): Stake => ({
  amount: is - right,
  lot,
  sentence: `${say(is - right)} too ${is > right ? "much" : "little"} was ${done}: ${say(is)} instead of ${say(right)}.`
})

/** The first lot whose part differs in the two lists. */
export const differing = (actual: Parts, expected: Parts): string | undefined =>
  [...expected, ...actual].find(({ lotId }) => amountOf(actual, lotId) !== amountOf(expected, lotId))?.lotId

export const amountOf = (parts: Parts, lotId: string): number => {
  for (const part of parts) if (part.lotId === lotId) return part.amount
  return 0
}
