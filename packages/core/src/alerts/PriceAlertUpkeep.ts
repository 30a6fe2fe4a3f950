/**
 * Maintains price alerts, also after a process died: takes up each price that a host read, sends the mail of a fall, again after a refusal,
 * and leaves in doubt what nobody knows the outcome of. Alerts of accounts that are closed end.
 *
 * Only a host with a mail relay sends. Each host takes up prices.
 */
import { Deadlines, type EventHandlers, type EventStore, Reaction, type StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Fiber, FiberSet, Layer, Schedule } from "effect"
import type { MailNotConfigured, MailNotSent, MailRelay, OutgoingMail } from "../accounts/MailRelay.ts"
import type { PublicAddress } from "../accounts/PublicAddress.ts"
import { Registration } from "../accounts/Registration.ts"
import { Account } from "../ledger/Account.ts"
import type { AccountEvent } from "../ledger/AccountEvent.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { PriceObservations } from "../prices/PriceObservations.ts"
import * as Product from "../prices/Product.ts"
import * as AlertMail from "./AlertMail.ts"
import * as PriceAlert from "./PriceAlert.ts"
import { PriceAlerts } from "./PriceAlerts.ts"

// prices

/** Alerts of one product that take up a price at once. */
const CONCURRENCY = 32

/** At most this many events are taken up again after a crash. They change nothing then. */
const CHECKPOINT_EVERY = 100

/** Takes up what concerns alerts, in the order of the log. */
const takingUp = Effect.gen(function* () {
  const { alerts, end, ofAccount, ofProduct, subjectOf } = yield* PriceAlerts
  const observations = yield* PriceObservations
  const ledger = yield* Ledger

  const observed = Effect.fnUntraced(function* (
    { currency, price }: Product.ProductEvent,
    { id, position, revision }: EventHandlers.Origin
  ) {
    const observed = { price, currency, revision }
    const ids = yield* ofProduct(id, position)
    yield* Effect.forEach(ids, (alertId) => alerts.execute(alertId, PriceAlert.observe(observed)), {
      concurrency: CONCURRENCY,
      discard: true
    })
  })

  /** A price that was read while the alert was registered was taken up before the alert could be found. */
  const registered = Effect.fnUntraced(function* ({ accountId, ...terms }: PriceAlert.Terms, { id }: EventHandlers.Origin) {
    const { status } = (yield* ledger.read(accountId)).state
    if (status === "closed") return yield* end(id, "accountClosed")
    const subject = yield* Effect.catchTag(subjectOf({ accountId, ...terms }), "SubjectDestroyed", () => Effect.undefined)
    if (subject === undefined) return yield* end(id, "accountClosed")
    const newest = yield* observations.newest(subject.productId)
    if (newest !== undefined) yield* alerts.execute(id, PriceAlert.observe(newest))
  })

  const closed = Effect.fnUntraced(function* ({ id, position }: EventHandlers.Origin) {
    const ids = yield* ofAccount(id, position)
    yield* Effect.forEach(ids, (alertId) => end(alertId, "accountClosed"), { concurrency: CONCURRENCY, discard: true })
  })

  return Reaction.all(
    Reaction.of<Product.ProductEvent, Effect.Error<ReturnType<typeof observed>>>(Product.Product, { PriceObserved: observed }),
    Reaction.of<PriceAlert.PriceAlertEvent, Effect.Error<ReturnType<typeof registered>>>(PriceAlert.PriceAlert, {
      PriceAlertRegistered: registered
    }),
    Reaction.of<AccountEvent, Effect.Error<ReturnType<typeof closed>>>(Account, { AccountClosed: (_, origin) => closed(origin) })
  )
})

// mails

type What = "mail" | "answer"

const set = ({ id }: EventHandlers.Origin, what: What, dueAt: number): Deadlines.Change => ({ _tag: "set", key: `${id}/${what}`, dueAt })
const clear = ({ id }: EventHandlers.Origin, what: What): Deadlines.Change => ({ _tag: "clear", key: `${id}/${what}` })

const over = (_: unknown, origin: EventHandlers.Origin): ReadonlyArray<Deadlines.Change> => [clear(origin, "mail")]
const answered = (_: unknown, origin: EventHandlers.Origin): ReadonlyArray<Deadlines.Change> => [clear(origin, "answer")]

const schedule = Deadlines.of(PriceAlert.PriceAlert, {
  PriceAlertArmed: over,
  PriceAlertReached: (_, origin) => [set(origin, "mail", origin.at)],
  AlertMailSending: (_, origin) => [clear(origin, "mail"), set(origin, "answer", origin.at + PriceAlert.DOUBT_AFTER)],
  AlertMailSent: answered,
  AlertMailRefused: ({ retryAt }, origin) => [clear(origin, "answer"), ...(retryAt === null ? [] : [set(origin, "mail", retryAt)])],
  AlertMailInDoubt: answered,
  AlertMailWithheld: over,
  PriceAlertEnded: over
})

type Relay = MailRelay["Service"]

/** An outcome that cannot be written is in doubt once its time is over. */
const NOTED = { times: 6, schedule: Schedule.exponential("100 millis") }

/** How long closing waits for mails that are being sent. */
const DRAIN = "10 seconds"

/** Runs work to its end, also where nobody waits for it any more: a mail whose answer nobody hears is in doubt. */
const finishing = Effect.gen(function* () {
  const fibers = yield* FiberSet.make()
  yield* Effect.addFinalizer(() => Effect.timeoutOption(Effect.interruptible(FiberSet.awaitEmpty(fibers)), DRAIN))
  return <E, R>(work: Effect.Effect<void, E, R>): Effect.Effect<void, E, R> => Effect.flatMap(FiberSet.run(fibers, work), Fiber.join)
})

/** Sends the mail that an alert waits for, as the account stands now. */
const sending = Effect.fnUntraced(function* (relay: Relay, { service, url }: PublicAddress["Service"]) {
  const { alerts, end, subjectOf, unsubscribeOf } = yield* PriceAlerts
  const ledger = yield* Ledger
  const registration = yield* Registration
  const finish = yield* finishing

  /** The mail; undefined if it is not to be sent, which is noted. */
  const compose = Effect.fnUntraced(function* (alertId: string, terms: PriceAlert.Terms, fall: PriceAlert.Waiting) {
    const { accountId, target } = terms
    const withhold = (reason: PriceAlert.WithheldReason) => Effect.asVoid(alerts.execute(alertId, PriceAlert.withhold(fall.fall, reason)))
    const { status } = (yield* ledger.read(accountId)).state
    if (status === "closed") return yield* end(alertId, "accountClosed")
    if (status === "suspended") return yield* withhold("suspended")
    const to = yield* registration.email(accountId)
    if (status !== "verified" || to === undefined) return yield* withhold("unverified")
    const product = yield* subjectOf(terms)
    const links = { host: yield* url, unsubscribe: yield* unsubscribeOf(alertId) }
    return AlertMail.mailOf({ to, product, target, fall, alertId, service, ...links, now: yield* Clock.currentTimeMillis })
  })

  const conclude = Effect.fnUntraced(function* (
    alertId: string,
    mail: PriceAlert.Waiting,
    error: MailNotSent | MailNotConfigured | undefined
  ) {
    const isLost = error?._tag === "MailNotSent" && error.outcome === "unknown"
    const decision =
      error === undefined
        ? PriceAlert.conclude(mail, "AlertMailSent")
        : isLost
          ? PriceAlert.conclude(mail, "AlertMailInDoubt")
          : PriceAlert.refuse(mail, error._tag === "MailNotSent" ? error.reason : error._tag)
    if (error !== undefined) {
      const fate = isLost ? "may have been sent, and is not sent again" : "was not sent"
      yield* Effect.logWarning(`The mail of a price alert ${fate}`, { alertId, attempt: mail.attempt, reason: error.message })
    }
    yield* Effect.retry(alerts.execute(alertId, decision), NOTED)
  })

  const post = Effect.fnUntraced(function* (alertId: string, waiting: PriceAlert.Waiting, mail: OutgoingMail) {
    const { events } = yield* alerts.execute(alertId, PriceAlert.send(waiting))
    // Only who wrote that it sends may send
    if (!events.some(({ _tag }) => _tag === "AlertMailSending")) return
    const result = yield* Effect.result(relay.send(mail))
    yield* conclude(alertId, waiting, result._tag === "Failure" ? result.failure : undefined)
  })

  return Effect.fn("PriceAlertUpkeep.send")(function* (alertId: string) {
    const { state, at } = yield* alerts.read(alertId)
    const { terms, waiting } = state
    if (terms === undefined || waiting === undefined || at < waiting.dueAt || state.sending !== undefined) return
    const mail = yield* compose(alertId, terms, waiting).pipe(
      // Erased meanwhile
      Effect.catchTag("SubjectDestroyed", () => end(alertId, "accountClosed")),
      Effect.catchTag("AccountNotFound", Effect.die)
    )
    if (mail === undefined) return
    yield* finish(post(alertId, waiting, mail))
  })
})

// the service

const make = Effect.fnUntraced(function* (options: Deadlines.Options = {}) {
  const { address, alerts, configured, relay } = yield* PriceAlerts
  const reaction = yield* Reaction.make(
    { name: "priceAlerts", start: "beginning", ...(yield* takingUp) },
    { ...options, checkpointEvery: CHECKPOINT_EVERY }
  )
  if (relay === undefined || (yield* Effect.isFailure(configured))) return { status: Effect.map(reaction.status, (prices) => ({ prices })) }
  const send = yield* sending(relay, address as PublicAddress["Service"])
  const onDue = ({ key }: Deadlines.Deadline) => {
    const [alertId = "", what] = key.split("/")
    return what === "mail" ? send(alertId) : Effect.asVoid(alerts.execute(alertId, PriceAlert.doubt))
  }
  const mails = yield* Deadlines.make({ name: "priceAlertMails", version: 1, ...schedule, onDue }, options)
  return { status: Effect.all({ prices: reaction.status, mails: mails.status }) }
})

export class PriceAlertUpkeep extends Context.Service<
  PriceAlertUpkeep,
  { readonly status: Effect.Effect<{ readonly prices: Reaction.Status; readonly mails?: Deadlines.Status }> }
>()("@millrace/core/alerts/PriceAlertUpkeep") {
  static readonly layer = (
    options?: Deadlines.Options
  ): Layer.Layer<
    PriceAlertUpkeep,
    never,
    PriceAlerts | PriceObservations | Ledger | Registration | EventStore.EventStore | StateStore.StateStore
  > => Layer.effect(this, make(options))
}
