import { HashMap, Option } from "effect"

/** The value under a key, or undefined. Most maps of an account are empty; the key of a lookup in these is not hashed. */
export const get = <V>(map: HashMap.HashMap<string, V>, key: string): V | undefined =>
  HashMap.isEmpty(map) ? undefined : Option.getOrUndefined(HashMap.get(map, key))
