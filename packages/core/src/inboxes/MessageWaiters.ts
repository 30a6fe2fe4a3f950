/** Callers that wait for something to happen to an inbox. The log wakes them, so a message that arrives at another host does, too. */
import { EventStore, Following, StreamName } from "@millrace/event-sourcing"
import { Deferred, type Duration, Effect } from "effect"
import { Inbox } from "./Inbox.ts"

/** Follows the log from now on, until the scope closes. */
export const make = Effect.gen(function* () {
  const events = yield* EventStore.EventStore
  const waiting = new Map<string, Set<Deferred.Deferred<void>>>()
  /** Done once the log is followed: what is written after that wakes. */
  const following = Deferred.makeUnsafe<void>()

  const wake = ({ events }: EventStore.Batch) =>
    Effect.sync(() => {
      for (const { stream } of events)
        if (StreamName.category(stream) === Inbox.category)
          for (const waiter of waiting.get(StreamName.id(stream)) ?? []) Deferred.doneUnsafe(waiter, Effect.void)
    })
  const follow = Effect.gen(function* () {
    let position = yield* Following.retryForever(events.head, () => {})
    Deferred.doneUnsafe(following, Effect.void)
    const take = (batch: EventStore.Batch) =>
      Effect.map(wake(batch), () => {
        position = batch.events.at(-1)?.position ?? position
      })
    return yield* Following.follow(
      () => position,
      take,
      () => {}
    )
  })
  yield* Effect.forkScoped(follow)

  const register = (inboxId: string) =>
    Effect.sync(() => {
      const waiter = Deferred.makeUnsafe<void>()
      const others = waiting.get(inboxId) ?? new Set()
      waiting.set(inboxId, others.add(waiter))
      return waiter
    })
  const leave = (inboxId: string, waiter: Deferred.Deferred<void>) =>
    Effect.sync(() => {
      const others = waiting.get(inboxId)
      others?.delete(waiter)
      if (others?.size === 0) waiting.delete(inboxId)
    })

  return {
    /**
     * Reads again after each event of an inbox until the answer is good enough, at most for `within`. Then the last answer counts. Fails if
     * a read fails.
     */
    until: <A, E, R>(inboxId: string, read: Effect.Effect<A, E, R>, isEnough: (answer: A) => boolean, within: Duration.Input) => {
      const woken = Effect.acquireUseRelease(
        register(inboxId),
        (waiter) =>
          // Registered before it reads: an event after the read wakes it
          Effect.flatMap(read, (answer) => (isEnough(answer) ? Effect.succeed(answer) : Effect.as(Deferred.await(waiter), undefined))),
        (waiter) => leave(inboxId, waiter)
      )
      const enough = Effect.gen(function* () {
        yield* Deferred.await(following)
        for (;;) {
          const answer = yield* woken
          if (answer !== undefined) return answer
        }
      })
      return Effect.flatMap(Effect.timeoutOption(enough, within), (answer) =>
        answer._tag === "Some" ? Effect.succeed(answer.value) : read
      )
    },
    /** How many wait. */
    size: () => [...waiting.values()].reduce((sum, { size }) => sum + size, 0)
  }
})
