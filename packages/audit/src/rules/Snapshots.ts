/** The rule of snapshots: each must equal the replayed state at its revision. The replay itself uses none. */
import { isDeepStrictEqual } from "node:util"
import { Account, AccountSnapshot } from "@millrace/core"
import { Aggregate, type HashChain, type StreamName } from "@millrace/event-sourcing"
import { HashMap, Option, Schema } from "effect"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Aggregate.savedSchema(AccountSnapshot.accountSnapshots.state)))

/** The name of an account's newest snapshot with this release's version. */
export const snapshotOf = (accountId: string): StreamName.StreamName =>
  `${Aggregate.snapshotCategory(Account.Account.category, AccountSnapshot.VERSION)}-${accountId}`

/**
 * Why a stored snapshot differs from the replayed state; undefined if every field agrees. Snapshots are bounded, so both are compared as
 * they are saved.
 */
export const snapshotAgrees = (
  stored: string,
  replayed: { readonly state: Account.Account; readonly hash: HashChain.Hash; readonly at: number }
): string | undefined => {
  const saved = decode(stored)
  if (saved._tag === "None") return "the snapshot cannot be read"
  const { hash, at, state } = saved.value
  if (hash !== replayed.hash) return "the snapshot is of another history: its hash differs"
  const wrong = at === replayed.at ? [] : ["at"]
  wrong.push(...differences(AccountSnapshot.save(state), AccountSnapshot.save(replayed.state)))
  return wrong.length === 0 ? undefined : `the snapshot differs from the events in ${wrong.join(", ")}`
}

/** The names of the fields that differ, also within parts. */
const differences = (saved: object, replayed: object): ReadonlyArray<string> => {
  const then: Readonly<Record<string, unknown>> = { ...replayed }
  return Object.entries(saved).flatMap(([field, value]) => {
    const other = then[field]
    if (isPart(value) && isPart(other)) return differences(value, other)
    return same(value, other) ? [] : [field]
  })
}

const isPart = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !HashMap.isHashMap(value)

/** Compares maps entry by entry: `Equal` would hash every outcome that an account remembers. */
const same = (a: unknown, b: unknown): boolean => {
  if (!HashMap.isHashMap(a) || !HashMap.isHashMap(b)) return isDeepStrictEqual(a, b)
  if (HashMap.size(a) !== HashMap.size(b)) return false
  for (const [key, value] of a)
    if (!HashMap.has(b, key) || !isDeepStrictEqual(value, Option.getOrUndefined(HashMap.get(b, key)))) return false
  return true
}
