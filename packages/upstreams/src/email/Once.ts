/** Data that is large and may never be needed: loaded by whoever asks first, for all who ask then or later. */
import { Effect } from "effect"

/** Whoever is interrupted waiting does not take it from the others. */
export const once = <A>(load: () => Promise<A>): Effect.Effect<A> => {
  let loaded: Promise<A> | undefined
  return Effect.promise(() => {
    loaded ??= load()
    return loaded
  })
}
