/** Whether this process needs a projection: while somebody keeps it, and for a time after each read. */
import { type Duration, Effect } from "effect"
import { Conditions } from "./Conditions.ts"

export class Need {
  readonly #conditions = new Conditions()
  #keepers = 0
  /** Whether it was asked for, and the time after that is not over. */
  #isAsked = false
  /** Whether it was asked for in the current period of {@link over}. */
  #isRecent = false

  get isNow(): boolean {
    return this.#keepers > 0 || this.#isAsked
  }

  /** Waits until it is needed. */
  readonly begun: Effect.Effect<void> = this.#conditions.until(() => this.isNow)

  /** Notes a read. */
  ask(): void {
    this.#isRecent = true
    if (this.#isAsked) return
    this.#isAsked = true
    this.#conditions.check()
  }

  /** Needs it while the effect runs. */
  keep<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const begin = Effect.sync(() => {
      this.#keepers++
      this.#conditions.check()
    })
    return Effect.acquireUseRelease(
      begin,
      () => effect,
      () => Effect.sync(() => this.#keepers--)
    )
  }

  /** Waits until nobody has needed it for this time. */
  over(idleAfter: Duration.Input): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      do {
        this.#isRecent = false
        yield* Effect.sleep(idleAfter)
      } while (this.#isRecent || this.#keepers > 0)
      this.#isAsked = false
    })
  }
}
