/**
 * Keeps a host whose clock is wrong from writing. What is decided is dated by the clock of the host that decides, and ends holds, lots
 * and keys; what was written stays so. A store that lives elsewhere can tell its own time: it is asked, the round trip is halved, and
 * while this host is apart from it by more than {@link BOUND}, every append is refused. In between, a clock that is set, or that slept,
 * shows by the monotonic one beside it, at the very next append. All comes back by itself once the clocks agree.
 */
import { Clock, Duration, Effect, Latch, type Scope, Semaphore } from "effect"
import { type ClockStatus, type EventStore, StoreUnavailable } from "./EventStore.ts"

/** Milliseconds by which the clocks of hosts and their store may differ. */
export const BOUND = 2_000

export interface Options<Answer, E> {
  /** Asks the store: the time that it tells is of an instant between question and answer. */
  readonly ask: Effect.Effect<Answer, E>
  /** What the answer says, in milliseconds since 1970. */
  readonly timeOf: (answer: Answer) => Effect.Effect<number, E>
  /** How often the store is asked; ten times as often while the clock is wrong. */
  readonly every: Duration.Input
  /** Where asking is a write: nothing is asked before the first append, nor for as long as there is none. */
  readonly onlyForAppends?: boolean
}

/** The first append, or the opening of the store, waits for the first answer no longer than this. */
const PATIENCE = "5 seconds"

interface Measured {
  /** Milliseconds by which this host was ahead, and by how much less or more that may have been. */
  readonly ahead: number
  readonly doubt: number
  /** Between this host's two clocks, then. */
  readonly between: number
  /** By the monotonic one. */
  readonly at: number
}

/** The store, which refuses appends while this host's clock is wrong, and tells of it. */
export const make = <Answer, E>(
  store: EventStore["Service"],
  { ask, timeOf, every: period, onlyForAppends = false }: Options<Answer, E>
): Effect.Effect<EventStore["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const every = Duration.toMillis(period)
    const due = Latch.makeUnsafe(false)
    let measured: Measured | undefined
    let isWrong = false

    const elapsed = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const between = () => clock.currentTimeMillisUnsafe() - elapsed()
    const aheadNow = ({ ahead, between: before }: Measured) => ahead + between() - before

    /** Says why nothing is appended. Beyond any doubt: a slow answer tells less. */
    const trouble = (): string | undefined => {
      if (measured === undefined) return undefined
      const ahead = aheadNow(measured)
      if (Math.abs(ahead) - measured.doubt <= BOUND) return undefined
      const apart = `${(Math.abs(ahead) / 1_000).toFixed(1)} s ${ahead > 0 ? "ahead of" : "behind"}`
      return `the clock of this host is ${apart} its store's: it writes nothing until they agree, set it by NTP`
    }

    const measure = Effect.gen(function* () {
      const asked = elapsed()
      const answer = yield* ask
      const at = elapsed()
      const now = clock.currentTimeMillisUnsafe()
      const doubt = (at - asked) / 2
      const time = yield* timeOf(answer)
      measured = { ahead: now - doubt - time, doubt, between: now - at, at }
    }).pipe(
      Effect.timeout(PATIENCE),
      Effect.catchCause((cause) => Effect.logDebug("A store did not tell its time", cause)),
      Effect.andThen(
        Effect.suspend(() => {
          const reason = trouble()
          const wasWrong = isWrong
          isWrong = reason !== undefined
          if (isWrong === wasWrong) return Effect.void
          return isWrong ? Effect.logError(`Nothing is written: ${reason}`) : Effect.logInfo("The clock of this host is right again")
        })
      )
    )
    const permit = yield* Semaphore.make(1)
    let isAsked = false
    const first = permit.withPermit(
      Effect.suspend(() => (isAsked ? Effect.void : Effect.tap(measure, () => Effect.sync(() => (isAsked = true)))))
    )

    const next = Effect.suspend(() => {
      if (isWrong) return Effect.sleep(every / 10)
      return onlyForAppends ? due.await : Effect.raceFirst(Effect.sleep(every), due.await)
    })
    if (!onlyForAppends) yield* first
    yield* next.pipe(Effect.andThen(Effect.sync(() => due.closeUnsafe())), Effect.andThen(measure), Effect.forever, Effect.forkScoped)

    const refused = (reason: string) => Effect.fail(new StoreUnavailable({ reason, why: "clock" }))
    const checked: EventStore["Service"]["append"] = (stream, expected, events) =>
      Effect.suspend(() => {
        const reason = trouble()
        const isOld = measured === undefined || elapsed() - measured.at > every
        // A clock that jumped is compared at once: it may have been put right
        if (isOld || (reason !== undefined && !isWrong)) due.openUnsafe()
        return reason === undefined ? store.append(stream, expected, events) : refused(reason)
      })
    const append: EventStore["Service"]["append"] = onlyForAppends
      ? (stream, expected, events) => {
          const now = checked(stream, expected, events)
          return isAsked ? now : Effect.andThen(first, now)
        }
      : checked

    const status = Effect.sync((): ClockStatus => ({ ahead: measured && aheadNow(measured), trouble: trouble() }))
    return { ...store, append, clock: { status } }
  })
