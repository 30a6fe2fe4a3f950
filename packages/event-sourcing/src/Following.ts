/**
 * What all who follow the log do alike: say which events concern them, tell what does not work at the moment, and try again, for as
 * long as it takes.
 */
import { Cause, Effect, Exit, Random, Stream } from "effect"
import { type Batch, EventStore, type Position, type RecordedEvent } from "./EventStore.ts"
import { category } from "./StreamName.ts"

/** Which events concern a reader, told without parsing any: those that match all that is given. */
export interface Selection {
  readonly types?: ReadonlyArray<string>
  readonly categories?: ReadonlyArray<string>
}

export const selects = ({ types, categories }: Selection): ((event: RecordedEvent) => boolean) => {
  const ofType = types && new Set(types)
  const ofCategory = categories && new Set(categories)
  return (event) => (ofType?.has(event.type) ?? true) && (ofCategory?.has(category(event.stream)) ?? true)
}

/** What does not work at the moment, and how often it was tried. */
export interface Trouble {
  readonly reason: string
  readonly attempts: number
}

/** Between attempts: from 100 milliseconds, doubling up to 10 seconds, less up to a half at random. */
export const backOff = (attempts: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (random) => Effect.sleep(Math.ceil(Math.min(10_000, 100 * 2 ** (attempts - 1)) * (1 - random / 2))))

/** A failure in one line. */
export const reasonOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (typeof error === "object" && error !== null && "reason" in error && typeof error.reason === "string") return error.reason
  return String(error)
}

/** Tries until it succeeds. `trouble` is told of each failure, and `undefined` at the end. */
export const insist = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  trouble: (trouble: Trouble | undefined) => void
): Effect.Effect<A, never, R> =>
  Effect.gen(function* () {
    for (let attempts = 1; ; attempts++) {
      const exit = yield* Effect.exit(effect)
      trouble(Exit.isSuccess(exit) ? undefined : { reason: reasonOf(exit.cause), attempts })
      if (Exit.isSuccess(exit)) return exit.value
      yield* backOff(attempts)
    }
  })

/**
 * Follows the log from wherever `after` says, and again from there whenever the store fails, of which `trouble` is told.
 * Ends only when `take` fails.
 */
export const follow = <E, R>(
  after: () => Position,
  take: (batch: Batch) => Effect.Effect<void, E, R>,
  trouble: (trouble: Trouble | undefined) => void
): Effect.Effect<never, E, R | EventStore> =>
  Effect.gen(function* () {
    const events = yield* EventStore
    for (let attempts = 1; ; attempts++) {
      const end: { cause?: Cause.Cause<E> } = {}
      const read = yield* events.subscribe(after()).pipe(
        Stream.runForEachWhile((batch) => {
          attempts = 1
          trouble(undefined)
          return Effect.map(Effect.exit(take(batch)), (exit) => {
            if (Exit.isFailure(exit)) end.cause = exit.cause
            return Exit.isSuccess(exit)
          })
        }),
        Effect.exit
      )
      if (end.cause !== undefined) return yield* Effect.failCause(end.cause)
      trouble({ reason: Exit.isSuccess(read) ? "The subscription ended" : reasonOf(read.cause), attempts })
      yield* backOff(attempts)
    }
  })
