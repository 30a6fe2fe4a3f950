/** `credits`: grant, list and stop recurring grants, refund, claw back. */
import { Lots, Periods } from "@millrace/core"
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
      "Grant a hundred credits that never expire",
    "millrace credits grant --account acc_01M7YKD46JCP6VGMKADN3JSPJP --amount 100 --source promotion --every month":
      "Grant a hundred credits now and each month, which expire when the next ones come"
  },
  {
    account: Administration.account,
    amount: Administration.amount,
    source: Flag.Literals("source", Lots.LotSource.literals).pipe(Flag.withDescription("Why they are granted")),
    expiresAt: Administration.time("expires-at", "When what is left of them expires; never, when left out"),
    paymentRef: Administration.id("payment-ref", "Id of the payment that bought them; the same payment grants once").pipe(Flag.optional),
    every: Flag.Literals("every", Periods.Every.literals).pipe(
      Flag.withDescription("Grant them now and again each period, from the same day and time in UTC"),
      Flag.optional
    ),
    until: Administration.time("until", "With --every: no period begins then or later"),
    expires: Flag.Literals("expires", ["next", "never"]).pipe(
      Flag.withDescription("With --every: whether what is left expires when the next credits come (default: next)"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ account, amount, source, expiresAt, paymentRef: given, every, ...period }, metadata) {
    const until = Option.getOrUndefined(period.until)
    const expires = Option.getOrUndefined(period.expires)
    if (Option.isSome(every)) {
      if (Option.isSome(expiresAt) || Option.isSome(given)) return yield* fail("--every goes with --until and --expires only")
      return yield* Credits.start(account, { amount, source, every: every.value, until, expires } as Credits.Recurring, metadata)
    }
    if (until !== undefined || expires !== undefined) return yield* fail("--until and --expires go with --every")
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

const recurring = Administration.query(
  "recurring",
  "List the recurring grants of an account that go on",
  { "millrace credits recurring --account acc_01M7YKD46JCP6VGMKADN3JSPJP": "List them with the time of their next credits" },
  Administration.layer,
  { account: Administration.account },
  ({ account }) => Credits.recurring(account)
)

const stop = Administration.act(
  "credits stop",
  "Stop a recurring grant: the credits that it granted stay, and no others come",
  {
    "millrace credits stop --account acc_01M7YKD46JCP6VGMKADN3JSPJP --grant grant_01M7YKD46JCP6VGMKADN3JSPJP":
      "Stop a grant that millrace credits recurring lists"
  },
  { account: Administration.account, grant: Administration.id("grant", "Id of the recurring grant: grant_...") },
  ({ account, grant }, metadata) => Credits.stop(account, grant, metadata)
)

export const credits = Administration.group("credits", "Grant credits once or each period, refund and claw back", [
  grant,
  recurring,
  stop,
  refund,
  clawBack
])
