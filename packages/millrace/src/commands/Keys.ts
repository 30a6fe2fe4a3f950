/** `keys`: issue, list and revoke API keys. */
import { ApiKey, KeyRing, Ledger } from "@millrace/core"
import { Effect, Option, Redacted } from "effect"
import { Flag } from "effect/cli"
import * as Administration from "../Administration.ts"

const { account, isoOrNull } = Administration

const issue = Administration.act(
  "keys issue",
  "Issue a key, which is shown once",
  {
    "millrace keys issue --account acc_01M7YKD46JCP6VGMKADN3JSPJP --scope read --expires-at 2027-01-01T00:00:00Z":
      "Issue a key that may only read, and that expires"
  },
  {
    account,
    scope: Flag.Literals("scope", ApiKey.Scope.literals).pipe(
      Flag.withDescription(`What the key may do; repeat for several (default: ${ApiKey.DEFAULT_SCOPES.join(", ")})`),
      Flag.between(0, ApiKey.Scope.literals.length)
    ),
    label: Flag.String("label").pipe(Flag.withDescription("A name for the key; stored sealed"), Flag.optional),
    expiresAt: Administration.time("expires-at", "When it stops working")
  },
  Effect.fnUntraced(function* ({ account, scope, label, expiresAt }, metadata) {
    const keys = yield* KeyRing
    const options = {
      ...(scope.length === 0 ? {} : { scopes: scope }),
      ...(Option.isSome(label) ? { label: label.value } : {}),
      ...(Option.isSome(expiresAt) ? { expiresAt: expiresAt.value } : {})
    }
    const { keyId, key } = yield* keys.issue(account, options, metadata)
    return { keyId, key: Redacted.value(key) }
  })
)

const list = Administration.query(
  "list",
  "List all keys an account ever had",
  { "millrace keys list --account acc_01M7YKD46JCP6VGMKADN3JSPJP": "List the keys by their ids; the keys themselves are not shown" },
  Administration.layer,
  { account },
  Effect.fnUntraced(function* ({ account }) {
    const keys = yield* KeyRing
    const ledger = yield* Ledger
    // Fails where there is no such account
    yield* ledger.balance(account)
    return (yield* keys.list(account)).map(({ keyId, scopes, label, issuedAt, expiresAt, revokedAt }) => ({
      keyId,
      scopes: scopes.join(" "),
      label,
      issuedAt: isoOrNull(issuedAt),
      expiresAt: isoOrNull(expiresAt),
      revokedAt: isoOrNull(revokedAt)
    }))
  })
)

const revoke = Administration.act(
  "keys revoke",
  "Revoke a key: it stops working with the next call",
  { "millrace keys revoke --account acc_01M7YKD46JCP6VGMKADN3JSPJP --key 01m7ykd477z577dbnpmz7j9kdz": "Revoke the key with this id" },
  { account, key: Administration.id("key", "Id of the key, as in the list") },
  Effect.fnUntraced(function* ({ account, key }, metadata) {
    const keys = yield* KeyRing
    yield* keys.revoke(account, key, metadata)
    return { keyId: key, revoked: true }
  })
)

export const keys = Administration.group("keys", "Issue, list and revoke the API keys of an account", [issue, list, revoke])
