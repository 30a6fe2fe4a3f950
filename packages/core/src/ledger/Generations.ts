/**
 * A map that keeps its newest entries. It has two generations: when the newer one is full, it replaces the older one. So a map
 * with generations of 100 keeps at least the newest 100 entries, and at most 200.
 */
import { HashMap } from "effect"
import { get as lookUp } from "./Get.ts"

export interface Generations<V> {
  readonly newer: HashMap.HashMap<string, V>
  readonly older: HashMap.HashMap<string, V>
}

export const empty = <V>(): Generations<V> => ({ newer: HashMap.empty(), older: HashMap.empty() })

/** The newest value under a key, or undefined. */
export const get = <V>({ newer, older }: Generations<V>, key: string): V | undefined => lookUp(newer, key) ?? lookUp(older, key)

/** The newer generation becomes the older one. */
export const turn = <V>({ newer }: Generations<V>): Generations<V> => ({ newer: HashMap.empty(), older: newer })

/** Adds an entry to the newer generation. */
export const add = <V>({ newer, older }: Generations<V>, key: string, value: V): Generations<V> => ({
  newer: HashMap.set(newer, key, value),
  older
})

/** Adds an entry; turns first when the newer generation has `limit` entries. */
export const addWithin = <V>(limit: number, generations: Generations<V>, key: string, value: V): Generations<V> =>
  add(HashMap.size(generations.newer) >= limit ? turn(generations) : generations, key, value)

/** All entries, each key with its newest value. */
export const toMap = <V>({ newer, older }: Generations<V>): HashMap.HashMap<string, V> => HashMap.union(older, newer)
