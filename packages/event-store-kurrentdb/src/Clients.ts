/**
 * The client in use. After a call without an answer, later calls use a fresh client, because a client does not recover from every state.
 * The old client is closed when its last call has ended.
 *
 * A connection takes 100 open calls; the next call hangs without an error. So calls queue here, with a deadline.
 */
import { Clock, Duration, Effect, Latch, RcRef, Semaphore } from "effect"
import { type Driver, Fault } from "./Driver.ts"

export type Clients = Effect.Success<ReturnType<typeof make>>

/** Well below 100, because a call that was cancelled here may still count on the server for a moment. */
const CALLS = 64

/** Least milliseconds between two replacements: a node that is down refuses the fresh client, too. */
const RENEW_EVERY = 50

type Body<A> = (driver: Driver) => Effect.Effect<A, Fault>

/** `deadline`: milliseconds that a call may take. Closing the scope waits for the open calls, then closes the clients. */
export const make = (connect: () => Driver, deadline: number) =>
  Effect.gen(function* () {
    const turns = yield* Semaphore.make(CALLS)
    const current = yield* currentOf(connect, deadline)
    // Interruptible even if the caller is not, or the deadline could not end the call
    const within = <A>(effect: Effect.Effect<A, Fault>, late: Fault) =>
      Effect.timeoutOrElse(Effect.interruptible(effect), { duration: deadline, orElse: () => Effect.fail(late) })
    const noAnswer = new Fault({ kind: "noAnswer", message: `No answer within ${deadline} ms` })
    const noTurn = new Fault({ kind: "unreachable", message: `${CALLS} calls are open and none of them ended within ${deadline} ms` })
    return {
      /** Makes a call with the deadline. A call that does not end in time fails with `noAnswer`. */
      call: <A>(body: Body<A>): Effect.Effect<A, Fault> =>
        Effect.acquireUseRelease(
          within(turns.take(1), noTurn),
          () => current.using((driver) => within(body(driver), noAnswer)),
          () => turns.release(1)
        ),
      /** Makes a call without a deadline: the subscription. It does not queue. */
      hold: <A>(body: Body<A>): Effect.Effect<A, Fault> => current.using(body),
      deadline,
      /** How often a fresh client replaced the one in use. */
      renewals: current.renewals
    }
  })

/** Keeps the client in use, and replaces it after a call without an answer. */
const currentOf = Effect.fnUntraced(function* (connect: () => Driver, deadline: number) {
  const clock = yield* Clock.Clock
  const idle = Latch.makeUnsafe()
  let newest: Driver | undefined
  let renewedAt = 0
  let renewals = 0
  let calls = 0
  let isClosed = false
  const ref = yield* RcRef.make({
    acquire: Effect.acquireRelease(
      Effect.sync(() => {
        newest = connect()
        return newest
      }),
      (driver) => Effect.sync(() => driver.close())
    ),
    idleTimeToLive: Duration.infinity
  })
  yield* Effect.addFinalizer(() => {
    isClosed = true
    return calls === 0 ? Effect.void : Effect.timeoutOption(Effect.interruptible(idle.await), deadline)
  })

  const begin = Effect.suspend(() => {
    if (isClosed) return Effect.fail(new Fault({ kind: "unreachable", message: "closed" }))
    calls++
    return Effect.void
  })
  const end = Effect.sync(() => {
    if (--calls === 0 && isClosed) idle.openUnsafe()
  })
  // Uninterruptible, or an interruption in between would leave the old client in use for ever
  const renew = (old: Driver) =>
    Effect.uninterruptible(
      Effect.suspend(() => {
        const now = clock.currentTimeMillisUnsafe()
        if (isClosed || newest !== old || now - renewedAt < RENEW_EVERY) return Effect.void
        newest = undefined
        renewedAt = now
        renewals++
        return RcRef.invalidate(ref)
      })
    )
  const use = <A>(body: Body<A>) =>
    Effect.flatMap(RcRef.get(ref), (driver) =>
      Effect.tapError(body(driver), ({ kind }) => (kind === "noAnswer" || kind === "unreachable" ? renew(driver) : Effect.void))
    )
  return {
    using: <A>(body: Body<A>): Effect.Effect<A, Fault> =>
      Effect.acquireUseRelease(
        begin,
        () => Effect.scoped(use(body)),
        () => end
      ),
    renewals: () => renewals
  }
})
