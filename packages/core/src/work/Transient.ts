/** The errors of stores after which a retry may succeed. */
import { Effect, type Schedule } from "effect"

const TRANSIENT: ReadonlySet<string> = new Set(["StoreUnavailable", "AppendInDoubt", "Busy", "StateUnavailable"])

/** Whether a retry may succeed after this error. */
export const isTransient = ({ _tag }: { readonly _tag: string }): boolean => TRANSIENT.has(_tag)

interface Retries {
  readonly schedule: Schedule.Schedule<unknown>
  readonly times?: number
}

/** Retries transient failures. The schedule is only made once an attempt has failed, because nearly all succeed at once. */
export const retryTransient =
  (retries: Retries) =>
  <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.catchIf(effect, isTransient, (first) => {
      let isFirst = true
      const again = Effect.suspend(() => {
        if (!isFirst) return effect
        isFirst = false
        return Effect.fail(first)
      })
      return Effect.retry(again, { while: isTransient, ...retries })
    })
