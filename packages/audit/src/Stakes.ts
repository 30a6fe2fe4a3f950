/** What a finding means in money that is not of a single rule of accounts: of places, hashes, heads, names and snapshots. */
import {
  Account,
  type AccountEvent,
  Inbox,
  Invoice,
  Job,
  ManualPayment,
  Payment,
  PricePlan,
  ProxySession,
  Sms,
  Subscription,
  Verification
} from "@millrace/core"
import { type EventStore, StreamName } from "@millrace/event-sourcing"
import { balancesOf } from "./AccountReplay.ts"
import { noAmount, type Say, type Stake } from "./Means.ts"
import { moved, wasOrWere, wholeOf } from "./rules/Rule.ts"
import type { StreamReplay } from "./StreamReplay.ts"

/** The account of a stream; undefined for other streams. */
export const accountOf = (stream: string): string | undefined =>
  StreamName.isStreamName(stream) && StreamName.category(stream) === Account.Account.category ? StreamName.id(stream) : undefined

/** An event of an account; undefined where it cannot be read. */
const readable = ({ data, stream, type }: EventStore.RecordedEvent): AccountEvent | undefined => {
  try {
    return accountOf(stream) === undefined ? undefined : Account.Account.codec.decode(type, data)
  } catch {
    return undefined
  }
}

/** What an event that cannot be trusted says: `The event says that 10 credits (0.01 USD) were granted`. */
const claimOf = (event: EventStore.RecordedEvent, say: Say): string | undefined => {
  const known = readable(event)
  const [amount, done] = (known === undefined ? undefined : moved(known)) ?? []
  return amount === undefined ? undefined : `The event says that ${say(amount)} ${wasOrWere(amount)} ${done}`
}

const UNPROVEN: Readonly<Record<string, string>> = {
  [Job.Job.category]: "events of jobs move no credits, but whether this job was charged rightly is not proven",
  [Sms.Sms.category]: "messages move no credits, but whether a wait found this one is not proven",
  [Verification.Verification.category]: "events of waits move no credits, but whether this wait was charged rightly is not proven",
  [Inbox.Inbox.category]: "events of inboxes move no credits, but what this inbox received, and when it ended, is not proven",
  [ProxySession.ProxySession.category]:
    "events of proxy sessions move no credits, but what this session carried, and when it ended, is not proven",
  [Payment.Payment.category]: "events of payments move no credits themselves, but what this one bought, and what went back, is not proven",
  [Invoice.Invoice.category]: "invoices move no credits, but whether the documents of this month are right is not proven",
  [ManualPayment.ManualPayment.category]: "what operators say moves no credits, but whether the money of this payment came is not proven",
  [Subscription.Subscription.category]: "events of subscriptions move no credits, but which periods were paid for is not proven",
  [PricePlan.PricePlan.category]: "but prices from here on are not proven, so holds are not compared with them"
}

/** An event that does not verify or cannot be replayed. What is proven of its stream ends before it. */
export const unproven =
  (stream: StreamReplay | undefined, event: EventStore.RecordedEvent | undefined) =>
  (say: Say): Stake => {
    if (stream?.account !== undefined) return stream.account.proven(say, event === undefined ? undefined : claimOf(event, say))
    const category = stream === undefined ? "" : StreamName.category(stream.name)
    return noAmount(UNPROVEN[category] ?? "this stream holds no credits")
  }

/** An event as a whole, of an account: `10 credits (0.01 USD) were granted, {clause}`. */
export const ofEvent =
  (event: EventStore.RecordedEvent, clause: string) =>
  (say: Say): Stake => {
    const known = readable(event)
    const stake = known === undefined ? noAmount(clause) : wholeOf(known, clause, say)
    return { account: accountOf(event.stream), ...stake }
  }

export const uncovered =
  (account: string, { held, open }: { readonly open: number; readonly held: number }) =>
  (say: Say): Stake => ({
    account,
    before: open,
    after: held,
    amount: held - open,
    sentence: `Open calls hold ${say(open)}, but ${say(held)} are kept from the account: they differ by ${say(held - open)}.`
  })

export const overdue =
  (account: string, hold: Account.Hold | undefined) =>
  (say: Say): Stake => ({
    account,
    amount: hold?.amount,
    sentence: `${say(hold?.amount ?? 0)} are held for ${hold?.operation}, although the time for it is over: they were neither charged nor given back.`
  })

/** A stream that is not as an earlier head has it. `now`: the stream at that place of this log. */
export const rewritten =
  (stream: string | undefined, now: StreamReplay | undefined) =>
  (say: Say): Stake => {
    const account = stream === undefined ? undefined : accountOf(stream)
    if (stream === undefined) return { sentence: "The amounts of these accounts are not those of the earlier audit." }
    if (account === undefined) return noAmount("this stream holds no credits, but it is not the one of the earlier audit")
    if (now?.account === undefined) return { account, sentence: "The account is gone, with everything it paid, spent and still had." }
    const { available } = balancesOf(now.account.state)
    const sentence = `At that place the account has ${say(available)} to spend, but not by the events of the earlier audit: that balance may have been another.`
    return { account, after: available, sentence }
  }

export const ORDER = () => noAmount("the order of events between streams decides which prices were in force, and no more")
export const MISSING = (): Stake => ({ sentence: "What the missing events moved, and for whom, is not known." })
export const garbled = (stream: string) => (): Stake =>
  accountOf(stream) === undefined
    ? { sentence: "What this line said, and of whose money, is not known." }
    : { account: accountOf(stream), sentence: "What this line says of the account is not what was exported, so it proves nothing." }
export const TWICE = () => noAmount("one event stands in the log twice; whether it counts twice is told by the findings of its stream")
export const TIME = () => noAmount("but expiries and prices go by time, so those near it may be judged wrongly")
export const SNAPSHOT = () => noAmount("events count and not snapshots, but a server that starts from this one may answer another balance")
export const HEAD = (): Stake => ({ sentence: "The amounts in this log are not those that the earlier audit vouched for." })
