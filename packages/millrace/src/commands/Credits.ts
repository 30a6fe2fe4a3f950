/** `credits`: grant, refund, claw back. */
import { Credits, Decisions, History, Ledger, Lots, lotIdOfPayment, newLotId } from "@millrace/core"
import { Clock, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import { CommandFailed } from "../Failure.ts"
import * as Output from "../Output.ts"

const { account, by, reason, store } = Administration
const { json } = Output

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
      if (Lots.isPaid(source) !== Option.isSome(paymentRef)) {
        return yield* Effect.fail(
          new CommandFailed(
            Lots.isPaid(source)
              ? `--source ${source} needs --payment-ref: the payment it was bought with`
              : "--payment-ref goes with --source topup or subscription"
          )
        )
      }
      if (Option.isSome(expiresAt) && expiresAt.value <= (yield* Clock.currentTimeMillis)) {
        return yield* Effect.fail(new CommandFailed("the expiry lies in the past"))
      }
      const ledger = yield* Ledger
      const lotId = Option.isSome(paymentRef) ? lotIdOfPayment(paymentRef.value) : yield* newLotId
      const owner = Option.isSome(paymentRef) ? yield* History.accountOfLot(lotId) : undefined
      if (owner !== undefined && owner !== account) {
        return yield* Effect.fail(new CommandFailed(`that payment bought credits for ${owner} already`))
      }
      const terms = { lotId, amount, source, expiresAt: Option.getOrNull(expiresAt), paymentRef: Option.getOrNull(paymentRef) }
      const { state, at } = yield* ledger.execute(account, Decisions.grant(terms), Administration.metadata("credits grant", flags))
      yield* Output.print(json, { lot: lotId, balance: Credits.toDecimal(Lots.available(state.lots, at)) })
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
      const { events, state, at } = yield* ledger.giveBack(
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
        balance: Credits.toDecimal(Lots.available(state.lots, at))
      })
    }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withDescription("Give back what a call was charged, or some of it, as goodwill"),
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
        balance: Credits.toDecimal(Lots.available(state.lots, at))
      })
    }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withDescription("Take a paid lot back, as after a chargeback: what was spent of it becomes debt"),
  Command.withExamples([
    { command: "millrace credits claw-back --lot lot_01M7YKD46JCP6VGMKADN3JSPJP --reason chargeback", description: "The whole lot" }
  ])
)

export const credits = Command.make("credits").pipe(
  Command.withDescription("Grant, refund and claw back credits"),
  Command.withExamples([
    {
      command: "millrace credits grant --account acc_01M7YKD46JCP6VGMKADN3JSPJP --amount 100 --source promotion",
      description: "A hundred credits"
    }
  ]),
  Command.withSubcommands([grant, refund, clawBack])
)
