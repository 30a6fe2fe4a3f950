import { HashMap, Option } from "effect"

/** The value under a key, or undefined. Most maps of an account are empty; the key of a lookup in these is not hashed. */
export const get = <V>(map: HashMap.HashMap<string, V>, key: string): V | undefined =>
  HashMap.isEmpty(map) ? undefined : Option.getOrUndefined(HashMap.get(map, key))

const EMPTY: HashMap.HashMap<never, never> = HashMap.empty()

/** The map without a key. Maps that it empties share one value, because most accounts rest without an open slot of the trial. */
export const remove = <V>(map: HashMap.HashMap<string, V>, key: string): HashMap.HashMap<string, V> => {
  const rest = HashMap.remove(map, key)
  return HashMap.isEmpty(rest) ? EMPTY : rest
}
