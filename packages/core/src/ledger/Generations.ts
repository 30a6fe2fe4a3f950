/**
 * A map that keeps its newest entries. It has two generations: when the newer one is full, it replaces the older one. So a map
 * with generations of 100 keeps at least the newest 100 entries, and at most 200.
 */
import { HashMap } from "effect"
import { get as lookUp } from "./Get.ts"

export interface Generations<V> {
  readonly newer: HashMap.HashMap<string, V>
  readonly older: HashMap.HashMap<string, V>
  /** The greatest key of each generation, "" for none. The id of a new call is greater, and is not looked up: most lookups are of such. */
  readonly lastNewer: string
  readonly lastOlder: string
}

/** Generations with these entries. */
export const of = <V>({ newer, older }: Pick<Generations<V>, "newer" | "older">): Generations<V> => ({
  newer,
  older,
  lastNewer: lastOf(newer),
  lastOlder: lastOf(older)
})

const lastOf = (generation: HashMap.HashMap<string, unknown>): string => {
  let last = ""
  for (const key of HashMap.keys(generation)) if (key > last) last = key
  return last
}

export const empty = <V>(): Generations<V> => of({ newer: HashMap.empty(), older: HashMap.empty() })

/** The newest value under a key, or undefined. */
export const get = <V>({ lastNewer, lastOlder, newer, older }: Generations<V>, key: string): V | undefined =>
  (key <= lastNewer ? lookUp(newer, key) : undefined) ?? (key <= lastOlder ? lookUp(older, key) : undefined)

/** The newer generation becomes the older one. */
export const turn = <V>({ lastNewer, newer }: Generations<V>): Generations<V> => ({
  newer: HashMap.empty(),
  older: newer,
  lastNewer: "",
  lastOlder: lastNewer
})

/** Adds an entry to the newer generation. */
export const add = <V>({ lastNewer, lastOlder, newer, older }: Generations<V>, key: string, value: V): Generations<V> => ({
  newer: HashMap.set(newer, key, value),
  older,
  lastNewer: key > lastNewer ? key : lastNewer,
  lastOlder
})

/** Adds an entry; turns first when the newer generation has `limit` entries. */
export const addWithin = <V>(limit: number, generations: Generations<V>, key: string, value: V): Generations<V> =>
  add(HashMap.size(generations.newer) >= limit ? turn(generations) : generations, key, value)

/** All entries, each key with its newest value. */
export const toMap = <V>({ newer, older }: Generations<V>): HashMap.HashMap<string, V> => HashMap.union(older, newer)
