/** Lazily loaded data: the first use loads it for all. */
import { Effect } from "effect"

/** An interrupted use does not interrupt the loading. */
export const once = <A>(load: () => Promise<A>): Effect.Effect<A> => {
  let loaded: Promise<A> | undefined
  return Effect.promise(() => {
    loaded ??= load()
    return loaded
  })
}
