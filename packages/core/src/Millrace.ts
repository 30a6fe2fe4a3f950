/**
 * All of Millrace above its stores, as one layer. A host provides an event store, a state store, a master key and the upstreams of its
 * operations.
 */

import type { Aggregate, Deadlines, EventStore, StateStore } from "@millrace/event-sourcing"
import { type Duration, Layer, Struct } from "effect"
import { KeyRing } from "./accounts/KeyRing.ts"
import { Passkeys } from "./accounts/Passkeys.ts"
import { Registration, type Options as RegistrationOptions } from "./accounts/Registration.ts"
import { Sessions } from "./accounts/Sessions.ts"
import { SessionUpkeep } from "./accounts/SessionUpkeep.ts"
import { SignUps } from "./accounts/SignUps.ts"
import { PriceAlerts } from "./alerts/PriceAlerts.ts"
import { PriceAlertUpkeep } from "./alerts/PriceAlertUpkeep.ts"
import { CallHistory } from "./billing/CallHistory.ts"
import { CallsInDoubt } from "./billing/CallsInDoubt.ts"
import { Charge, type ChargeOptions } from "./billing/Charge.ts"
import { ownOf, PriceBook, type PriceTooHigh } from "./billing/PricePlan.ts"
import { RateLimit, type RateLimitPolicy } from "./billing/RateLimit.ts"
import { Recovery } from "./billing/Recovery.ts"
import { Replies } from "./billing/Replies.ts"
import { UsageBook } from "./billing/Usage.ts"
import { Coupons, type CouponsOptions } from "./coupons/Coupons.ts"
import { Inboxes, type InboxesOptions } from "./inboxes/Inboxes.ts"
import { InboxUpkeep, type InboxUpkeepOptions } from "./inboxes/InboxUpkeep.ts"
import type { MailReader } from "./inboxes/MailReader.ts"
import type { MailReceiver } from "./inboxes/MailReceiver.ts"
import * as Mailroom from "./inboxes/Mailroom.ts"
import { JobRunner, type RunnerOptions } from "./jobs/JobRunner.ts"
import { Jobs, type JobsOptions } from "./jobs/Jobs.ts"
import { JobUpkeep, type UpkeepOptions } from "./jobs/JobUpkeep.ts"
import { AccountUpkeep } from "./ledger/AccountUpkeep.ts"
import { Ledger, type LedgerOptions } from "./ledger/Ledger.ts"
import { AccountWatch } from "./live/AccountWatch.ts"
import { topUp } from "./operations/Billing.ts"
import { Catalog, type Groups } from "./operations/Catalog.ts"
import { register as registerAlert } from "./operations/PriceAlerts.ts"
import { createSession } from "./operations/Proxies.ts"
import { subscribe } from "./operations/Subscriptions.ts"
import { Checkout, type CheckoutOptions } from "./payments/Checkout.ts"
import { InvoiceBook } from "./payments/InvoiceBook.ts"
import type { Invoices } from "./payments/Invoices.ts"
import { Payments } from "./payments/Payments.ts"
import { PaymentUpkeep } from "./payments/PaymentUpkeep.ts"
import { type SubscriptionOptions, Subscriptions } from "./payments/Subscriptions.ts"
import { SubscriptionUpkeep } from "./payments/SubscriptionUpkeep.ts"
import { CatalogPrices } from "./prices/CatalogPrices.ts"
import { Offers } from "./prices/Offers.ts"
import { PriceObservations } from "./prices/PriceObservations.ts"
import { ProxyNodes } from "./proxies/ProxyNodes.ts"
import { ProxySessions, type SessionsOptions } from "./proxies/ProxySessions.ts"
import { ProxyUpkeep } from "./proxies/ProxyUpkeep.ts"
import type { BlobStore } from "./vault/BlobStore.ts"
import type { MasterKey } from "./vault/MasterKey.ts"
import { Vault, type WrongMasterKey } from "./vault/Vault.ts"
import * as WebhookDelivery from "./webhooks/WebhookDelivery.ts"
import type { WebhookSender } from "./webhooks/WebhookSender.ts"
import { Webhooks } from "./webhooks/Webhooks.ts"
import { CircuitBreaker, type CircuitBreakerOptions } from "./work/CircuitBreaker.ts"
import type * as Operation from "./work/Operation.ts"

export interface MillraceOptions<Op extends Operation.Any> extends ChargeOptions {
  /** Their own prices are published when the layer is built; a price that was published over one stays. */
  readonly operations: ReadonlyArray<Op>
  /** How the catalog groups operations. Default: by area, the part of the key before its dot. */
  readonly groups?: Groups
  /** Calls of an account in a window, counted over all hosts of the store: 60 in 60 seconds by default. */
  readonly rateLimit?: RateLimitPolicy
  readonly breaker?: CircuitBreakerOptions
  readonly recovery?: Deadlines.Options
  readonly jobs?: JobOptions
  /** When coupons are accepted without an operator. */
  readonly coupons?: CouponsOptions
  /** Lifetime and bounds of proxy sessions. */
  readonly proxies?: SessionsOptions
  /** Bonuses, tax, the lifetime of payments and the plans of subscriptions. They are taken by the `PaymentGateway` that the host provides; without one, none are. */
  readonly payments?: CheckoutOptions & SubscriptionOptions
  /** How long before its expiry it is told that a lot will expire: see `AccountUpkeepOptions`. None is told by default. */
  readonly expiryNotice?: Duration.Input
  /**
   * The lifetime of credits that we return to an expired lot after our failure: seven days by default. A hold keeps the setting under
   * which it was made.
   */
  readonly adjustmentLifetime?: Duration.Input
  /** Whether accounts that were never verified have a trial: see `LedgerOptions`. True by default. */
  readonly trial?: boolean
  readonly accounts?: Omit<LedgerOptions, "adjustmentLifetime" | "trial">
  readonly registration?: RegistrationOptions
}

export interface JobOptions
  extends Pick<JobsOptions, "documents" | "queueLimit" | "retention">,
    Pick<UpkeepOptions, "sweepFilesEvery">,
    RunnerOptions {
  /** Whether this process runs jobs: true by default. It accepts them in any case, and other processes on the log may run them. */
  readonly runner?: boolean
}

const RATE_LIMIT: RateLimitPolicy = { limit: 60, window: 60 }

/** The services for administrators. */
export type Administration = Ledger | PriceBook | KeyRing | Payments | Invoices | Registration | Vault
/** Why Millrace does not start. */
export type StartError = WrongMasterKey | PriceTooHigh | Aggregate.Failure | StateStore.StateUnavailable

type Stores = EventStore.EventStore | StateStore.StateStore | MasterKey

/**
 * The services for administrators: they open accounts, issue keys, grant credits and read balances. Without `operations`, no prices are
 * published.
 */
export const administration = (
  options: Partial<Pick<MillraceOptions<Operation.Any>, "operations" | "accounts" | "adjustmentLifetime" | "registration" | "trial">> = {}
): Layer.Layer<Administration, StartError, Stores> => {
  const ledger = Ledger.layer({ ...options.accounts, ...Struct.pick(options, ["adjustmentLifetime", "trial"]) })
  return Layer.mergeAll(KeyRing.layer, Payments.layer, Registration.layer(options.registration)).pipe(
    Layer.provideMerge(Layer.mergeAll(ledger, PriceBook.layerOf(ownOf(options.operations ?? [])), Vault.layer))
  )
}

/**
 * All services: administration, calls, recovery and, where an operation is a job, jobs. Where the context has a `MailRelay` and a
 * `PublicAddress`, accounts can register price alerts.
 */
export const layer = <Op extends Operation.Any>(options: MillraceOptions<Op>) =>
  Layer.mergeAll(
    Recovery.layer(options.operations, options.recovery),
    AccountUpkeep.layer({ ...options.recovery, ...Struct.pick(options, ["expiryNotice"]) }),
    running(options),
    expiringProxies(options),
    watchingPrices(options),
    maintainingPayments(options)
  ).pipe(
    Layer.provideMerge(Charge.layer(Struct.pick(options, ["late"]))),
    Layer.provideMerge(
      Catalog.layer(options.operations, {
        ...Struct.pick(options, ["groups"]),
        ...Struct.pick(options.registration ?? {}, ["signUpCredits"])
      })
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        Replies.layer,
        CallsInDoubt.layer,
        CallHistory.layer,
        AccountWatch.layer,
        UsageBook.layer(),
        CircuitBreaker.layer(options.breaker),
        RateLimit.shared(options.rateLimit ?? RATE_LIMIT),
        Jobs.layer(options.jobs),
        ProxySessions.layer(options.proxies),
        ProxyNodes.layer,
        Coupons.layer(options.coupons),
        Layer.mergeAll(CatalogPrices.layer, PriceAlerts.layer).pipe(Layer.provideMerge(PriceObservations.layer)),
        Offers.layer,
        InvoiceBook.layer,
        Subscriptions.layer(options.payments).pipe(Layer.provideMerge(Checkout.layer(options.payments)))
      )
    ),
    Layer.provideMerge(administration(options))
  )

/** `JobUpkeep` and, unless `runner` is false, `JobRunner`. Empty when no operation is a job. */
const running = <Op extends Operation.Any>({
  jobs = {},
  operations,
  recovery
}: MillraceOptions<Op>): Layer.Layer<never, never, Jobs | Vault | CircuitBreaker | Stores | Operation.Services<Op>> => {
  const { runner = true, ...options } = jobs
  const ofJobs = operations.filter(({ _tag }) => _tag === "Job")
  return Layer.mergeAll(
    ofJobs.length > 0 ? JobUpkeep.layer({ ...recovery, ...Struct.pick(jobs, ["sweepFilesEvery"]) }) : Layer.empty,
    ofJobs.length > 0 && runner ? JobRunner.layer(ofJobs, options) : Layer.empty
  )
}

/** `ProxyUpkeep`, where proxy sessions can be opened. */
const expiringProxies = <Op extends Operation.Any>({
  operations,
  recovery
}: MillraceOptions<Op>): Layer.Layer<never, never, ProxySessions | Stores> =>
  operations.some(({ key }) => key === createSession.key) ? ProxyUpkeep.layer(recovery) : Layer.empty

/** `PriceAlertUpkeep`, where alerts can be registered. */
const watchingPrices = <Op extends Operation.Any>({
  operations,
  recovery
}: MillraceOptions<Op>): Layer.Layer<never, never, PriceAlerts | PriceObservations | Ledger | Registration | Stores> =>
  operations.some(({ key }) => key === registerAlert.key) ? PriceAlertUpkeep.layer(recovery) : Layer.empty

/** `PaymentUpkeep` and `SubscriptionUpkeep`, where credits can be bought. */
const maintainingPayments = <Op extends Operation.Any>({
  operations,
  recovery
}: MillraceOptions<Op>): Layer.Layer<never, never, Payments | Checkout | Subscriptions | Stores> =>
  Layer.merge(
    operations.some(({ key }) => key === topUp.key) ? PaymentUpkeep.layer(recovery) : Layer.empty,
    operations.some(({ key }) => key === subscribe.key) ? SubscriptionUpkeep.layer(recovery) : Layer.empty
  )

export interface WebhookOptions extends WebhookDelivery.Options {
  /** Whether this process delivers: true by default. Other processes on the store may deliver in any case. */
  readonly deliver?: boolean
}

/** Webhooks: their administration, and the delivery of what happens. Beside {@link layer}, whose services it uses. */
export const webhooks = ({
  deliver = true,
  ...options
}: WebhookOptions = {}): Layer.Layer<
  Webhooks,
  never,
  WebhookSender | Vault | Jobs | Payments | Registration | EventStore.EventStore | StateStore.StateStore
> => (deliver ? WebhookDelivery.WebhookDelivery.layer(options) : Layer.empty).pipe(Layer.provideMerge(Webhooks.layer))

export interface InboxOptions extends InboxesOptions {
  readonly upkeep?: InboxUpkeepOptions
}

/** Inboxes, what receives their mail, and their upkeep. The operations of temporary mail need it; without a domain they are not set up. */
export const inboxes = ({
  upkeep,
  ...options
}: InboxOptions = {}): Layer.Layer<
  Inboxes | InboxUpkeep | MailReceiver,
  never,
  MailReader | BlobStore | Vault | EventStore.EventStore | StateStore.StateStore
> => Layer.merge(Mailroom.layer, InboxUpkeep.layer(upkeep)).pipe(Layer.provideMerge(Inboxes.layer(options)))

/**
 * Sessions of people, the accounts of sign-ups, and their upkeep; and passkeys, to sign in with. With `SignIn.layer` and a `MailRelay`, people
 * sign in by mail.
 */
export const sessions = (
  upkeep?: Deadlines.Options
): Layer.Layer<
  Sessions | Passkeys | SignUps | SessionUpkeep,
  never,
  Ledger | Vault | Registration | EventStore.EventStore | StateStore.StateStore
> => SessionUpkeep.layer(upkeep).pipe(Layer.provideMerge(Layer.mergeAll(Sessions.layer, Passkeys.layer, SignUps.layer)))

/** The services that {@link layer} needs. */
export type Requirements<Op extends Operation.Any> = Stores | Operation.Services<Op>
