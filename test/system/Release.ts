/**
 * Two releases made of these sources, for `changed` of `Changes.ts`: this one, which saves snapshots often, so that a test sees them; and
 * the one after it, which knows one event more, keeps what that says, and has snapshots of another version.
 */
import type { Change } from "./Changes.ts"

export const present: ReadonlyArray<Change> = [
  ["ledger/AccountSnapshot.ts", "version: VERSION, state: AccountState", "version: VERSION, state: AccountState, every: 4"]
]

export const next: ReadonlyArray<Change> = [
  ...present,
  [
    "ledger/AccountEvent.ts",
    "AccountEvent = Schema.TaggedUnion({",
    "AccountEvent = Schema.TaggedUnion({ AccountTierSet: { tier: Schema.String },"
  ],
  ["ledger/Account.ts", "export const initial: Account = {", 'export const initial: Account = { tier: "standard",'],
  [
    "ledger/Account.ts",
    'switch (event._tag) {\n    case "AccountOpened":',
    'switch (event._tag) {\n    case "AccountTierSet": return { ...account, tier: event.tier }\n    case "AccountOpened":'
  ],
  ["ledger/AccountSnapshot.ts", "VERSION = ", "VERSION = 1 + "],
  ["ledger/AccountSnapshot.ts", "= Schema.Struct({\n  status:", "= Schema.Struct({\n  tier: Schema.String,\n  status:"]
]
