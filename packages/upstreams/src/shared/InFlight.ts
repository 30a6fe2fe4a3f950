/** Work that callers share while it runs: the first one starts it, and it is interrupted when the last one has left. */
import { Effect, Fiber } from "effect"

interface Flight<A, E> {
  readonly fiber: Fiber.Fiber<A, E>
  /** Callers that wait for it. */
  callers: number
}

export interface Shared<A> {
  readonly value: A
  /** Whether another caller had started the work. */
  readonly joined: boolean
}

/** Returns the function that does work by a key. Work of one key must have one kind of result. The trace is that of the first caller. */
export const make = Effect.map(Effect.scope, (scope) => {
  // biome-ignore lint/suspicious/noExplicitAny: each key has its own type
  const flights = new Map<string, Flight<any, any>>()

  const leave = (key: string, flight: Flight<unknown, unknown>) =>
    Effect.suspend(() => {
      flight.callers--
      if (flight.callers > 0 || flights.get(key) !== flight) return Effect.void
      flights.delete(key)
      return Fiber.interrupt(flight.fiber)
    })

  return <A, E>(key: string, work: Effect.Effect<A, E>): Effect.Effect<Shared<A>, E> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const found: Flight<A, E> | undefined = flights.get(key)
        // Starts at the next turn of the scheduler, when the flight is in the map
        const flight: Flight<A, E> = found ?? { fiber: yield* Effect.forkIn(work, scope), callers: 0 }
        if (found === undefined) {
          flights.set(key, flight)
          flight.fiber.addObserver(() => {
            if (flights.get(key) === flight) flights.delete(key)
          })
        }
        flight.callers++
        const value = yield* Effect.ensuring(restore(Fiber.join(flight.fiber)), leave(key, flight))
        return { value, joined: found !== undefined }
      })
    )
})
