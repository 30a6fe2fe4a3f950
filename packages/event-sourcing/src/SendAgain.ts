/** An append in doubt: whether it was written is found out by sending it again. */
import { type Cause, Effect, Schedule, Stream } from "effect"
import * as Store from "./EventStore.ts"

/** Milliseconds until an append in doubt is sent again. The pause doubles each time: some five seconds in all. */
const RESEND_AFTER = 10
const RESENDS = 9

type Service = Store.EventStore["Service"]

/**
 * Sends an append in doubt again. Returns how it ended: written; refused by a condition; or undefined, if another writer appended first. Only an
 * answer to the identical append settles the doubt: until then, the first append may still arrive.
 */
export const sendAgain = (
  store: Service,
  doubt: Cause.Cause<Store.AppendFailure>,
  ...append: Parameters<Service["append"]>
): Effect.Effect<Store.Appended | Store.ConditionFailed | undefined, Store.AppendFailure> => {
  const [stream, expected, events] = append
  // A store may answer a repeated append as a conflict with itself, or by a condition that holds no longer. It was written if these events are
  // at its place
  const first = Store.revisionOf(expected) + 1
  const readBack = Effect.map(Stream.runCollect(store.readStream(stream, { from: first, limit: events.length })), (there) =>
    there.length === events.length && there.every(({ id }, i) => id === events[i]?.id) ? there.at(-1) : undefined
  )
  return store.append(...append).pipe(
    Effect.delay(RESEND_AFTER),
    Effect.retry({ while: (error) => !isAnswer(error), schedule: Schedule.exponential(RESEND_AFTER), times: RESENDS }),
    Effect.catchTags({
      WrongRevision: () => readBack,
      ConditionFailed: (failed) => Effect.map(readBack, (written) => written ?? failed)
    }),
    Effect.catch(() => Effect.failCause(doubt))
  )
}

const isAnswer = ({ _tag }: Store.AppendFailure): boolean => _tag === "WrongRevision" || _tag === "ConditionFailed"
