/**
 * A map that keeps its newest entries, for keys that grow with time, as ids do. It has two generations: when the newer one is full, it
 * replaces the older one. So a map with generations of 100 keeps at least the newest 100 entries, and at most 200.
 *
 * A generation is a list, the newest entry first: a new entry is one object, where a hash map makes four. A list is searched only for a key
 * up to its greatest. Most lookups are of the id of a new call, which is greater than all.
 */
import { HashMap } from "effect"

/** An entry, and those that were added before it. */
export interface Entry<V> {
  readonly key: string
  readonly value: V
  readonly before: Generation<V>
}
export type Generation<V> = Entry<V> | undefined

export interface NewestEntries<V> {
  readonly newer: Generation<V>
  readonly older: Generation<V>
  /** Entries of the newer generation. */
  readonly count: number
  /** The greatest key of each generation; "" for none. */
  readonly lastNewer: string
  readonly lastOlder: string
}

export const empty: NewestEntries<never> = { newer: undefined, older: undefined, count: 0, lastNewer: "", lastOlder: "" }

/** The newest value under a key, or undefined. */
export const get = <V>({ lastNewer, lastOlder, newer, older }: NewestEntries<V>, key: string): V | undefined =>
  (key <= lastNewer ? find(newer, key) : undefined) ?? (key <= lastOlder ? find(older, key) : undefined)

const find = <V>(generation: Generation<V>, key: string): V | undefined => {
  for (let entry = generation; entry !== undefined; entry = entry.before) if (entry.key === key) return entry.value
  return undefined
}

/** Adds an entry. If the newer generation has `limit` entries, it becomes the older one first. */
export const add = <V>(limit: number, entries: NewestEntries<V>, key: string, value: V): NewestEntries<V> => {
  const { count, lastNewer, lastOlder, newer, older } = entries
  if (count >= limit) return { newer: { key, value, before: undefined }, older: newer, count: 1, lastNewer: key, lastOlder: lastNewer }
  return { newer: { key, value, before: newer }, older, count: count + 1, lastNewer: key > lastNewer ? key : lastNewer, lastOlder }
}

/** The entries of a generation, the oldest first. */
export const entriesOf = <V>(generation: Generation<V>): ReadonlyArray<readonly [key: string, value: V]> => {
  const entries: Array<readonly [string, V]> = []
  for (let entry = generation; entry !== undefined; entry = entry.before) entries.push([entry.key, entry.value])
  return entries.reverse()
}

// snapshots

/** What a snapshot holds of them. */
export interface Saved<V> {
  readonly newer: HashMap.HashMap<string, V>
  readonly older: HashMap.HashMap<string, V>
}

export const save = <V>({ newer, older }: NewestEntries<V>): Saved<V> => ({
  newer: HashMap.fromIterable(entriesOf(newer)),
  older: HashMap.fromIterable(entriesOf(older))
})

/** The entries that a snapshot holds. Within a generation they may come in another order. */
export const restore = <V>({ newer, older }: Saved<V>): NewestEntries<V> => {
  const before = filled(older)
  return { ...filled(newer), older: before.newer, lastOlder: before.lastNewer }
}

const filled = <V>(generation: HashMap.HashMap<string, V>): NewestEntries<V> => {
  let entries: NewestEntries<V> = empty
  for (const [key, value] of generation) entries = add(Number.POSITIVE_INFINITY, entries, key, value)
  return entries
}
