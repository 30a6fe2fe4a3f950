/**
 * The client in use. After a call without an answer, later calls use a fresh client, because some states of a client are never left. The
 * old client is closed when its last call has ended.
 *
 * A connection takes 100 open calls, and the server leaves the next one waiting without a word. So calls queue here, with a deadline.
 */
import { Clock, Duration, Effect, Latch, RcRef, Semaphore } from "effect"
import { type Driver, Fault } from "./Driver.ts"

export type Clients = Effect.Success<ReturnType<typeof make>>

/** Well below 100: a call that was given up here may count on the server for a moment longer. */
const CALLS = 64

/** Milliseconds between two replacements: a node that is gone refuses the fresh client, too. */
const RENEW_EVERY = 50

type Body<A> = (driver: Driver) => Effect.Effect<A, Fault>

/** `deadline`: milliseconds that a call may take. The scope closes the clients once every call was answered or its deadline has passed. */
export const make = (connect: () => Driver, deadline: number) =>
  Effect.gen(function* () {
    const turns = yield* Semaphore.make(CALLS)
    const current = yield* currentOf(connect, deadline)
    // Interruptible even where the caller is not: otherwise an answer that does not come could not be given up
    const within = <A>(effect: Effect.Effect<A, Fault>, late: Fault) =>
      Effect.timeoutOrElse(Effect.interruptible(effect), { duration: deadline, orElse: () => Effect.fail(late) })
    const noAnswer = new Fault({ kind: "noAnswer", message: `No answer within ${deadline} ms` })
    const noTurn = new Fault({ kind: "unreachable", message: `${CALLS} calls are open, and none ended within ${deadline} ms` })
    return {
      /** Makes a call that ends by itself. One that does not end within the deadline fails with `noAnswer`. */
      call: <A>(body: Body<A>): Effect.Effect<A, Fault> =>
        Effect.acquireUseRelease(
          within(turns.take(1), noTurn),
          () => current.using((driver) => within(body(driver), noAnswer)),
          () => turns.release(1)
        ),
      /** Makes a call that lasts: the subscription. It does not queue with the others. */
      hold: <A>(body: Body<A>): Effect.Effect<A, Fault> => current.using(body),
      deadline,
      /** How often a fresh client replaced another. */
      renewals: current.renewals
    }
  })

/** The client in use, which is replaced after a call without an answer. */
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
  const renew = (old: Driver) =>
    Effect.suspend(() => {
      const now = clock.currentTimeMillisUnsafe()
      if (isClosed || newest !== old || now - renewedAt < RENEW_EVERY) return Effect.void
      newest = undefined
      renewedAt = now
      renewals++
      return RcRef.invalidate(ref)
    })
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
