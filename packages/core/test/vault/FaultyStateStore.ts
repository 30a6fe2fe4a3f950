/** A state store that fails at planned calls, and can run an effect before one. */
import { StateStore } from "@millrace/event-sourcing"
import { Effect } from "effect"

type Service = StateStore.StateStore["Service"]

/** `before`: fails without an effect. `after`: takes effect, but its reply is lost. An effect: runs first, then the call succeeds. */
export type Fault = "before" | "after" | Effect.Effect<unknown, unknown>

/** Planned faults by the number of the call, from 1. */
export const make = (store: Service, plan: Readonly<Record<number, Fault>>): Service & { readonly calls: () => number } => {
  let calls = 0
  const faulty = <A, E>(call: Effect.Effect<A, E>): Effect.Effect<A, E | StateStore.StateUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | StateStore.StateUnavailable> => {
      const fault = plan[++calls]
      const unavailable = Effect.fail(new StateStore.StateUnavailable({ reason: `call ${calls}` }))
      if (fault === undefined) return call
      if (fault === "before") return unavailable
      return fault === "after" ? Effect.andThen(call, unavailable) : Effect.andThen(Effect.orDie(fault), call)
    })
  return {
    get: (space, key) => faulty(store.get(space, key)),
    list: (space, options) => faulty(store.list(space, options)),
    write: (changes) => faulty(store.write(changes)),
    calls: () => calls
  }
}
