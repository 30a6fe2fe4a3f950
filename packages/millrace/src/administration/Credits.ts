/** Acts on the credits of an account, for the command line and for hosts: amounts in credits. */
import { Credits, Decisions, History, Ledger, Lots, lotIdOfPayment, newLotId, Payments } from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Clock, Effect, Schema } from "effect"
import { dateOf } from "./Keys.ts"

/** Why credits are granted. What was paid for has the payment's reference, and the same payment grants once. */
export type Grant = { readonly amount: Credits.Credits; readonly expiresAt?: Date | undefined } & (
  | { readonly source: "topup" | "subscription"; readonly paymentRef: string }
  | { readonly source: "signup" | "promotion" | "adjustment"; readonly paymentRef?: undefined }
)

/** The grant names a time that is over. */
export class ExpiryInPast extends Schema.TaggedError<ExpiryInPast>()("ExpiryInPast", {}) {
  override get message(): string {
    return "the expiry lies in the past"
  }
}

export const grant = Effect.fnUntraced(function* (account: string, { amount, expiresAt, ...given }: Grant, metadata: Aggregate.Metadata) {
  if (expiresAt !== undefined && expiresAt.getTime() <= (yield* Clock.currentTimeMillis)) return yield* new ExpiryInPast()
  const terms = { amount, expiresAt: expiresAt?.getTime() ?? null }
  const { lotId, granted } =
    given.paymentRef === undefined
      ? yield* grantUnpaid(account, { ...terms, source: given.source }, metadata)
      : {
          lotId: lotIdOfPayment(given.paymentRef),
          granted: yield* Payments.use((payments) => payments.grant(account, { ...terms, ...given }, metadata))
        }
  return { lot: lotId, balance: balanceOf(granted) }
})

const grantUnpaid = Effect.fnUntraced(function* (account: string, terms: Omit<Decisions.Grant, "lotId">, metadata: Aggregate.Metadata) {
  const lotId = yield* newLotId
  return { lotId, granted: yield* Ledger.use((ledger) => ledger.execute(account, Decisions.grant({ ...terms, lotId }), metadata)) }
})

const balanceOf = ({
  at,
  state
}: {
  readonly at: number
  readonly state: { readonly purse: { readonly lots: ReadonlyArray<Lots.Lot> } }
}) => Credits.toDecimal(Lots.available(state.purse.lots, at))

/** Refunds what a call was charged, or a part of it, as goodwill. */
export const refund = Effect.fnUntraced(function* (reservation: string, amount: Credits.Credits | undefined, metadata: Aggregate.Metadata) {
  const ledger = yield* Ledger
  const [history] = yield* History.reservations({ reservationId: reservation })
  if (history === undefined) return yield* new Decisions.ReservationNotFound({ reservationId: reservation })
  const refund = { reason: "goodwill", ...(amount === undefined ? {} : { amount }) } as const
  const committed = yield* ledger.refund(history.accountId, reservation, refund, metadata)
  const given = committed.events.find((event) => event._tag === "Refunded")
  return {
    reservation,
    account: history.accountId,
    refunded: given?._tag === "Refunded" ? Credits.toDecimal(given.amount) : 0,
    balance: balanceOf(committed)
  }
})

/** Takes a paid lot back, as after a chargeback. */
export const clawBack = Effect.fnUntraced(function* (lot: string, metadata: Aggregate.Metadata) {
  const ledger = yield* Ledger
  const account = yield* History.accountOfLot(lot)
  if (account === undefined) return yield* new Decisions.LotNotFound({ lotId: lot })
  const committed = yield* ledger.execute(account, Decisions.clawBack(lot), metadata)
  const taken = committed.events.find((event) => event._tag === "CreditsClawedBack")
  return {
    lot,
    account,
    clawedBack: taken?._tag === "CreditsClawedBack" ? Credits.toDecimal(taken.amount) : 0,
    balance: balanceOf(committed)
  }
})

/** What an account has, now or at a past time. */
export const balance = Effect.fnUntraced(function* (account: string, at: Date | undefined) {
  const { available, debt, held, ...balance } = yield* Ledger.use((ledger) => ledger.balance(account, at?.getTime()))
  return {
    account,
    available: Credits.toDecimal(available),
    held: Credits.toDecimal(held),
    debt: Credits.toDecimal(debt),
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
