/** Credits of an account: granted, refunded, clawed back. */

import { Credits, Decisions, History, Ledger, Lots, lotIdOfPayment, newLotId, type PaidGrant, Payments } from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Clock, Effect, Option } from "effect"
import { Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import { fail } from "../Failure.ts"

const grantPaid = Effect.fnUntraced(function* (
  account: string,
  terms: Omit<PaidGrant, "paymentRef">,
  given: Option.Option<string>,
  metadata: Aggregate.Metadata
) {
  if (Option.isNone(given)) {
    return yield* fail(`--source ${terms.source} needs --payment-ref: the payment it was bought with`)
  }
  const paymentRef = given.value
  const granted = yield* Payments.use((payments) => payments.grant(account, { ...terms, paymentRef }, metadata))
  return { lotId: lotIdOfPayment(paymentRef), granted }
})

const grantUnpaid = Effect.fnUntraced(function* (
  account: string,
  terms: Omit<Decisions.Grant, "lotId">,
  paymentRef: Option.Option<string>,
  metadata: Aggregate.Metadata
) {
  if (Option.isSome(paymentRef)) return yield* fail("--payment-ref goes with --source topup or subscription")
  const ledger = yield* Ledger
  const lotId = yield* newLotId
  return { lotId, granted: yield* ledger.execute(account, Decisions.grant({ ...terms, lotId }), metadata) }
})

const grant = Administration.act(
  "credits grant",
  "Grant credits: they count with the account's next call",
  {
    "millrace credits grant --account acc_01M7YKD46JCP6VGMKADN3JSPJP --amount 100 --source promotion":
      "Grant a hundred credits that never expire"
  },
  {
    account: Administration.account,
    amount: Administration.amount,
    source: Flag.Literals("source", Lots.LotSource.literals).pipe(Flag.withDescription("Why they are granted")),
    expiresAt: Administration.time("expires-at", "When what is left of them expires; never, when left out"),
    paymentRef: Administration.id("payment-ref", "Id of the payment that bought them; the same payment grants once").pipe(Flag.optional)
  },
  Effect.fnUntraced(function* ({ account, amount, source, expiresAt, paymentRef }, metadata) {
    if (Option.isSome(expiresAt) && expiresAt.value <= (yield* Clock.currentTimeMillis)) return yield* fail("the expiry lies in the past")
    const terms = { amount, expiresAt: Option.getOrNull(expiresAt) }
    const { lotId, granted } =
      source === "topup" || source === "subscription"
        ? yield* grantPaid(account, { ...terms, source }, paymentRef, metadata)
        : yield* grantUnpaid(account, { ...terms, source }, paymentRef, metadata)
    return { lot: lotId, balance: balanceOf(granted) }
  })
)

const balanceOf = ({ state, at }: Effect.Success<ReturnType<Ledger["Service"]["execute"]>>): number =>
  Credits.toDecimal(Lots.available(state.purse.lots, at))

const refund = Administration.act(
  "credits refund",
  "Refund what a call was charged, or some of it, as goodwill",
  { "millrace credits refund --reservation res_01M7YKD46JCP6VGMKADN3JSPJP --amount 0.5": "Refund half a credit of a call" },
  {
    reservation: Administration.id("reservation", "Id of the reservation: res_..."),
    amount: Flag.optional(Administration.amount)
  },
  Effect.fnUntraced(function* ({ reservation, amount }, metadata) {
    const ledger = yield* Ledger
    const [history] = yield* History.reservations({ reservationId: reservation })
    if (history === undefined) return yield* new Decisions.ReservationNotFound({ reservationId: reservation })
    const terms = { reason: "goodwill" as const, ...(Option.isSome(amount) ? { amount: amount.value } : {}) }
    const refunded = yield* ledger.refund(history.accountId, reservation, terms, metadata)
    const given = refunded.events.find((event) => event._tag === "Refunded")
    return {
      reservation,
      account: history.accountId,
      refunded: given?._tag === "Refunded" ? Credits.toDecimal(given.amount) : 0,
      balance: balanceOf(refunded)
    }
  })
)

const clawBack = Administration.act(
  "credits claw-back",
  "Take a paid lot back, as after a chargeback: what was spent of it becomes debt",
  { "millrace credits claw-back --lot lot_01M7YKD46JCP6VGMKADN3JSPJP --reason chargeback": "Take the whole lot back" },
  { lot: Administration.id("lot", "Id of the lot that the payment bought: lot_...") },
  Effect.fnUntraced(function* ({ lot }, metadata) {
    const ledger = yield* Ledger
    const accountId = yield* History.accountOfLot(lot)
    if (accountId === undefined) return yield* new Decisions.LotNotFound({ lotId: lot })
    const clawedBack = yield* ledger.execute(accountId, Decisions.clawBack(lot), metadata)
    const taken = clawedBack.events.find((event) => event._tag === "CreditsClawedBack")
    return {
      lot,
      account: accountId,
      clawedBack: taken?._tag === "CreditsClawedBack" ? Credits.toDecimal(taken.amount) : 0,
      balance: balanceOf(clawedBack)
    }
  })
)

export const credits = Administration.group("credits", "Grant, refund and claw back credits", [grant, refund, clawBack])
