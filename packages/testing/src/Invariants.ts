/**
 * Invariants: what is true of the events of every account, job, inbox, wait for a code, proxy session, price alert, payment, invoice,
 * subscription, session of a person, shop with coupons, and price. The checkers keep books of their own from the events alone. Only the
 * rules about postings and the fold use the ledger's code, to compare it with those books.
 */
import {
  Account,
  type AccountEvent,
  CouponStore,
  Inbox,
  InboxAddress,
  Invoice,
  Job,
  Passkey,
  Payment,
  PriceAlert,
  Product,
  ProxySession,
  Session,
  SignInLink,
  Sms,
  Subscription,
  Verification
} from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { AccountChecker } from "./invariants/AccountChecker.ts"
import { AlertChecker } from "./invariants/AlertChecker.ts"
import { CouponChecker } from "./invariants/CouponChecker.ts"
import { InboxChecker } from "./invariants/InboxChecker.ts"
import { InvoiceChecker } from "./invariants/InvoiceChecker.ts"
import { JobChecker } from "./invariants/JobChecker.ts"
import { PasskeyChecker } from "./invariants/PasskeyChecker.ts"
import { PaymentChecker } from "./invariants/PaymentChecker.ts"
import { PriceChecker } from "./invariants/PriceChecker.ts"
import { type Report, RULES, type Rule } from "./invariants/Rules.ts"
import { SessionChecker } from "./invariants/SessionChecker.ts"
import { SignInChecker } from "./invariants/SignInChecker.ts"
import { SubscriptionChecker } from "./invariants/SubscriptionChecker.ts"
import { WaitChecker } from "./invariants/WaitChecker.ts"

export type { Rule } from "./invariants/Rules.ts"

/** The events that have invariants. */
export type CheckedEvent =
  | AccountEvent
  | Job.JobEvent
  | Inbox.InboxEvent
  | InboxAddress.AddressEvent
  | Sms.SmsEvent
  | Verification.VerificationEvent
  | ProxySession.ProxySessionEvent
  | Session.SessionEvent
  | Passkey.PasskeyEvent
  | Subscription.SubscriptionEvent
  | PriceAlert.PriceAlertEvent
  | SignInLink.SignInEvent
  | Payment.PaymentEvent
  | Invoice.InvoiceEvent
  | CouponStore.CouponStoreEvent
  | Product.ProductEvent
  | Product.ClaimEvent

/** An event in a log, of a stream named as the log names it. */
export interface Recorded {
  readonly stream: string
  /** Its place in the stream, by default counted from 0. */
  readonly revision?: number
  readonly event: CheckedEvent
  /** When it was decided: milliseconds since 1970. */
  readonly at: number
}

export interface Violation {
  readonly stream: string
  readonly revision: number
  readonly rule: Rule
  readonly detail: string
}

/** The category of a stream and its id. What has no category is an account's. */
const nameOf = (stream: string): readonly [category: string, id: string] =>
  StreamName.isStreamName(stream) ? [StreamName.category(stream), StreamName.id(stream)] : [Account.Account.category, stream]

/** By category: checkers of streams that are related to no others. */
const checkersAlone = (report: Report): ReadonlyMap<string, (id: string, recorded: Recorded) => void> => {
  const alerts = new AlertChecker(report)
  const sessions = new SessionChecker(report)
  const coupons = new CouponChecker(report)
  const prices = new PriceChecker(report)
  const price = (id: string, { at, event, stream }: Recorded) =>
    prices.enter(stream, id, event as Product.ProductEvent | Product.ClaimEvent, at)
  return new Map([
    [PriceAlert.PriceAlert.category, (id, { at, event }) => alerts.enter(id, event as PriceAlert.PriceAlertEvent, at)],
    [ProxySession.ProxySession.category, (id, { at, event }) => sessions.enter(id, event as ProxySession.ProxySessionEvent, at)],
    [CouponStore.CouponStore.category, (id, { at, event }) => coupons.enter(id, event as CouponStore.CouponStoreEvent, at)],
    [Product.Product.category, price],
    [Product.PriceClaims.category, price]
  ])
}

/** The checkers of all other kinds but accounts. `has`: whether events of a kind are there. */
const checkersOf = (has: (kind: { readonly category: string }) => boolean, report: Report) => {
  const payments = new PaymentChecker(has(Payment.Payment), report)
  const paying = has(Payment.Payment) ? payments : undefined
  return {
    inboxes: new InboxChecker(has(InboxAddress.AddressClaim), report),
    invoices: new InvoiceChecker(paying, report),
    jobs: new JobChecker({ accounts: has(Account.Account), jobs: has(Job.Job) }, report),
    passkeys: new PasskeyChecker(has(Passkey.Passkey), report),
    payments,
    signIns: new SignInChecker(has(SignInLink.SignInLink), report),
    subscriptions: new SubscriptionChecker(paying, report),
    waits: new WaitChecker({ texts: has(Sms.Sms), waits: has(Verification.Verification) }, report)
  }
}

/**
 * All violations in these events, in the order of the log. The events may be of one stream or of many, of one kind or of several; where kinds
 * are there that belong together, their relations are checked as well. Never throws.
 */
export const invariants = (events: Iterable<Recorded>): ReadonlyArray<Violation> => {
  const violations: Array<Violation> = []
  const all = [...events]
  let current = { stream: "", revision: -1, tag: "" }
  const report: Report = (rule, detail) => {
    const { revision, stream, tag } = current
    violations.push({ stream, revision, rule: RULES[rule], detail: `${tag}: ${detail}` })
  }
  const kinds = new Set(all.map(({ stream }) => nameOf(stream)[0]))
  const has = ({ category }: { readonly category: string }): boolean => kinds.has(category)
  const accounts = new Map<string, AccountChecker>()
  const { inboxes, invoices, jobs, passkeys, payments, signIns, subscriptions, waits } = checkersOf(has, report)
  const alone = checkersAlone(report)
  const enter = (recorded: Recorded): void => {
    const { at, event, stream } = recorded
    const [category, id] = nameOf(stream)
    const checked = alone.get(category)
    if (checked !== undefined) return checked(id, recorded)
    switch (category) {
      case Job.Job.category:
        return jobs.enter(id, event as Job.JobEvent, at)
      case Inbox.Inbox.category:
        return inboxes.enter(id, event as Inbox.InboxEvent, at)
      case InboxAddress.AddressClaim.category:
        return inboxes.claim(id, event as InboxAddress.AddressEvent)
      case Sms.Sms.category:
        return waits.receive(id, event as Sms.SmsEvent)
      case Verification.Verification.category:
        return waits.enter(id, event as Verification.VerificationEvent)
      case Session.Session.category:
        passkeys.follow(event as Session.SessionEvent)
        return signIns.session(id, event as Session.SessionEvent, at)
      case Passkey.Passkey.category:
        return passkeys.enter(id, event as Passkey.PasskeyEvent, at)
      case SignInLink.SignInLink.category:
        return signIns.link(id, event as SignInLink.SignInEvent, at)
      case Payment.Payment.category:
        return payments.enter(id, event as Payment.PaymentEvent)
      case Invoice.Invoice.category:
        return invoices.enter(id, event as Invoice.InvoiceEvent)
      case Subscription.Subscription.category:
        return subscriptions.enter(id, event as Subscription.SubscriptionEvent)
    }
    const account = accounts.get(stream) ?? new AccountChecker(id, report)
    accounts.set(stream, account)
    account.enter(event as AccountEvent, at)
    jobs.follow(event as AccountEvent)
    waits.follow(event as AccountEvent)
    payments.follow(id, event as AccountEvent)
    subscriptions.follow(event as AccountEvent)
  }

  const revisions = new Map<string, number>()
  for (const recorded of all) {
    const { event, stream } = recorded
    const revision = recorded.revision ?? (revisions.get(stream) ?? -1) + 1
    revisions.set(stream, revision)
    current = { stream, revision, tag: event._tag }
    enter(recorded)
  }
  for (const [stream, account] of accounts) {
    current = { stream, revision: revisions.get(stream) ?? -1, tag: "end" }
    account.end()
  }
  if (has(Account.Account) && has(Payment.Payment))
    for (const [id, lotId] of subscriptions.lost()) {
      const stream = StreamName.make(Subscription.Subscription.category, id)
      current = { stream, revision: revisions.get(stream) ?? -1, tag: "end" }
      report("periodLot", `${lotId} was paid and never granted`)
    }
  return violations
}
