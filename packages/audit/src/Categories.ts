/** How streams other than accounts are replayed. An event that the decider does not know or cannot fold is a problem. */
import {
  ApiKey,
  EmailClaim,
  Inbox,
  InboxAddress,
  Job,
  PaymentClaim,
  PricePlan,
  ProxySession,
  ReferenceClaim,
  Sms,
  Verification,
  Webhook
} from "@millrace/core"
import { type Decider, StreamName } from "@millrace/event-sourcing"
import type { Known } from "./AccountReplay.ts"
import type { InboxIndex } from "./InboxIndex.ts"
import type { ProxySessionIndex } from "./ProxySessionIndex.ts"
import type { Replay, ReportProblem } from "./Report.ts"
import type { WaitIndex } from "./WaitIndex.ts"

/** The streams of one category. */
export interface Category {
  readonly name: string
  /** Begins the replay of a stream. The replay throws at an event that it does not know or cannot fold. */
  readonly begin: (stream: StreamName.StreamName, report: ReportProblem) => Replay
  /** Called when a stream of this category cannot be replayed further. */
  readonly lost?: (stream: StreamName.StreamName) => void
}

/** The category of a decider: of this library, or of a host that keeps its own streams in the same log. */
export const category = <State, Event extends { readonly _tag: string }>(
  decider: Decider<State, Event>,
  learn?: (event: Event, at: number) => void
): Category => {
  const { codec } = decider
  return {
    name: decider.category,
    begin: () => {
      let state = decider.initial
      return (type, data, at) => {
        const event = codec.decode(type, data)
        state = decider.evolve(state, event, at)
        learn?.(event, at)
      }
    }
  }
}

/** How many API keys were issued, and how many of these revoked. */
export interface ApiKeys {
  issued: number
  revoked: number
}

/** What the replays of this library's categories fill. */
export interface Indexes extends Known {
  readonly waits: WaitIndex
  readonly inboxes: InboxIndex
  readonly proxies: ProxySessionIndex
  readonly apiKeys: ApiKeys
}

/** The categories of this library. */
export const coreCategories = ({ apiKeys, calls, inboxes, jobs, prices, proxies, waits }: Indexes): ReadonlyArray<Category> => [
  { name: Job.Job.category, begin: (stream, report) => jobs.begin(stream, report), lost: (stream) => jobs.lost(stream) },
  { ...category(PricePlan.PricePlan, (published, at) => prices.learn(published, at)), lost: () => prices.doubt() },
  category(ApiKey.ApiKey, ({ _tag }) => {
    if (_tag === "ApiKeyIssued") apiKeys.issued++
    else apiKeys.revoked++
  }),
  category(EmailClaim),
  category(ReferenceClaim),
  category(PaymentClaim),
  category(Webhook.Webhook),
  { name: Sms.Sms.category, begin: (stream) => waits.beginMessage(stream), lost: (stream) => waits.lostMessage(stream) },
  {
    name: Verification.Verification.category,
    begin: (stream, report) => waits.beginWait(stream, report),
    lost: (stream) => calls.doubt(StreamName.id(stream))
  },
  {
    name: ProxySession.ProxySession.category,
    begin: (stream, report) => proxies.begin(stream, report),
    lost: (stream) => proxies.lost(stream)
  },
  {
    name: InboxAddress.AddressClaim.category,
    begin: (stream, report) => inboxes.beginAddress(stream, report),
    lost: (stream) => inboxes.lostAddress(stream)
  },
  {
    name: Inbox.Inbox.category,
    begin: (stream, report) => inboxes.beginInbox(stream, report),
    lost: (stream) => inboxes.lost(stream)
  }
]
