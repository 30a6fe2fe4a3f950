/**
 * Turns that one caller has at a time. Accounts have them in rotation, and the callers of an account in the order in which they came. So a
 * caller waits for one turn of every other account for each caller of its own account before it, however many callers the others have.
 */
import { Deferred, Effect } from "effect"

/** A turn of an account, from when it was asked for. */
export interface Turn {
  readonly account: string
  readonly begun: Deferred.Deferred<void>
}

export class AccountTurns {
  #current: Turn | undefined
  /** The turns that were asked for, by account. The account that is next comes first; none is empty. */
  readonly #waiting = new Map<string, Array<Turn>>()

  /** Asks for a turn. Whoever asks ends it, whether it has begun by then or not. */
  ask(account: string): Turn {
    const turn: Turn = { account, begun: Deferred.makeUnsafe() }
    const own = this.#waiting.get(account)
    if (this.#current === undefined) this.#begin(turn)
    else if (own === undefined) this.#waiting.set(account, [turn])
    else own.push(turn)
    return turn
  }

  /** Ends a turn: if it has begun, that of the next account begins. Does nothing if it has ended. */
  end(turn: Turn): void {
    if (turn !== this.#current) return this.#leave(turn)
    this.#current = undefined
    const [next] = this.#waiting
    if (next === undefined) return
    const [account, own] = next
    const first = own.shift()
    // Its other callers wait behind one of every other account
    this.#waiting.delete(account)
    if (own.length > 0) this.#waiting.set(account, own)
    if (first !== undefined) this.#begin(first)
  }

  /** How many turns go before that of a new caller of an account, if nobody else comes. The turn that has begun is not counted. */
  before(account: string): number {
    const own = this.#waiting.get(account)?.length ?? 0
    let turns = own
    for (const [other, { length }] of this.#waiting) if (other !== account) turns += Math.min(length, own + 1)
    return turns
  }

  #begin(turn: Turn): void {
    this.#current = turn
    Deferred.doneUnsafe(turn.begun, Effect.void)
  }

  #leave(turn: Turn): void {
    const own = this.#waiting.get(turn.account)
    const place = own?.indexOf(turn) ?? -1
    if (own === undefined || place < 0) return
    own.splice(place, 1)
    if (own.length === 0) this.#waiting.delete(turn.account)
  }
}
