/**
 * Interrupts a caller once before each of its operations. A fiber gives way to others after some thousand operations, between any two of
 * them, and may be interrupted meanwhile. So what a caller takes, and has not yet promised to give back, is lost at one of these moments.
 */
import { Effect, Fiber, Scheduler, type Scope } from "effect"

/** Lets one operation of the first fiber that it runs, or of a fiber that this one has forked, wait, and interrupts the first meanwhile. */
class Interrupting extends Scheduler.MixedScheduler {
  #left: number
  #caller: Fiber.Fiber<unknown, unknown> | undefined

  /** `operation`: counted from zero. */
  constructor(operation: number) {
    super()
    this.#left = operation
  }

  /** Whether there were as many operations. */
  get hasInterrupted(): boolean {
    return this.#left < 0
  }

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    this.#caller ??= fiber
    const caller = this.#caller
    if (this.#left-- !== 0) return false
    queueMicrotask(() => caller.interruptUnsafe())
    return true
  }
}

/** A caller that is interrupted, and what must go well after it. */
export interface Interrupted<E = unknown, R = never> {
  readonly interrupted: Effect.Effect<unknown, unknown, R>
  readonly later: Effect.Effect<unknown, E, R>
}

/**
 * Makes the case anew for each operation of its caller, and interrupts the caller there. Dies if the caller or `later` hangs. Returns how
 * many operations the caller has.
 */
export const atEachOperation = <E, E2, R>(
  make: Effect.Effect<Interrupted<E, R>, E2, R | Scope.Scope>
): Effect.Effect<number, E | E2, Exclude<R, Scope.Scope>> => {
  const from = (operation: number): Effect.Effect<number, E | E2, Exclude<R, Scope.Scope>> =>
    Effect.gen(function* () {
      const { interrupted, later } = yield* make
      const scheduler = new Interrupting(operation)
      const caller = yield* Effect.forkDetach(Effect.provideService(interrupted, Scheduler.Scheduler, scheduler))
      yield* inTime(Fiber.await(caller), "The caller that was interrupted")
      yield* inTime(later, "What comes after a caller that was interrupted")
      return scheduler.hasInterrupted
    }).pipe(
      Effect.scoped,
      Effect.flatMap((hasInterrupted) => (hasInterrupted ? from(operation + 1) : Effect.succeed(operation)))
    )
  return from(0)
}

const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>, what: string) =>
  Effect.timeoutOrElse(effect, { duration: "10 seconds", orElse: () => Effect.die(new Error(`${what} hangs`)) })
