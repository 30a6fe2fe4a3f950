/** `accounts`: open, show, list, suspend, reinstate, close, threshold, erase. */
import { Credits as Amounts } from "@millrace/core"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Accounts from "../administration/Accounts.ts"
import * as Credits from "../administration/Credits.ts"
import * as Keys from "../administration/Keys.ts"
import * as ErasureRegister from "../ErasureRegister.ts"
import { fail } from "../Failure.ts"

const { account } = Administration

const open = Administration.act(
  "accounts open",
  "Open an account and issue its first key, which is shown once",
  { "millrace accounts open --email ada@example.com --verified": "Open an account with 200 credits for a verified address" },
  {
    email: Flag.String("email").pipe(Flag.withDescription("Address of its owner; stored sealed"), Flag.optional),
    id: Flag.String("id").pipe(
      Flag.withDescription("Your own id of the account, which every command takes in place of acc_...; stored sealed"),
      Flag.optional
    ),
    verified: Flag.Boolean("verified").pipe(
      Flag.withDescription("The address is verified: grants the sign-up credits"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ email, id, verified }, metadata) {
    if (Option.isNone(email) && Option.isNone(id)) return yield* fail("an account needs a name: --email, --id, or both")
    const names = {
      ...Option.match(email, { onNone: () => ({}), onSome: (email) => ({ email }) }),
      ...Option.match(id, { onNone: () => ({}), onSome: (id) => ({ id }) })
    }
    const account = yield* Accounts.open({ ...names, verified }, metadata)
    const { key } = yield* Keys.issue(account, {}, metadata)
    const { available } = yield* Credits.balanceOf(account, undefined)
    return { account, key, balance: available }
  }),
  "create"
)

const show = Administration.query(
  "show",
  "Show an account: status, address, credits",
  { "millrace accounts show --account acc_01M7YKD46JCP6VGMKADN3JSPJP": "Show one account" },
  Administration.layer,
  { account },
  ({ account }) => Accounts.show(account)
)

const list = Administration.query(
  "list",
  "List all accounts, in the order in which they were opened",
  { "millrace accounts list": "List every account with the time of its opening" },
  Administration.layer,
  {},
  () => Accounts.list
)

const change = (name: "suspend" | "reinstate" | "close", description: string) =>
  Administration.act(
    `accounts ${name}`,
    description,
    {
      [`millrace accounts ${name} --account acc_01M7YKD46JCP6VGMKADN3JSPJP --by ada --reason "ticket 12"`]: "Record who acts and why"
    },
    { account },
    ({ account }, metadata) => Accounts.change(name, account, metadata)
  )

const threshold = Administration.act(
  "accounts threshold",
  "Say below which balance an account is told to be low, held credits included; none tells nothing",
  {
    "millrace accounts threshold --account acc_01M7YKD46JCP6VGMKADN3JSPJP --below 50": "Tell when fewer than fifty credits are left",
    "millrace accounts threshold --account acc_01M7YKD46JCP6VGMKADN3JSPJP --below none": "Tell it no longer"
  },
  {
    account,
    below: Flag.String("below").pipe(
      Flag.withMetavar("credits|none"),
      Flag.withDescription("Credits, with at most three decimals, or none"),
      Flag.filterMap(
        (text) => (text === "none" ? Option.some(null) : Option.fromUndefinedOr(Amounts.parse(text))),
        () => "a number of credits with at most three decimals, such as 100 or 0.5, or none"
      )
    )
  },
  ({ account, below }, metadata) => Accounts.threshold(account, below, metadata)
)

const erase = Administration.act(
  "accounts erase",
  "Close an account, revoke its API keys and destroy its vault keys for ever. Nobody can read its address, labels, replies, jobs and inboxes any more, in any copy without keys. Amounts, ids and the claim on its address stay, so audits still work. If the command is interrupted, run it again",
  {
    'millrace accounts erase --account acc_01M7YKD46JCP6VGMKADN3JSPJP --confirm acc_01M7YKD46JCP6VGMKADN3JSPJP --by ada --reason "ticket 12"':
      "Record who acts and why, and add the account to the register of erasures"
  },
  {
    account,
    confirm: Flag.String("confirm").pipe(
      Flag.withMetavar("account"),
      Flag.withDescription("The id of the account once more; an erasure cannot be undone")
    ),
    register: ErasureRegister.register
  },
  Effect.fnUntraced(function* ({ account, confirm, register }, metadata, store) {
    if (confirm !== account) return yield* fail(`--confirm names another account than --account: ${confirm}`)
    const file = yield* ErasureRegister.needed(store, register)
    const erased = yield* Accounts.erase(account, metadata, (subject) => ErasureRegister.add(file, subject))
    return {
      ...erased,
      status: "closed",
      register: file,
      stays: ["amounts, ids and times in the log", "the claim on its address, as an HMAC: it opens no other account"],
      backups: "keep its keys until theirs are deleted"
    }
  })
).pipe(Command.withShortDescription("Close an account and destroy its keys for ever: what was sealed for it is deleted"))

export const accounts = Administration.group(
  "accounts",
  "Open, show, list, suspend, reinstate, close and erase accounts; set when a balance is low",
  [
    open,
    show,
    list,
    change("suspend", "Stop every priced call of an account; its credits stay"),
    change("reinstate", "Let a suspended account call again"),
    change("close", "Close an account for ever; its keys stop working, and its inboxes are deleted"),
    threshold,
    erase
  ]
)
