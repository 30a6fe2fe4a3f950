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
import type { Decider, StreamName } from "@millrace/event-sourcing"
import { InboxIndex } from "./InboxIndex.ts"
import type { JobIndex } from "./JobIndex.ts"
import type { Prices } from "./Prices.ts"
import type { ProxySessionIndex } from "./ProxySessionIndex.ts"
import type { Replay, ReportProblem } from "./Report.ts"

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

/**
 * The categories of this library. Replays of price plans fill `prices`, those of jobs and proxy sessions fill `jobs` and `proxies`, those of
 * API keys are counted.
 */
export const coreCategories = (prices: Prices, jobs: JobIndex, proxies: ProxySessionIndex, apiKeys: ApiKeys): ReadonlyArray<Category> => [
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
  // Their folds say that a message is received once, and that a wait has one outcome
  category(Sms.Sms),
  category(Verification.Verification),
  { name: ProxySession.ProxySession.category, begin: (stream) => proxies.begin(stream), lost: (stream) => proxies.lost(stream) },
  ...inboxCategories(new InboxIndex())
]

const inboxCategories = (inboxes: InboxIndex): ReadonlyArray<Category> => [
  { name: InboxAddress.AddressClaim.category, begin: (stream, report) => inboxes.beginAddress(stream, report) },
  { name: Inbox.Inbox.category, begin: (stream, report) => inboxes.beginInbox(stream, report) }
]
