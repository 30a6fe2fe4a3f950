/** `payments`: payments made at this store: list them, confirm manual ones, give money back. */
import { Effect, Option } from "effect"
import { Argument, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Payments from "../administration/Payments.ts"
import * as PaymentSettings from "../PaymentSettings.ts"

const ID = "pay_01M7YKD46JCP6VGMKADN3JSPJP"

const id = Argument.String("payment").pipe(Argument.withDescription("Id of the payment: pay_..."))

const provided = Effect.provide(PaymentSettings.administering)

const list = Administration.query(
  "list",
  "List payments, the newest first",
  { "millrace payments list --status pending": "List what waits for its money" },
  Administration.layer,
  {
    account: Administration.account.pipe(Flag.withDescription("Only those of this account"), Flag.optional),
    status: Flag.Literals("status", ["pending", "authorized", "captured", "failed"]).pipe(
      Flag.withDescription("Only those that stand so"),
      Flag.optional
    ),
    limit: Flag.Int("limit").pipe(Flag.withDescription("At most so many (default: 100)"), Flag.withDefault(100))
  },
  ({ account, limit, status }) =>
    Payments.list({
      limit,
      ...(Option.isSome(account) ? { account: account.value } : {}),
      ...(Option.isSome(status) ? { status: status.value } : {})
    }).pipe(provided)
)

const show = Administration.query(
  "show",
  "Show a payment",
  { [`millrace payments show ${ID}`]: "Show how it stands, and what went back" },
  Administration.layer,
  { id },
  ({ id }) => provided(Payments.show(id))
)

const approve = Administration.act(
  "payments approve",
  "Approve a manual payment whose money is there: its credits are granted at once",
  { [`millrace payments approve ${ID}`]: "Grant what was paid for" },
  { id },
  ({ id }, metadata) => provided(Payments.approve(id, metadata))
)

const reject = Administration.act(
  "payments reject",
  "Reject a manual payment whose money will not come",
  { [`millrace payments reject ${ID} --why "The transfer was called back"`]: "Tell the payer why" },
  { id, why: Flag.String("why").pipe(Flag.withDescription("What the payer is told"), Flag.optional) },
  ({ id, why }, metadata) => provided(Payments.reject(id, Option.getOrUndefined(why), metadata))
)

const refund = Administration.act(
  "payments refund",
  "Give money back, all or some of it: its credits are taken back in proportion, and what was spent of them becomes debt",
  { [`millrace payments refund ${ID} --money 5 --id return-17`]: "Give five dollars back, once under this id" },
  {
    id,
    money: Flag.String("money").pipe(
      Flag.withDescription("How much, in units of its currency (default: all that is left)"),
      Flag.filterMap(
        (text) => (/^\d{1,9}(?:\.\d{1,4})?$/u.test(text) ? Option.some(Number(text)) : Option.none()),
        () => "an amount of money such as 5 or 2.50"
      ),
      Flag.optional
    ),
    refundId: Administration.id("id", "Names this refund: a command that is sent again under it gives nothing more").pipe(Flag.optional)
  },
  ({ id, money, refundId }, metadata) =>
    provided(Payments.refund(id, { amount: Option.getOrUndefined(money), id: Option.getOrUndefined(refundId) }, metadata))
)

export const payments = Administration.group("payments", "List payments, confirm manual ones, give money back", [
  list,
  show,
  approve,
  reject,
  refund
])
