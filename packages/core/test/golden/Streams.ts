/** Recorded streams of every kind but accounts, and the states they lead to. See `test/golden/addStream.ts`. */
import {
  ApiKey,
  CouponStore,
  Inbox,
  InboxAddress,
  Invoice,
  Job,
  ManualPayment,
  Payment,
  Passkey,
  PriceAlert,
  Product,
  ProxySession,
  Session,
  SignInLink,
  Sms,
  Subscription,
  Verification,
  Webhook
} from "@millrace/core"
import { type Decider, type EventCodec, StreamName } from "@millrace/event-sourcing"
import { decodeWith, type RecordedLog, streamOf } from "./Recorded.ts"

/** An event as this release encodes it, and the state after it. */
export interface Replayed {
  readonly encoded: { readonly type: string; readonly data: string }
  readonly state: unknown
}

interface Kind {
  readonly category: string
  readonly replay: (log: RecordedLog) => ReadonlyArray<Replayed>
  /** The events by type. */
  readonly cases: Readonly<Record<string, { readonly fields: object }>>
}

const kind = <State, Event extends EventCodec.Tagged>(
  { category, codec, evolve, initial }: Decider<State, Event>,
  { cases }: Pick<Kind, "cases">
): Kind => ({
  category,
  cases,
  replay: (log) => {
    let state = initial
    return decodeWith(codec, log).map(({ at, event }) => {
      state = evolve(state, event, at)
      return { encoded: codec.encode(event), state }
    })
  }
})

export const kinds: ReadonlyArray<Kind> = [
  kind(ApiKey.ApiKey, ApiKey.ApiKeyEvent),
  kind(CouponStore.CouponStore, CouponStore.CouponStoreEvent),
  kind(Inbox.Inbox, Inbox.InboxEvent),
  kind(InboxAddress.AddressClaim, InboxAddress.AddressEvent),
  kind(Invoice.Invoice, Invoice.InvoiceEvent),
  kind(Job.Job, Job.JobEvent),
  kind(ManualPayment.ManualPayment, ManualPayment.ManualPaymentEvent),
  kind(Payment.Payment, Payment.PaymentEvent),
  kind(PriceAlert.PriceAlert, PriceAlert.PriceAlertEvent),
  kind(Product.PriceClaims, Product.ClaimEvent),
  kind(Product.Product, Product.ProductEvent),
  kind(ProxySession.ProxySession, ProxySession.ProxySessionEvent),
  kind(Passkey.Passkey, Passkey.PasskeyEvent),
  kind(Session.Session, Session.SessionEvent),
  kind(SignInLink.SignInLink, SignInLink.SignInEvent),
  kind(Sms.Sms, Sms.SmsEvent),
  kind(Subscription.Subscription, Subscription.SubscriptionEvent),
  kind(Verification.Verification, Verification.VerificationEvent),
  kind(Webhook.Webhook, Webhook.WebhookEvent)
]

/** Each event of a recorded stream, replayed by this release. */
export const replay = (log: RecordedLog): ReadonlyArray<Replayed> => {
  const category = StreamName.category(streamOf(log))
  const found = kinds.find((kind) => kind.category === category)
  if (found === undefined) throw new Error(`There are no streams of the kind ${category}`)
  return found.replay(log)
}
