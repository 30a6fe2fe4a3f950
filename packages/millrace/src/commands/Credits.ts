/** Credits of an account: granted, refunded, clawed back. */

import { Credits, Decisions, History, Ledger, Lots, lotIdOfPayment, newLotId, type PaidGrant, Payments } from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Clock, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import { CommandFailed } from "../Failure.ts"
import * as Output from "../Output.ts"

const { account, by, reason, store } = Administration
const { json } = Output

const grantPaid = Effect.fnUntraced(function* (
  account: string,
  terms: Omit<PaidGrant, "paymentRef">,
  given: Option.Option<string>,
  metadata: Aggregate.Metadata
) {
  if (Option.isNone(given)) {
    return yield* Effect.fail(new CommandFailed(`--source ${terms.source} needs --payment-ref: the payment it was bought with`))
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
  if (Option.isSome(paymentRef)) return yield* Effect.fail(new CommandFailed("--payment-ref goes with --source topup or subscription"))
  const ledger = yield* Ledger
  const lotId = yield* newLotId
  return { lotId, granted: yield* ledger.execute(account, Decisions.grant({ ...terms, lotId }), metadata) }
})

const grant = Command.make(
  "grant",
  {
    store,
    account,
    amount: Administration.amount,
    source: Flag.Literals("source", Lots.LotSource.literals).pipe(Flag.withDescription("Why they are granted")),
    expiresAt: Administration.time("expires-at", "When what is left of them expires; never, when left out"),
    paymentRef: Administration.id("payment-ref", "Id of the payment that bought them; the same payment grants once").pipe(Flag.optional),
    by,
    reason,
    json
  },
  ({ account, amount, source, expiresAt, paymentRef, store, json, ...flags }) =>
    Effect.gen(function* () {
      if (Option.isSome(expiresAt) && expiresAt.value <= (yield* Clock.currentTimeMillis)) {
        return yield* Effect.fail(new CommandFailed("the expiry lies in the past"))
      }
      const metadata = Administration.metadata("credits grant", flags)
      const terms = { amount, expiresAt: Option.getOrNull(expiresAt) }
      const { lotId, granted } =
        source === "topup" || source === "subscription"
          ? yield* grantPaid(account, { ...terms, source }, paymentRef, metadata)
          : yield* grantUnpaid(account, { ...terms, source }, paymentRef, metadata)
      yield* Output.print(json, { lot: lotId, balance: Credits.toDecimal(Lots.available(granted.state.purse.lots, granted.at)) })
    }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withDescription("Grant credits: they count with the account's next call"),
  Command.withExamples([
    {
      command: "millrace credits grant --account acc_01M7YKD46JCP6VGMKADN3JSPJP --amount 100 --source promotion",
      description: "A hundred credits that never expire"
    }
  ])
)

const refund = Command.make(
  "refund",
  {
    store,
    reservation: Administration.id("reservation", "Id of the reservation: res_..."),
    amount: Flag.optional(Administration.amount),
    by,
    reason,
    json
  },
  ({ reservation, amount, store, json, ...flags }) =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const [history] = yield* History.reservations({ reservationId: reservation })
      if (history === undefined) return yield* new Decisions.ReservationNotFound({ reservationId: reservation })
      const { events, state, at } = yield* ledger.refund(
        history.accountId,
        reservation,
        { reason: "goodwill", ...(Option.isSome(amount) ? { amount: amount.value } : {}) },
        Administration.metadata("credits refund", flags)
      )
      const given = events.find((event) => event._tag === "Refunded")
      yield* Output.print(json, {
        reservation,
        account: history.accountId,
        refunded: given?._tag === "Refunded" ? Credits.toDecimal(given.amount) : 0,
        balance: Credits.toDecimal(Lots.available(state.purse.lots, at))
      })
    }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withDescription("Refund what a call was charged, or some of it, as goodwill"),
  Command.withExamples([
    { command: "millrace credits refund --reservation res_01M7YKD46JCP6VGMKADN3JSPJP --amount 0.5", description: "Half a credit of it" }
  ])
)

const clawBack = Command.make(
  "claw-back",
  {
    store,
    lot: Administration.id("lot", "Id of the lot that the payment bought: lot_..."),
    by,
    reason,
    json
  },
  ({ lot, store, json, ...flags }) =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const accountId = yield* History.accountOfLot(lot)
      if (accountId === undefined) return yield* new Decisions.LotNotFound({ lotId: lot })
      const { events, state, at } = yield* ledger.execute(
        accountId,
        Decisions.clawBack(lot),
        Administration.metadata("credits claw-back", flags)
      )
      const taken = events.find((event) => event._tag === "CreditsClawedBack")
      yield* Output.print(json, {
        lot,
        account: accountId,
        clawedBack: taken?._tag === "CreditsClawedBack" ? Credits.toDecimal(taken.amount) : 0,
        balance: Credits.toDecimal(Lots.available(state.purse.lots, at))
      })
    }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withDescription("Take a paid lot back, as after a chargeback: what was spent of it becomes debt"),
  Command.withExamples([
    { command: "millrace credits claw-back --lot lot_01M7YKD46JCP6VGMKADN3JSPJP --reason chargeback", description: "The whole lot" }
  ])
)

export const credits = Administration.group("credits", "Grant, refund and claw back credits", [grant, refund, clawBack])
