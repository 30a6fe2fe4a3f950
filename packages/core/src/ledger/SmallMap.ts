/**
 * A persistent map for what mostly has few entries, as the open holds of an account. Up to eight entries are a list, in the order of
 * their keys: to hash an id takes longer than to compare it with eight others. More are a hash map. Maps with the same entries are `Equal`.
 */
import { HashMap, Option } from "effect"

type List<V> = ReadonlyArray<readonly [key: string, value: V]>
export type SmallMap<V> = List<V> | HashMap.HashMap<string, V>

/** The most entries of a list. */
const MOST = 8

/** Maps that become empty share one value, because most accounts rest without an open hold. */
const NONE: List<never> = []
export const empty: SmallMap<never> = NONE

const isList = <V>(map: SmallMap<V>): map is List<V> => Array.isArray(map)

/** The value under a key, or undefined. */
export const get = <V>(map: SmallMap<V>, key: string): V | undefined => {
  if (!isList(map)) return Option.getOrUndefined(HashMap.get(map, key))
  for (const entry of map) if (entry[0] === key) return entry[1]
  return undefined
}

export const set = <V>(map: SmallMap<V>, key: string, value: V): SmallMap<V> => {
  if (!isList(map)) return HashMap.set(map, key, value)
  if (map.length === 0) return [[key, value]]
  const others = without(map, key)
  if (others.length === MOST) return HashMap.set(HashMap.fromIterable(others), key, value)
  // The id of a new hold is greater than all others
  const at = others.findLastIndex((entry) => entry[0] < key) + 1
  return others.toSpliced(at, 0, [key, value])
}

export const remove = <V>(map: SmallMap<V>, key: string): SmallMap<V> => (isList(map) ? without(map, key) : of(HashMap.remove(map, key)))

const without = <V>(list: List<V>, key: string): List<V> => {
  const at = list.findIndex((entry) => entry[0] === key)
  if (at === -1) return list
  return list.length === 1 ? NONE : list.toSpliced(at, 1)
}

/** A map with the entries of a hash map. */
export const of = <V>(map: HashMap.HashMap<string, V>): SmallMap<V> =>
  HashMap.size(map) <= MOST ? [...map].sort(([a], [b]) => (a < b ? -1 : 1)) : map

/** A hash map with the same entries. */
export const toHashMap = <V>(map: SmallMap<V>): HashMap.HashMap<string, V> => (isList(map) ? HashMap.fromIterable(map) : map)
