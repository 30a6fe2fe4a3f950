/** The replay does not use snapshots; each must equal the replayed state at its revision. */
import { isDeepStrictEqual } from "node:util"
import { Account, AccountSnapshot } from "@millrace/core"
import { Aggregate, type HashChain, type StreamName } from "@millrace/event-sourcing"
import { HashMap, Option, Schema } from "effect"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Aggregate.savedSchema(AccountSnapshot.accountSnapshots.state)))

/** The name of the newest snapshot of an account by this release's fold. */
export const snapshotOf = (accountId: string): StreamName.StreamName =>
  `${Aggregate.snapshotCategory(Account.Account.category, AccountSnapshot.VERSION)}-${accountId}`

/** Why a stored snapshot differs from the replayed state; undefined if every field agrees. */
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

/** Compares maps entry by entry: `Equal` would hash every outcome that an account remembers. */
const same = (a: unknown, b: unknown): boolean => {
  if (!HashMap.isHashMap(a) || !HashMap.isHashMap(b)) return isDeepStrictEqual(a, b)
  if (HashMap.size(a) !== HashMap.size(b)) return false
  for (const [key, value] of a)
    if (!HashMap.has(b, key) || !isDeepStrictEqual(value, Option.getOrUndefined(HashMap.get(b, key)))) return false
  return true
}
