/**
 * A map that keeps its newest entries. It has two generations: the newer one replaces the older one at each turn. Its owner decides when
 * that is.
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

/** All entries, each key with its newest value. */
export const toMap = <V>({ newer, older }: Generations<V>): HashMap.HashMap<string, V> => HashMap.union(older, newer)
