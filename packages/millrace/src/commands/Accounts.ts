/** `accounts`: open, show, suspend, reinstate, close, erase. */
import { Credits, KeyRing, Ledger, Registration, Vault } from "@millrace/core"
import { Effect, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as ErasureRegister from "../ErasureRegister.ts"
import { fail } from "../Failure.ts"

const { account } = Administration

const open = Administration.act(
  "accounts open",
  "Open an account and issue its first key, which is shown once",
  { "millrace accounts open --email ada@example.com --verified": "Open an account with 200 credits for a verified address" },
  {
    email: Flag.String("email").pipe(Flag.withDescription("Address of its owner; stored sealed")),
    verified: Flag.Boolean("verified").pipe(
      Flag.withDescription("The address is verified: grants the sign-up credits"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ email, verified }, metadata) {
    const registration = yield* Registration
    const keys = yield* KeyRing
    const ledger = yield* Ledger
    const account = yield* registration.open(email, metadata)
    if (verified) yield* registration.verify(account, metadata)
    const { key } = yield* keys.issue(account, {}, metadata)
    const { available } = yield* ledger.balance(account)
    return { account, key: Redacted.value(key), balance: Credits.toDecimal(available) }
  }),
  "create"
)

const show = Administration.query(
  "show",
  "Show an account: status, address, credits",
  { "millrace accounts show --account acc_01M7YKD46JCP6VGMKADN3JSPJP": "Show one account" },
  Administration.layer,
  { account },
  Effect.fnUntraced(function* ({ account }) {
    const registration = yield* Registration
    const ledger = yield* Ledger
    const { status, available, held, debt } = yield* ledger.balance(account)
    const email = yield* registration.email(account).pipe(Effect.catchTag("SubjectDestroyed", () => Effect.succeed(null)))
    return {
      account,
      status,
      email,
      available: Credits.toDecimal(available),
      held: Credits.toDecimal(held),
      debt: Credits.toDecimal(debt)
    }
  })
)

const change = (name: "suspend" | "reinstate" | "close", description: string) =>
  Administration.act(
    `accounts ${name}`,
    description,
    {
      [`millrace accounts ${name} --account acc_01M7YKD46JCP6VGMKADN3JSPJP --by ada --reason "ticket 12"`]: "Record who acts and why"
    },
    { account },
    Effect.fnUntraced(function* ({ account }, metadata) {
      const registration = yield* Registration
      const { state } = yield* registration[name](account, metadata)
      return { account, status: state.status }
    })
  )

const erase = Administration.act(
  "accounts erase",
  "Close an account, revoke its API keys and destroy its vault keys for ever. Nobody can read its address, labels, replies and jobs any more, in any copy without keys. Amounts, ids and the claim on its address stay, so audits still work. If the command is interrupted, run it again",
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
    const keys = yield* KeyRing
    const ledger = yield* Ledger
    const registration = yield* Registration
    yield* ledger.balance(account)
    const file = yield* ErasureRegister.needed(store, register)
    const subject = Vault.ofAccount(account)
    // Before the erasure: if this stops halfway, a restore erases the account again
    yield* ErasureRegister.add(file, subject)
    yield* registration.erase(account, metadata)
    const working = (yield* keys.list(account)).filter(({ revokedAt }) => revokedAt === null)
    for (const { keyId } of working) yield* keys.revoke(account, keyId, metadata)
    return {
      account,
      status: "closed",
      destroyed: [subject],
      keysRevoked: working.map(({ keyId }) => keyId),
      register: file,
      stays: ["amounts, ids and times in the log", "the claim on its address, as an HMAC: it opens no other account"],
      backups: "keep its keys until theirs are deleted"
    }
  })
).pipe(Command.withShortDescription("Close an account and destroy its keys for ever: what was sealed for it is deleted"))

export const accounts = Administration.group("accounts", "Open, show, suspend, reinstate, close and erase accounts", [
  open,
  show,
  change("suspend", "Stop every priced call of an account; its credits stay"),
  change("reinstate", "Let a suspended account call again"),
  change("close", "Close an account for ever; its keys stop working"),
  erase
])
