/**
 * Keeps a host with a wrong clock from writing. An event carries the time of the host that decided it, and that time ends holds, lots
 * and keys for good. So the host asks the store for its time, and assumes that the answer is of the middle of the round trip. While the
 * two clocks differ by more than {@link BOUND}, every append is refused. Between two requests, the host compares its clock with its
 * monotonic clock at each append, to notice that the clock was set or the host slept. Appends succeed again once the clocks agree.
 */
import { Clock, Duration, Effect, Exit, Latch, type Scope, Semaphore } from "effect"
import { type Append, appendBy, type ClockStatus, type EventStore, StoreUnavailable, wrapAppend } from "./EventStore.ts"

/** Milliseconds by which a host's clock and its store's clock may differ. */
export const BOUND = 2_000

export interface Options<Answer, E> {
  /** Asks the store for its time. The time in the answer lies between the request and the answer. */
  readonly ask: Effect.Effect<Answer, E>
  /** The time in the answer, in milliseconds since 1970. */
  readonly timeOf: (answer: Answer) => Effect.Effect<number, E>
  /** How often the store is asked. Ten times as often while the clock is wrong. */
  readonly every: Duration.Input
  /** Whether asking is a write. Then the store is asked only while there are appends. */
  readonly onlyForAppends?: boolean
}

/** The longest time that the opening of the store, or the first append, waits for the first answer. */
const PATIENCE = "5 seconds"

/** The comparison by one answer of the store, in milliseconds. */
interface Measured {
  /** How far this host's clock was ahead. */
  readonly ahead: number
  /** The largest error of `ahead`: half of the round trip. */
  readonly doubt: number
  /** The difference between this host's clock and its monotonic clock at that time. */
  readonly between: number
  /** The time of the comparison by the monotonic clock. */
  readonly at: number
}

/** Wraps a store so that it refuses appends while this host's clock is wrong. Its `clock` reports the state. */
export const make = <Answer, E>(
  store: EventStore["Service"],
  options: Options<Answer, E>
): Effect.Effect<EventStore["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const { onlyForAppends = false } = options
    const guard = new Guard(options, yield* Clock.Clock)
    const asking = yield* Semaphore.make(1)
    const first = asking.withPermit(Effect.suspend(() => (guard.isAsked ? Effect.void : guard.measure)))
    if (!onlyForAppends) yield* first
    yield* Effect.forkScoped(Effect.forever(guard.round))
    const refusal = () => {
      const reason = guard.check()
      return reason === undefined ? undefined : new StoreUnavailable({ reason, why: "clock" })
    }
    const { isConditional = false, submit } = store.append
    const checked: Append =
      submit === undefined
        ? wrapAppend(store.append, (...of) =>
            Effect.suspend(() => {
              const refused = refusal()
              return refused === undefined ? store.append(...of) : Effect.fail(refused)
            })
          )
        : appendBy(
            (stream, expected, events, told, conditions) => {
              const refused = refusal()
              return refused === undefined ? submit(stream, expected, events, told, conditions) : told(Exit.fail(refused))
            },
            { isConditional }
          )
    const append = onlyForAppends
      ? wrapAppend(checked, (...of) => (guard.isAsked ? checked(...of) : Effect.andThen(first, checked(...of))))
      : checked
    return { ...store, append, clock: { status: Effect.sync(() => guard.status()) } }
  })

/** Compares this host's clock with the store's. */
class Guard<Answer, E> {
  /** Whether the store was asked for its time before. */
  isAsked = false
  readonly #options: Options<Answer, E>
  /** Milliseconds between two requests. */
  readonly #every: number
  readonly #clock: Clock.Clock
  readonly #due = Latch.makeUnsafe(false)
  #measured: Measured | undefined
  #isWrong = false

  constructor(options: Options<Answer, E>, clock: Clock.Clock) {
    this.#options = options
    this.#every = Duration.toMillis(options.every)
    this.#clock = clock
  }

  status(): ClockStatus {
    return { ahead: this.#measured && this.#aheadNow(this.#measured), trouble: this.#trouble() }
  }

  /** Why appends are refused now; undefined if they are not. Asks the store again if the last answer is outdated. */
  check(): string | undefined {
    const reason = this.#trouble()
    const isOld = this.#measured === undefined || this.#elapsed() - this.#measured.at > this.#every
    // A clock that jumped is compared at once, because it may have been corrected
    if (isOld || (reason !== undefined && !this.#isWrong)) this.#due.openUnsafe()
    return reason
  }

  /** Waits until the next request is due, then asks the store. */
  get round(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#isWrong) return Effect.sleep(this.#every / 10)
      return this.#options.onlyForAppends === true ? this.#due.await : Effect.raceFirst(Effect.sleep(this.#every), this.#due.await)
    }).pipe(Effect.andThen(this.#due.close), Effect.andThen(this.measure))
  }

  /** Asks the store for its time, and logs when the clock becomes wrong or right. */
  get measure(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const asked = this.#elapsed()
      const answer = yield* this.#options.ask
      const at = this.#elapsed()
      const now = this.#clock.currentTimeMillisUnsafe()
      const doubt = (at - asked) / 2
      const time = yield* this.#options.timeOf(answer)
      this.#measured = { ahead: now - doubt - time, doubt, between: now - at, at }
    }).pipe(
      Effect.timeout(PATIENCE),
      Effect.catchCause((cause) => Effect.logDebug("A store did not tell its time", cause)),
      Effect.andThen(Effect.suspend(() => this.#logChange()))
    )
  }

  #logChange(): Effect.Effect<void> {
    const reason = this.#trouble()
    const wasWrong = this.#isWrong
    this.isAsked = true
    this.#isWrong = reason !== undefined
    if (this.#isWrong === wasWrong) return Effect.void
    return this.#isWrong ? Effect.logError(`Nothing is written: ${reason}`) : Effect.logInfo("The clock of this host is right again")
  }

  #elapsed(): number {
    return Number(this.#clock.monotonicTimeNanosUnsafe()) / 1e6
  }

  #aheadNow({ ahead, between }: Measured): number {
    return ahead + this.#clock.currentTimeMillisUnsafe() - this.#elapsed() - between
  }

  /** Why appends are refused. The possible error of a slow answer counts in the host's favour. */
  #trouble(): string | undefined {
    if (this.#measured === undefined) return undefined
    const ahead = this.#aheadNow(this.#measured)
    if (Math.abs(ahead) - this.#measured.doubt <= BOUND) return undefined
    const apart = `${(Math.abs(ahead) / 1_000).toFixed(1)} s ${ahead > 0 ? "ahead of" : "behind"}`
    return `the clock of this host is ${apart} its store's: it writes nothing until they agree, set it by NTP`
  }
}
