import { HashMap, Option } from "effect"

/** The value under a key, or undefined. */
export const get = <V>(map: HashMap.HashMap<string, V>, key: string): V | undefined => Option.getOrUndefined(HashMap.get(map, key))
