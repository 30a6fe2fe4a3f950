/** `keys`: issue, list and revoke API keys. */
import { ApiKey } from "@millrace/core"
import { Effect, Option } from "effect"
import { Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Keys from "../administration/Keys.ts"

const { account } = Administration

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
  ({ account, scope, label, expiresAt }, metadata) => {
    const options = {
      ...(scope.length === 0 ? {} : { scopes: scope }),
      ...(Option.isSome(label) ? { label: label.value } : {}),
      ...(Option.isSome(expiresAt) ? { expiresAt: expiresAt.value } : {})
    }
    return Keys.issue(account, options, metadata)
  }
)

const list = Administration.query(
  "list",
  "List all keys an account ever had",
  { "millrace keys list --account acc_01M7YKD46JCP6VGMKADN3JSPJP": "List the keys by their ids; the keys themselves are not shown" },
  Administration.layer,
  { account },
  ({ account }) =>
    Effect.map(Keys.list(account), (listed) => listed.map(({ keyId, scopes, ...key }) => ({ keyId, scopes: scopes.join(" "), ...key })))
)

const revoke = Administration.act(
  "keys revoke",
  "Revoke a key: it stops working with the next call",
  { "millrace keys revoke --account acc_01M7YKD46JCP6VGMKADN3JSPJP --key 01m7ykd477z577dbnpmz7j9kdz": "Revoke the key with this id" },
  { account, key: Administration.id("key", "Id of the key, as in the list") },
  ({ account, key }, metadata) => Effect.as(Keys.revoke(account, key, metadata), { keyId: key, revoked: true })
)

export const keys = Administration.group("keys", "Issue, list and revoke the API keys of an account", [issue, list, revoke])
