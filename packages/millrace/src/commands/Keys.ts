/** `keys`: issue, list and revoke API keys. */
import { ApiKey, KeyRing, Ledger } from "@millrace/core"
import { Effect, Option, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Output from "../Output.ts"

const { account, by, reason, store } = Administration
const { json } = Output

const issue = Command.make(
  "issue",
  {
    store,
    account,
    scope: Flag.Literals("scope", ApiKey.Scope.literals).pipe(
      Flag.withDescription(`What the key may do; repeat for several (default: ${ApiKey.DEFAULT_SCOPES.join(", ")})`),
      Flag.between(0, ApiKey.Scope.literals.length)
    ),
    label: Flag.String("label").pipe(Flag.withDescription("A name for the key; stored sealed"), Flag.optional),
    expiresAt: Administration.time("expires-at", "When it stops working"),
    by,
    reason,
    json
  },
  ({ account, scope, label, expiresAt, store, json, ...flags }) =>
    Effect.gen(function* () {
      const keys = yield* KeyRing
      const options = {
        ...(scope.length === 0 ? {} : { scopes: scope }),
        ...(Option.isSome(label) ? { label: label.value } : {}),
        ...(Option.isSome(expiresAt) ? { expiresAt: expiresAt.value } : {})
      }
      const { keyId, key } = yield* keys.issue(account, options, Administration.metadata("keys issue", flags))
      yield* Output.print(json, { keyId, key: Redacted.value(key) })
    }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withDescription("Issue a key, which is shown once"),
  Command.withExamples([
    {
      command: "millrace keys issue --account acc_01M7YKD46JCP6VGMKADN3JSPJP --scope read --expires-at 2027-01-01T00:00:00Z",
      description: "A key that may only read, for a while"
    }
  ])
)

const list = Command.make("list", { store, account, json }, ({ account, store, json }) =>
  Effect.gen(function* () {
    const keys = yield* KeyRing
    const ledger = yield* Ledger
    // Fails where there is no such account
    yield* ledger.balance(account)
    const listed = yield* keys.list(account)
    yield* Output.print(
      json,
      listed.map(({ keyId, scopes, label, issuedAt, expiresAt, revokedAt }) => ({
        keyId,
        scopes: scopes.join(" "),
        label,
        issuedAt: Administration.isoOrNull(issuedAt),
        expiresAt: Administration.isoOrNull(expiresAt),
        revokedAt: Administration.isoOrNull(revokedAt)
      }))
    )
  }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withDescription("List all keys an account ever had"),
  Command.withExamples([
    { command: "millrace keys list --account acc_01M7YKD46JCP6VGMKADN3JSPJP", description: "Never the keys themselves" }
  ])
)

const revoke = Command.make(
  "revoke",
  { store, account, key: Administration.id("key", "Id of the key, as in the list"), by, reason, json },
  ({ account, key, store, json, ...flags }) =>
    Effect.gen(function* () {
      const keys = yield* KeyRing
      yield* keys.revoke(account, key, Administration.metadata("keys revoke", flags))
      yield* Output.print(json, { keyId: key, revoked: true })
    }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withDescription("Revoke a key: it stops working with the next call"),
  Command.withExamples([
    { command: "millrace keys revoke --account acc_01M7YKD46JCP6VGMKADN3JSPJP --key 01m7ykd477z577dbnpmz7j9kdz", description: "By its id" }
  ])
)

export const keys = Administration.group("keys", "Issue, list and revoke the API keys of an account", [issue, list, revoke])
