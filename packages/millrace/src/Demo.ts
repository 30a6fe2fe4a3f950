/** The demo account: opened once with the sign-up credits. Each start issues a new key and revokes the earlier ones. */

import { KeyRing, Ledger, Money, Registration } from "@millrace/core"
import { Effect, Redacted } from "effect"
import { fail } from "./Failure.ts"

const EMAIL = "demo@millrace.invalid"
const METADATA = { actor: "millrace", reason: "serve --demo" }

export const open = Effect.gen(function* () {
  const registration = yield* Registration
  const keys = yield* KeyRing
  const ledger = yield* Ledger
  const account = (yield* registration.find(EMAIL)) ?? (yield* registration.open(EMAIL, METADATA))
  yield* Effect.catchTag(registration.verify(account, METADATA), "AccountClosed", () =>
    fail("the demo account of this store was closed: serve without --demo, or with another --store")
  )
  for (const { keyId, revokedAt } of yield* keys.list(account)) {
    if (revokedAt === null) yield* keys.revoke(account, keyId, METADATA)
  }
  const { key } = yield* keys.issue(account, { label: "demo" }, METADATA)
  const { available } = yield* ledger.balance(account)
  return { account, key: Redacted.value(key), credits: Money.text(available, yield* Money.Current) }
})

/** The web tool, and three calls to paste into a shell. The headers of each reply have its cost and the balance. */
export const invitation = (url: string, { account, key, credits }: Effect.Success<typeof open>): string => `
Demo account ${account} with ${credits}. Its key, new with each start:

  ${key}

The web tool, where the key signs in: ${named(url)}

Three calls to paste; X-Credits-Charged and X-Credits-Balance say what each cost and what is left:

curl -i ${url}/api/v1/grammar/check -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '{"text":"There is a an apple on teh table."}'

curl -i ${url}/api/v1/bin/45717360 -H 'Authorization: Bearer ${key}'

curl -i ${url}/api/v1/account/billing -H 'Authorization: Bearer ${key}'
`

/** Passkeys belong to a host name, which a browser on this machine has for it. */
const named = (url: string): string => url.replace("//127.0.0.1:", "//localhost:")
