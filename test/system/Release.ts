/**
 * Loaded before a server (`--import`), it makes of these sources a release that saves snapshots often, so that a test sees them; with
 * `TEST_RELEASE=next`, the one after it: it knows one event more, keeps what that says, and has snapshots of another version.
 */
import { registerHooks } from "node:module"

type Change = readonly [file: string, from: string, to: string]

const often: ReadonlyArray<Change> = [
  ["ledger/AccountSnapshot.ts", "version: VERSION, state: AccountState", "version: VERSION, state: AccountState, every: 4"]
]

const next: ReadonlyArray<Change> = [
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

const changes = process.env["TEST_RELEASE"] === "next" ? [...often, ...next] : often

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context)
    const here = changes.filter(([file]) => url.endsWith(`/core/src/${file}`))
    if (here.length === 0 || loaded.source == null) return loaded
    let source = typeof loaded.source === "string" ? loaded.source : new TextDecoder().decode(loaded.source)
    for (const [file, from, to] of here) {
      if (!source.includes(from)) throw new Error(`${file} has no ${from}`)
      source = source.replace(from, to)
    }
    return { ...loaded, source }
  }
})
