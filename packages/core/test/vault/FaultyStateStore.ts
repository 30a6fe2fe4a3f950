/** A state store that fails at planned calls, and lets something happen before one: for what is built on it. */
import { StateStore } from "@millrace/event-sourcing"
import { Effect } from "effect"

type Service = StateStore.StateStore["Service"]

/** `before`: nothing happens. `after`: it happens, and the answer is lost. An effect happens first; then all goes on. */
export type Fault = "before" | "after" | Effect.Effect<unknown, unknown>

/** Calls counted from 1, of whatever kind. */
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
