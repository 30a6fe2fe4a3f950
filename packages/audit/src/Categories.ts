/** How streams other than accounts are replayed. An event that the decider does not know or cannot fold is a problem. */
import {
  ApiKey,
  CouponStore,
  EmailClaim,
  Inbox,
  InboxAddress,
  Invoice,
  Job,
  ManualPayment,
  Passkey,
  Payment,
  PriceAlert,
  PricePlan,
  Product,
  ProxySession,
  ReferenceClaim,
  Session,
  SignInLink,
  Sms,
  Subscription,
  Verification,
  Webhook
} from "@millrace/core"
import { type Decider, StreamName } from "@millrace/event-sourcing"
import type { Known } from "./AccountReplay.ts"
import type { AlertIndex } from "./AlertIndex.ts"
import type { InboxIndex } from "./InboxIndex.ts"
import type { InvoiceIndex } from "./InvoiceIndex.ts"
import type { ProxySessionIndex } from "./ProxySessionIndex.ts"
import type { Replay, ReportProblem } from "./Report.ts"
import type { SessionIndex } from "./SessionIndex.ts"
import { beginCoupons, beginPrices } from "./ShopReplays.ts"
import type { SubscriptionIndex } from "./SubscriptionIndex.ts"
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
  readonly alerts: AlertIndex
  readonly waits: WaitIndex
  readonly inboxes: InboxIndex
  readonly proxies: ProxySessionIndex
  readonly sessions: SessionIndex
  readonly invoices: InvoiceIndex
  readonly subscriptions: SubscriptionIndex
  readonly apiKeys: ApiKeys
}

/** The categories of this library. */
export const coreCategories = ({
  alerts,
  apiKeys,
  calls,
  inboxes,
  invoices,
  jobs,
  payments,
  prices,
  proxies,
  sessions,
  subscriptions,
  waits
}: Indexes): ReadonlyArray<Category> => [
  { name: Job.Job.category, begin: (stream, report) => jobs.begin(stream, report), lost: (stream) => jobs.lost(stream) },
  { ...category(PricePlan.PricePlan, (published, at) => prices.learn(published, at)), lost: () => prices.doubt() },
  category(ApiKey.ApiKey, ({ _tag }) => {
    if (_tag === "ApiKeyIssued") apiKeys.issued++
    else if (_tag === "ApiKeyRevoked") apiKeys.revoked++
  }),
  category(EmailClaim),
  category(ReferenceClaim),
  {
    name: Payment.Payment.category,
    begin: (stream, report) => payments.begin(stream, report),
    lost: (stream) => payments.lost(stream)
  },
  {
    name: ManualPayment.ManualPayment.category,
    begin: (stream) => payments.beginManual(stream),
    lost: (stream) => payments.lostManual(stream)
  },
  { name: Invoice.Invoice.category, begin: (stream, report) => invoices.begin(stream, report), lost: () => invoices.lost() },
  { name: Subscription.Subscription.category, begin: (_, report) => subscriptions.begin(report) },
  {
    name: PriceAlert.PriceAlert.category,
    begin: (stream, report) => alerts.begin(stream, report),
    lost: (stream) => alerts.lost(stream)
  },
  { name: Product.Product.category, begin: beginPrices(Product.Product) },
  { name: Product.PriceClaims.category, begin: beginPrices(Product.PriceClaims) },
  category(Webhook.Webhook),
  { name: CouponStore.CouponStore.category, begin: beginCoupons },
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
  { name: SignInLink.SignInLink.category, begin: (stream) => sessions.beginLink(stream), lost: (stream) => sessions.lostProof(stream) },
  {
    name: Passkey.Passkey.category,
    begin: (stream, report) => sessions.beginPasskey(stream, report),
    lost: (stream) => sessions.lostProof(stream)
  },
  {
    name: Session.Session.category,
    begin: (stream, report) => sessions.begin(stream, report),
    lost: (stream) => sessions.lost(stream)
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
