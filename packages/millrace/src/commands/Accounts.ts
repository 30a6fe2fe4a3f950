/** `accounts`: open, show, suspend, reinstate, close, erase. */
import { Credits, KeyRing, Ledger, Registration, Vault } from "@millrace/core"
import { Effect, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as ErasureRegister from "../ErasureRegister.ts"
import { CommandFailed } from "../Failure.ts"
import * as Output from "../Output.ts"

const { account, by, reason, store } = Administration
const { json } = Output

const open = Command.make(
  "open",
  {
    store,
    email: Flag.String("email").pipe(Flag.withDescription("Address of its owner; stored sealed")),
    verified: Flag.Boolean("verified").pipe(
      Flag.withDescription("The address is verified: grants the sign-up credits"),
      Flag.withDefault(false)
    ),
    by,
    reason,
    json
  },
  ({ email, verified, store, json, ...flags }) =>
    Effect.gen(function* () {
      const registration = yield* Registration
      const keys = yield* KeyRing
      const ledger = yield* Ledger
      const metadata = Administration.metadata("accounts open", flags)
      const account = yield* registration.open(email, metadata)
      if (verified) yield* registration.verify(account, metadata)
      const { key } = yield* keys.issue(account, {}, metadata)
      const { available } = yield* ledger.balance(account)
      yield* Output.print(json, { account, key: Redacted.value(key), balance: Credits.toDecimal(available) })
    }).pipe(Effect.provide(Administration.layer(store, "create")))
).pipe(
  Command.withDescription("Open an account and issue its first key, which is shown once"),
  Command.withExamples([
    { command: "millrace accounts open --email ada@example.com --verified", description: "With 200 credits for a verified address" }
  ])
)

const show = Command.make("show", { store, account, json }, ({ account, store, json }) =>
  Effect.gen(function* () {
    const registration = yield* Registration
    const ledger = yield* Ledger
    const { status, available, held, debt } = yield* ledger.balance(account)
    const email = yield* registration.email(account).pipe(Effect.catchTag("SubjectDestroyed", () => Effect.succeed(null)))
    yield* Output.print(json, {
      account,
      status,
      email,
      available: Credits.toDecimal(available),
      held: Credits.toDecimal(held),
      debt: Credits.toDecimal(debt)
    })
  }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withDescription("Show an account: status, address, credits"),
  Command.withExamples([{ command: "millrace accounts show --account acc_01M7YKD46JCP6VGMKADN3JSPJP", description: "One account" }])
)

const act = (name: "suspend" | "reinstate" | "close", description: string) =>
  Command.make(name, { store, account, by, reason, json }, ({ account, store, json, ...flags }) =>
    Effect.gen(function* () {
      const registration = yield* Registration
      const { state } = yield* registration[name](account, Administration.metadata(`accounts ${name}`, flags))
      yield* Output.print(json, { account, status: state.status })
    }).pipe(Effect.provide(Administration.layer(store)))
  ).pipe(
    Command.withDescription(description),
    Command.withExamples([
      {
        command: `millrace accounts ${name} --account acc_01M7YKD46JCP6VGMKADN3JSPJP --by ada --reason "ticket 12"`,
        description: "Recorded with who and why"
      }
    ])
  )

const erase = Command.make(
  "erase",
  {
    store,
    account,
    confirm: Flag.String("confirm").pipe(
      Flag.withMetavar("account"),
      Flag.withDescription("The id of the account once more; an erasure cannot be undone")
    ),
    register: ErasureRegister.register,
    by,
    reason,
    json
  },
  ({ account, confirm, register, store, json, ...flags }) =>
    Effect.gen(function* () {
      if (confirm !== account) {
        return yield* Effect.fail(new CommandFailed(`--confirm names another account than --account: ${confirm}`))
      }
      const keys = yield* KeyRing
      const ledger = yield* Ledger
      const registration = yield* Registration
      yield* ledger.balance(account)
      const metadata = Administration.metadata("accounts erase", flags)
      const file = yield* ErasureRegister.needed(store, register)
      const subject = Vault.ofAccount(account)
      // Before the erasure: if this stops halfway, a restore erases the account again
      yield* ErasureRegister.add(file, subject)
      yield* registration.erase(account, metadata)
      const working = (yield* keys.list(account)).filter(({ revokedAt }) => revokedAt === null)
      for (const { keyId } of working) yield* keys.revoke(account, keyId, metadata)
      yield* Output.print(json, {
        account,
        status: "closed",
        destroyed: [subject],
        keysRevoked: working.map(({ keyId }) => keyId),
        register: file,
        stays: ["amounts, ids and times in the log", "the claim on its address, as an HMAC: it opens no other account"],
        backups: "keep its keys until theirs are deleted"
      })
    }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withShortDescription("Close an account and destroy its keys for ever: what was sealed for it is deleted"),
  Command.withDescription(
    "Close an account, revoke its API keys and destroy its vault keys for ever. Nobody can read its address, labels, replies and jobs any more, in any copy without keys. Amounts, ids and the claim on its address stay, so audits still work. If the command is interrupted, run it again"
  ),
  Command.withExamples([
    {
      command:
        'millrace accounts erase --account acc_01M7YKD46JCP6VGMKADN3JSPJP --confirm acc_01M7YKD46JCP6VGMKADN3JSPJP --by ada --reason "ticket 12"',
      description: "Recorded with who and why, and in the register of erasures"
    }
  ])
)

export const accounts = Administration.group("accounts", "Open, show, suspend, reinstate, close and erase accounts", [
  open,
  show,
  act("suspend", "Stop every priced call of an account; its credits stay"),
  act("reinstate", "Let a suspended account call again"),
  act("close", "Close an account for ever; its keys stop working"),
  erase
])
