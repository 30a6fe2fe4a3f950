/** Shared by projections, reactions and deadlines: selecting events, following the log, retrying failures and reporting them. */
import { Cause, Effect, Exit, Random, Stream } from "effect"
import { type Batch, EventStore, type Position, type RecordedEvent, type Selection, type Subscription } from "./EventStore.ts"
import { isOf } from "./StreamName.ts"

export type { Selection, Subscription } from "./EventStore.ts"

export const selects = ({ types, categories }: Selection): ((event: RecordedEvent) => boolean) => {
  const ofType = types && new Set(types)
  const ofCategories = categories?.map(isOf)
  return ({ stream, type }) => (ofType?.has(type) ?? true) && (ofCategories?.some((isOfCategory) => isOfCategory(stream)) ?? true)
}

/** A failure that is being retried, and the number of attempts. */
export interface Retrying {
  readonly reason: string
  readonly attempts: number
}

/** Called with each failure that is retried, and with `undefined` on success. */
export type Report = (retrying: Retrying | undefined) => void

/** The pause between attempts: from 100 milliseconds, doubling up to 10 seconds, reduced by up to half at random. */
export const backOff = (attempts: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (random) => Effect.sleep(Math.ceil(Math.min(10_000, 100 * 2 ** (attempts - 1)) * (1 - random / 2))))

/** A failure in one line. */
export const reasonOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (typeof error === "object" && error !== null && "reason" in error && typeof error.reason === "string") return error.reason
  return String(error)
}

/** Retries failures and defects, with a pause that grows, until the effect succeeds. */
export const retryForever = <A, E, R>(effect: Effect.Effect<A, E, R>, report: Report): Effect.Effect<A, never, R> =>
  Effect.gen(function* () {
    for (let attempts = 1; ; attempts++) {
      const exit = yield* Effect.exit(effect)
      report(Exit.isSuccess(exit) ? undefined : { reason: reasonOf(exit.cause), attempts })
      if (Exit.isSuccess(exit)) return exit.value
      yield* backOff(attempts)
    }
  })

/**
 * Follows the log from the position that `after` returns. Resumes from there if the store fails. Ends only if `take` fails. With a
 * `subscription`, batches may lack events that it does not select, and `take` must heed their `position`.
 */
export const follow = <E, R>(
  after: () => Position,
  take: (batch: Batch) => Effect.Effect<void, E, R>,
  report: Report,
  subscription?: Subscription
): Effect.Effect<never, E, R | EventStore> =>
  Effect.gen(function* () {
    const events = yield* EventStore
    for (let attempts = 1; ; attempts++) {
      const end: { cause?: Cause.Cause<E> } = {}
      const read = yield* events.subscribe(after(), subscription).pipe(
        Stream.runForEachWhile((batch) => {
          attempts = 1
          report(undefined)
          return Effect.map(Effect.exit(take(batch)), (exit) => {
            if (Exit.isFailure(exit)) end.cause = exit.cause
            return Exit.isSuccess(exit)
          })
        }),
        Effect.exit
      )
      if (end.cause !== undefined) return yield* Effect.failCause(end.cause)
      report({ reason: Exit.isSuccess(read) ? "The subscription ended" : reasonOf(read.cause), attempts })
      yield* backOff(attempts)
    }
  })
