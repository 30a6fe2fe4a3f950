/**
 * Turns that one caller has at a time. Accounts have them in rotation, and the callers of an account in the order in which they came. So a
 * caller waits for one turn of every other account for each caller of its own account before it, however many callers the others have.
 */
import { Effect } from "effect"

interface Waiter {
  readonly account: string
  readonly go: () => void
}

export class AccountTurns {
  #isTaken = false
  /** The callers that wait, by account. The account that is next comes first; none is empty. */
  readonly #waiting = new Map<string, Array<Waiter>>()

  /** Waits for the turn. Whoever has had it releases it. */
  take(account: string): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (!this.#isTaken) {
        this.#isTaken = true
        resume(Effect.void)
        return Effect.void
      }
      const waiter: Waiter = { account, go: () => resume(Effect.void) }
      const own = this.#waiting.get(account)
      if (own === undefined) this.#waiting.set(account, [waiter])
      else own.push(waiter)
      return Effect.sync(() => this.#leave(waiter))
    })
  }

  /** Gives the turn to the next account that waits. */
  release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#isTaken = false
      return
    }
    const [account, own] = next
    const waiter = own.shift()
    // Its other callers wait behind one of every other account
    this.#waiting.delete(account)
    if (own.length > 0) this.#waiting.set(account, own)
    waiter?.go()
  }

  /** How many turns go before that of a new caller of an account, if nobody else comes. The turn that is taken is not counted. */
  before(account: string): number {
    const own = this.#waiting.get(account)?.length ?? 0
    let turns = own
    for (const [other, { length }] of this.#waiting) if (other !== account) turns += Math.min(length, own + 1)
    return turns
  }

  #leave(waiter: Waiter): void {
    const own = this.#waiting.get(waiter.account)
    const place = own?.indexOf(waiter) ?? -1
    if (own === undefined || place < 0) return
    own.splice(place, 1)
    if (own.length === 0) this.#waiting.delete(waiter.account)
  }
}
