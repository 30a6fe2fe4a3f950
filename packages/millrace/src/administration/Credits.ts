/** Acts on the credits of accounts. Amounts in credits, but for those that are given. */
import {
  Credits,
  Decisions,
  History,
  Ledger,
  Lots,
  lotIdOfPayment,
  newGrantId,
  newLotId,
  Payments,
  Periods,
  RecurringGrants
} from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import { type Failure, fail } from "../Failure.ts"
import { resolve } from "./Accounts.ts"
import { type Act, dateOf } from "./Act.ts"

/** Why credits are granted. What was paid for has the payment's reference, and the same payment grants once. */
export type Grant = { readonly amount: Credits.Credits; readonly expiresAt?: Date | undefined } & (
  | { readonly source: "topup" | "subscription"; readonly paymentRef: string }
  | { readonly source: "signup" | "promotion" | "adjustment"; readonly paymentRef?: undefined }
)

export interface Granted {
  readonly lot: string
  readonly balance: number
}

/** Credits that are granted each period, from now on. */
export interface Recurring {
  readonly amount: Credits.Credits
  readonly source: "promotion" | "adjustment"
  readonly every: Periods.Every
  /** No period begins then or later. The grant goes on until it is stopped, when left out. */
  readonly until?: Date | undefined
  /** Whether each lot expires when the next one comes: `next`, the default, or `never`. */
  readonly expires?: "next" | "never" | undefined
}

/** A recurring grant that was started: `lot` is the lot of its first period, and `next` is when the next period begins. */
export interface Started extends Granted {
  readonly grant: string
  readonly next: Date | null
}

export interface ListedGrant {
  readonly grant: string
  readonly amount: number
  readonly source: Lots.LotSource
  readonly every: Periods.Every
  readonly expires: "next" | "never"
  readonly since: Date
  readonly until: Date | null
  readonly next: Date
}

export interface Refunded {
  readonly reservation: string
  readonly account: string
  readonly refunded: number
  readonly balance: number
}

export interface ClawedBack {
  readonly lot: string
  readonly account: string
  readonly clawedBack: number
  readonly balance: number
}

/** What an account has, by lot and by hold. */
export interface Balance {
  readonly account: string
  readonly available: number
  readonly held: number
  readonly debt: number
  /** Below it, the balance is told as low. Null for none. */
  readonly threshold: number | null
  /** The recurring grants that go on. */
  readonly recurring: ReadonlyArray<ListedGrant>
  readonly at: Date
  readonly lots: ReadonlyArray<{
    readonly lot: string
    readonly source: Lots.LotSource
    readonly remaining: number
    readonly expiresAt: Date | null
  }>
  readonly holds: ReadonlyArray<{
    readonly reservation: string
    readonly operation: string
    readonly amount: number
    readonly request: string
    readonly expiresAt: Date | null
  }>
}

export const grant = (name: string, { amount, expiresAt, ...given }: Grant, metadata: Aggregate.Metadata): Act<Granted> =>
  Effect.gen(function* () {
    const account = yield* resolve(name)
    if (expiresAt !== undefined && expiresAt.getTime() <= (yield* Clock.currentTimeMillis))
      return yield* fail("the expiry lies in the past")
    if (!Lots.LotSource.literals.includes(given.source))
      return yield* fail(`credits are granted as ${Lots.LotSource.literals.join(", ")}, and not as ${String(given.source)}`)
    if (Lots.isPaid(given.source) !== (given.paymentRef !== undefined))
      return yield* fail(`credits granted as ${given.source} ${Lots.isPaid(given.source) ? "need the" : "have no"} reference of a payment`)
    const terms = { amount, expiresAt: expiresAt?.getTime() ?? null }
    if (given.paymentRef !== undefined) {
      const granted = yield* Payments.use((payments) => payments.grant(account, { ...terms, ...given }, metadata))
      return { lot: lotIdOfPayment(given.paymentRef), balance: availableOf(granted) }
    }
    const lot = yield* newLotId
    const decide = Decisions.grant({ ...terms, source: given.source, lotId: lot })
    return { lot, balance: availableOf(yield* Ledger.use((ledger) => ledger.execute(account, decide, metadata))) }
  })

/** Starts a recurring grant, and grants the lot of its first period. */
export const start = (name: string, { amount, every, expires, source, until }: Recurring, metadata: Aggregate.Metadata): Act<Started> =>
  Effect.gen(function* () {
    const account = yield* resolve(name)
    if (!Periods.Every.literals.includes(every))
      return yield* fail(`credits are granted every ${Periods.Every.literals.join(", ")}, and not every ${String(every)}`)
    if (Lots.isPaid(source))
      return yield* fail(`credits granted as ${source} need the reference of a payment for each lot, so grant them when they are paid`)
    if (source !== "promotion" && source !== "adjustment")
      return yield* fail(`credits recur as promotion or adjustment, and not as ${String(source)}`)
    if (expires !== undefined && expires !== "next" && expires !== "never")
      return yield* fail(`the lots of a recurring grant expire next or never, and not ${String(expires)}`)
    if (amount === 0) return yield* fail("a recurring grant of no credits grants nothing")
    if (until !== undefined && until.getTime() <= (yield* Clock.currentTimeMillis)) return yield* fail("its end lies in the past")
    const grant = yield* newGrantId
    const terms = { grantId: grant, amount, source, every, until: until?.getTime() ?? null, ...(expires === undefined ? {} : { expires }) }
    const started = yield* Ledger.use((ledger) => ledger.execute(account, Decisions.startRecurringGrant(terms), metadata))
    const next = RecurringGrants.find(started.state.recurring, grant)
    return { grant, lot: RecurringGrants.lotIdOf(grant, 0), balance: availableOf(started), next: dateOf(next?.dueAt) }
  })

/** The recurring grants of an account that go on, in the order in which they were started. */
export const recurring = (name: string): Act<ReadonlyArray<ListedGrant>> =>
  Effect.map(balance(name, undefined), ({ recurring }) => recurring)

/** Stops a recurring grant. The lots that it granted stay. */
export const stop = (
  name: string,
  grant: string,
  metadata: Aggregate.Metadata
): Act<{ readonly account: string; readonly grant: string }> =>
  Effect.gen(function* () {
    const account = yield* resolve(name)
    yield* Ledger.use((ledger) => ledger.execute(account, Decisions.stopRecurringGrant(grant), metadata))
    return { account, grant }
  })

const listedOf = ({ amount, anchor, dueAt, every, expires, grantId, source, until }: RecurringGrants.RecurringGrant): ListedGrant => ({
  ...{ grant: grantId, amount: Credits.toDecimal(amount), source, every, expires },
  ...{ since: new Date(anchor), until: dateOf(until), next: new Date(dueAt) }
})

const availableOf = ({
  at,
  state
}: Pick<Aggregate.Current<{ readonly purse: { readonly lots: ReadonlyArray<Lots.Lot> } }>, "at" | "state">) =>
  Credits.toDecimal(Lots.available(state.purse.lots, at))

/** Refunds what a call was charged, or a part of it, as goodwill. */
export const refund = (reservation: string, amount: Credits.Credits | undefined, metadata: Aggregate.Metadata): Act<Refunded> =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const [history] = yield* History.reservations({ reservationId: reservation })
    if (history === undefined) return yield* new Decisions.ReservationNotFound({ reservationId: reservation })
    const refund = { reason: "goodwill", ...(amount === undefined ? {} : { amount }) } as const
    const committed = yield* ledger.refund(history.accountId, reservation, refund, metadata)
    const given = committed.events.find((event) => event._tag === "Refunded")
    const refunded = given?._tag === "Refunded" ? Credits.toDecimal(given.amount) : 0
    return { reservation, account: history.accountId, refunded, balance: availableOf(committed) }
  })

/** Takes a paid lot back, as after a chargeback. */
export const clawBack = (lot: string, metadata: Aggregate.Metadata): Act<ClawedBack> =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const account = yield* History.accountOfLot(lot)
    if (account === undefined) return yield* new Decisions.LotNotFound({ lotId: lot })
    const committed = yield* ledger.execute(account, Decisions.clawBack(lot), metadata)
    const taken = committed.events.find((event) => event._tag === "CreditsClawedBack")
    const clawedBack = taken?._tag === "CreditsClawedBack" ? Credits.toDecimal(taken.amount) : 0
    return { lot, account, clawedBack, balance: availableOf(committed) }
  })

/** What an account has, now or at a past time. */
export const balance = (name: string, at: Date | undefined): Act<Balance> =>
  Effect.flatMap(resolve(name), (account) => balanceOf(account, at))

/** The same by the account's own id, for which the log is enough. */
export const balanceOf = (account: string, at: Date | undefined): Effect.Effect<Balance, Failure, Ledger> =>
  Effect.gen(function* () {
    const { available, debt, held, recurring, threshold, ...balance } = yield* Ledger.use((ledger) =>
      ledger.balance(account, at?.getTime())
    )
    return {
      account,
      available: Credits.toDecimal(available),
      held: Credits.toDecimal(held),
      debt: Credits.toDecimal(debt),
      threshold: threshold === null ? null : Credits.toDecimal(threshold),
      recurring: recurring.map(listedOf),
      at: new Date(balance.at),
      lots: balance.lots.map(({ expiresAt, left, lotId, source }) => ({
        ...{ lot: lotId, source, remaining: Credits.toDecimal(left) },
        expiresAt: dateOf(expiresAt)
      })),
      holds: balance.holds.map(({ acceptBy, amount, expiresAt, operation, requestId, reservationId }) => ({
        ...{ reservation: reservationId, operation, amount: Credits.toDecimal(amount), request: requestId },
        expiresAt: dateOf(expiresAt ?? acceptBy)
      }))
    }
  })
