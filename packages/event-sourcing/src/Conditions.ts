/** Effects that wait until a condition holds. */
import { Effect } from "effect"

export class Conditions {
  readonly #waiting = new Set<() => void>()

  /** Resumes the waiting effects whose condition holds now. */
  check(): void {
    // A copy, because a resumed effect may wait again before this loop ends
    for (const check of [...this.#waiting]) check()
  }

  /** Waits until a {@link check} finds the condition true. Returns at once if it is true already. */
  until(condition: () => boolean): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (condition()) return resume(Effect.void)
      const check = () => {
        if (condition() && this.#waiting.delete(check)) resume(Effect.void)
      }
      this.#waiting.add(check)
      return Effect.sync(() => this.#waiting.delete(check))
    })
  }
}
