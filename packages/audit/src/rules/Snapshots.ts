/** A snapshot is no evidence: it is left aside by the replay, then must be what the replay comes to at its revision. */
import { isDeepStrictEqual } from "node:util"
import { Account, AccountSnapshot } from "@millrace/core"
import { Aggregate, type HashChain, type StreamName } from "@millrace/event-sourcing"
import { HashMap, Option, Schema } from "effect"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Aggregate.savedSchema(AccountSnapshot.accountSnapshots.state)))

/** Where the newest snapshot of an account by this release's fold is kept. */
export const snapshotOf = (accountId: string): StreamName.StreamName =>
  `${Aggregate.snapshotCategory(Account.Account.category, AccountSnapshot.VERSION)}-${accountId}`

/** What a stored snapshot says, field by field, is what the events say. */
export const snapshotAgrees = (
  stored: string,
  replayed: { readonly state: Account.Account; readonly hash: HashChain.Hash; readonly at: number }
): string | undefined => {
  const saved = decode(stored)
  if (saved._tag === "None") return "the snapshot cannot be read"
  const { hash, at, state } = saved.value
  if (hash !== replayed.hash) return "the snapshot is of another history: its hash differs"
  const wrong: Array<string> = at === replayed.at ? [] : ["at"]
  const then: Readonly<Record<string, unknown>> = { ...replayed.state }
  for (const [field, value] of Object.entries(state)) if (!same(value, then[field])) wrong.push(field)
  return wrong.length === 0 ? undefined : `the snapshot differs from the events in ${wrong.join(", ")}`
}

/** Maps entry by entry: `Equal` would hash every outcome an account remembers. */
const same = (a: unknown, b: unknown): boolean => {
  if (!HashMap.isHashMap(a) || !HashMap.isHashMap(b)) return isDeepStrictEqual(a, b)
  if (HashMap.size(a) !== HashMap.size(b)) return false
  for (const [key, value] of a)
    if (!HashMap.has(b, key) || !isDeepStrictEqual(value, Option.getOrUndefined(HashMap.get(b, key)))) return false
  return true
}
