/**
 * A price alert: an account asked to be told once the price of a product is at a target or below. There is one for each product and account.
 * It is armed while the price is above the target. A *fall* disarms it and asks for one mail. A price above the target arms it again.
 *
 * A mail is noted before it is sent. Where nobody knows whether it arrived, it is not sent again. Stream `priceAlert-{HMAC of account and
 * product}`.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import * as PriceSeries from "../prices/PriceSeries.ts"
import { Timestamp } from "../Timestamp.ts"

const MINUTE = 60_000

/** Pauses after each refusal of a mail, in minutes. After the last one it is given up. */
export const PAUSES = [1, 5, 15, 60, 180, 360, 720] as const

/** How long after a fall its mail may be sent: 24 hours, in milliseconds. Later the price says nothing any more. */
export const TOLD_WITHIN = 24 * 60 * MINUTE

/** When a mail without an outcome is in doubt: 5 minutes, in milliseconds. A relay answers within seconds. */
export const DOUBT_AFTER = 5 * MINUTE

// events

/** A price that this host read. */
export const Observed = Schema.Struct({
  price: PriceSeries.Price,
  /** ISO 4217; null where the shop did not tell. */
  currency: Schema.NullOr(Schema.String),
  /** Of its event in the stream of the product. */
  revision: Schema.Int
})
export type Observed = typeof Observed.Type

/** `late`: nothing could send it in time. */
export const WithheldReason = Schema.Literals(["suspended", "unverified", "late"])
export type WithheldReason = typeof WithheldReason.Type

export const EndReason = Schema.Literals(["unsubscribed", "accountClosed"])
export type EndReason = typeof EndReason.Type

const mail = { fall: Schema.Int, attempt: Schema.Int }

export const PriceAlertEvent = Schema.TaggedUnion({
  /** Again for an alert that is active: the target is replaced. */
  PriceAlertRegistered: {
    accountId: Schema.String,
    /** HMAC of the product's id. */
    product: Schema.String,
    target: PriceSeries.Price,
    /** Name, address and id of the product, sealed for the account. */
    sealed: Schema.String,
    /** The newest price then; null where none was read. */
    observed: Schema.NullOr(Observed),
    /** Of the call. */
    reservationId: Schema.String
  },
  /** The price is above the target, and was not before. */
  PriceAlertArmed: { observed: Observed },
  /** The price is at the target or below. Falls are counted from 1. */
  PriceAlertReached: { fall: Schema.Int, observed: Observed },
  AlertMailSending: mail,
  AlertMailSent: mail,
  /** It surely did not arrive. `retryAt`: null where it is given up. */
  AlertMailRefused: { ...mail, reason: Schema.String, retryAt: Schema.NullOr(Timestamp) },
  /** Nobody knows whether it arrived. */
  AlertMailInDoubt: mail,
  /** It is not sent at all. */
  AlertMailWithheld: { fall: Schema.Int, reason: WithheldReason },
  PriceAlertEnded: { reason: EndReason }
})
export type PriceAlertEvent = typeof PriceAlertEvent.Type

type EventOf<Tag extends PriceAlertEvent["_tag"]> = Extract<PriceAlertEvent, { readonly _tag: Tag }>

export type Terms = Omit<EventOf<"PriceAlertRegistered">, "_tag" | "observed">

// state

/** The mail of a fall that is to be sent. */
export interface Waiting {
  readonly fall: number
  /** From 1. */
  readonly attempt: number
  readonly observed: Observed
  readonly dueAt: Timestamp
  /** Then it is too late. */
  readonly until: Timestamp
}

/** The mail of a fall that was handed over, or is about to be. */
export interface Sending extends Waiting {
  readonly at: Timestamp
}

export interface PriceAlert {
  readonly status: "absent" | "active" | "ended"
  /** The newest ones; undefined while absent. */
  readonly terms: Terms | undefined
  /** Prices in another one are not compared. Undefined until a price was known at a registration. */
  readonly currency: string | null | undefined
  /** The newest price that changed anything. */
  readonly last: Observed | undefined
  readonly armed: boolean
  /** So many so far. */
  readonly falls: number
  readonly waiting: Waiting | undefined
  readonly sending: Sending | undefined
}

export const ABSENT: PriceAlert = {
  status: "absent",
  terms: undefined,
  currency: undefined,
  last: undefined,
  armed: false,
  falls: 0,
  waiting: undefined,
  sending: undefined
}

const newer = (a: Observed | undefined, b: Observed | undefined): Observed | undefined =>
  a === undefined || (b !== undefined && b.revision > a.revision) ? b : a

const isAt = (target: string, { price }: Observed): boolean => PriceSeries.compare(price, target) <= 0

const evolve = (alert: PriceAlert, event: PriceAlertEvent, at: Timestamp): PriceAlert => {
  switch (event._tag) {
    case "PriceAlertRegistered":
      return registered(alert, event)
    case "PriceAlertArmed":
      if (alert.armed || isAt(targetOf(alert), event.observed)) throw new Error("It is armed by a price above the target")
      return { ...alert, armed: true, last: event.observed, waiting: undefined }
    case "PriceAlertReached":
      if (!alert.armed || event.fall !== alert.falls + 1 || !isAt(targetOf(alert), event.observed))
        throw new Error("A fall is from above the target to it or below")
      return {
        ...alert,
        ...{ armed: false, falls: event.fall, last: event.observed },
        waiting: { fall: event.fall, attempt: 1, observed: event.observed, dueAt: at, until: at + TOLD_WITHIN }
      }
    case "AlertMailWithheld":
      if (alert.waiting?.fall !== event.fall) throw new Error("No mail of this fall is to be sent")
      return { ...alert, waiting: undefined }
    case "PriceAlertEnded":
      targetOf(alert)
      return { ...alert, status: "ended", armed: false, waiting: undefined }
    default:
      return mailed(alert, event, at)
  }
}

/** The target of an alert that is active. */
const targetOf = ({ status, terms }: PriceAlert): string => {
  if (status !== "active" || terms === undefined) throw new Error("The alert is not active")
  return terms.target
}

const registered = (alert: PriceAlert, { _tag, observed, ...terms }: EventOf<"PriceAlertRegistered">): PriceAlert => {
  const { accountId, product } = alert.terms ?? terms
  if (accountId !== terms.accountId || product !== terms.product) throw new Error("The alert is of another account or product")
  return {
    ...alert,
    ...{ status: "active", terms, armed: alert.status === "active" ? alert.armed : true },
    currency: observed === null ? alert.currency : observed.currency,
    last: newer(alert.last, observed ?? undefined)
  }
}

type MailEvent = EventOf<"AlertMailSending" | "AlertMailSent" | "AlertMailRefused" | "AlertMailInDoubt">

const mailed = (alert: PriceAlert, event: MailEvent, at: Timestamp): PriceAlert => {
  const { sending, waiting } = alert
  if (event._tag === "AlertMailSending") {
    if (waiting === undefined || sending !== undefined || !isSame(waiting, event) || at < waiting.dueAt)
      throw new Error("A mail is sent when it is due, after the one before it")
    return { ...alert, waiting: undefined, sending: { ...waiting, at } }
  }
  if (sending === undefined || !isSame(sending, event)) throw new Error("No such mail was being sent")
  const ended = { ...alert, sending: undefined }
  if (event._tag !== "AlertMailRefused" || event.retryAt === null) return ended
  if (!isToBeTold(alert)) throw new Error("The mail of a fall that is over is not sent again")
  const { at: _, ...before } = sending
  return { ...ended, waiting: { ...before, attempt: sending.attempt + 1, dueAt: event.retryAt } }
}

const isSame = (mail: { readonly fall: number; readonly attempt: number }, other: { readonly fall: number; readonly attempt: number }) =>
  mail.fall === other.fall && mail.attempt === other.attempt

/** Whether the fall of the mail that is being sent still stands. */
const isToBeTold = ({ armed, sending, falls, status, waiting }: PriceAlert): boolean =>
  status === "active" && !armed && waiting === undefined && sending?.fall === falls

export const PriceAlert: Decider<PriceAlert, PriceAlertEvent> = {
  category: "priceAlert",
  codec: EventCodec.make(PriceAlertEvent),
  initial: ABSENT,
  evolve
}

// decisions

const NOTHING: ReadonlyArray<PriceAlertEvent> = []

/** What an armed, or disarmed, alert makes of a price. */
const changeBy = (armed: boolean, target: string, falls: number, observed: Observed): ReadonlyArray<PriceAlertEvent> => {
  if (isAt(target, observed)) return armed ? [{ _tag: "PriceAlertReached", fall: falls + 1, observed }] : NOTHING
  return armed ? NOTHING : [{ _tag: "PriceAlertArmed", observed }]
}

/**
 * Registers an alert, or replaces the target of one that is active. A price that is at the target already is a fall, unless it is that of a
 * fall before, above whose target no price was read since.
 */
export const register =
  (terms: Terms, observed: Observed | null) =>
  (alert: PriceAlert): Decision<PriceAlertEvent> => {
    const known = newer(alert.last, observed ?? undefined)
    const armed = alert.status === "active" ? alert.armed : true
    return Result.succeed([
      { _tag: "PriceAlertRegistered", ...terms, observed: known ?? null },
      ...(known === undefined ? [] : changeBy(armed, terms.target, alert.falls, known))
    ])
  }

/** Takes up a price that was read. A price that came before one that is known, or is in another currency, decides nothing. */
export const observe =
  (observed: Observed) =>
  (alert: PriceAlert): Decision<PriceAlertEvent> => {
    const { armed, currency, falls, last, status, terms } = alert
    if (status !== "active" || terms === undefined || observed.revision <= (last?.revision ?? -1)) return Result.succeed(NOTHING)
    if (currency !== undefined && currency !== observed.currency) return Result.succeed(NOTHING)
    return Result.succeed(changeBy(armed, terms.target, falls, observed))
  }

type Mail = Pick<Waiting, "fall" | "attempt">

/** Begins to send a mail that is due. Whoever's decision this is sends it, and nobody else. */
export const send =
  ({ attempt, fall }: Mail) =>
  ({ sending, waiting }: PriceAlert, now: Timestamp): Decision<PriceAlertEvent> => {
    if (waiting === undefined || sending !== undefined || !isSame(waiting, { attempt, fall }) || now < waiting.dueAt)
      return Result.succeed(NOTHING)
    return Result.succeed([
      now < waiting.until ? { _tag: "AlertMailSending", fall, attempt } : { _tag: "AlertMailWithheld", fall, reason: "late" }
    ])
  }

/** Notes that the relay took the mail, or that nobody knows. What came after another outcome decides nothing. */
export const conclude =
  ({ attempt, fall }: Mail, _tag: "AlertMailSent" | "AlertMailInDoubt") =>
  ({ sending }: PriceAlert): Decision<PriceAlertEvent> =>
    Result.succeed(sending !== undefined && isSame(sending, { attempt, fall }) ? [{ _tag, fall, attempt }] : NOTHING)

/** Notes that the mail was refused before it was handed over as a whole. It is sent again after a pause, while its fall stands. */
export const refuse =
  ({ attempt, fall }: Mail, reason: string) =>
  (alert: PriceAlert, now: Timestamp): Decision<PriceAlertEvent> => {
    const { sending } = alert
    if (sending === undefined || !isSame(sending, { attempt, fall })) return Result.succeed(NOTHING)
    const pause = PAUSES[attempt - 1]
    const retryAt = pause === undefined || !isToBeTold(alert) ? null : now + pause * MINUTE
    return Result.succeed([{ _tag: "AlertMailRefused", fall, attempt, reason, retryAt }])
  }

/** Gives up to learn what became of a mail whose sender is gone. */
export const doubt = ({ sending }: PriceAlert, now: Timestamp): Decision<PriceAlertEvent> =>
  Result.succeed(
    sending === undefined || now < sending.at + DOUBT_AFTER
      ? NOTHING
      : [{ _tag: "AlertMailInDoubt", fall: sending.fall, attempt: sending.attempt }]
  )

/** Leaves the mail of a fall unsent. */
export const withhold =
  (fall: number, reason: WithheldReason) =>
  ({ waiting }: PriceAlert): Decision<PriceAlertEvent> =>
    Result.succeed(waiting?.fall === fall ? [{ _tag: "AlertMailWithheld", fall, reason }] : NOTHING)

export const end =
  (reason: EndReason) =>
  ({ status }: PriceAlert): Decision<PriceAlertEvent> =>
    Result.succeed(status === "active" ? [{ _tag: "PriceAlertEnded", reason }] : NOTHING)
