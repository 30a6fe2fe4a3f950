/** `credits`: grant, refund, claw back. */
import { Lots } from "@millrace/core"
import { Effect, Option } from "effect"
import { Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Credits from "../administration/Credits.ts"
import { fail } from "../Failure.ts"

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
  Effect.fnUntraced(function* ({ account, amount, source, expiresAt, paymentRef: given }, metadata) {
    const terms = { amount, expiresAt: Option.getOrUndefined(expiresAt) }
    const paymentRef = Option.getOrUndefined(given)
    if (!Lots.isPaid(source)) {
      if (paymentRef !== undefined) return yield* fail("--payment-ref goes with --source topup or subscription")
      return yield* Credits.grant(account, { ...terms, source } as Credits.Grant, metadata)
    }
    if (paymentRef === undefined) return yield* fail(`--source ${source} needs --payment-ref: the payment it was bought with`)
    return yield* Credits.grant(account, { ...terms, source, paymentRef } as Credits.Grant, metadata)
  })
)

const refund = Administration.act(
  "credits refund",
  "Refund what a call was charged, or some of it, as goodwill",
  { "millrace credits refund --reservation res_01M7YKD46JCP6VGMKADN3JSPJP --amount 0.5": "Refund half a credit of a call" },
  {
    reservation: Administration.id("reservation", "Id of the reservation: res_..."),
    amount: Flag.optional(Administration.amount)
  },
  ({ reservation, amount }, metadata) => Credits.refund(reservation, Option.getOrUndefined(amount), metadata)
)

const clawBack = Administration.act(
  "credits claw-back",
  "Take a paid lot back, as after a chargeback: what was spent of it becomes debt",
  { "millrace credits claw-back --lot lot_01M7YKD46JCP6VGMKADN3JSPJP --reason chargeback": "Take the whole lot back" },
  { lot: Administration.id("lot", "Id of the lot that the payment bought: lot_...") },
  ({ lot }, metadata) => Credits.clawBack(lot, metadata)
)

export const credits = Administration.group("credits", "Grant, refund and claw back credits", [grant, refund, clawBack])
