/** Does what arrives in one turn of the event loop together, at its end. */
import { AsyncResource } from "node:async_hooks"

/** What arrived, and the asynchronous context in which it did. */
class Arrival<A> extends AsyncResource {
  readonly what: A

  constructor(what: A) {
    super("millrace/Arrival")
    this.what = what
  }
}

/**
 * Returns a function that calls `begin` later: once for each of its calls, in their order and in the asynchronous context of each, but
 * all in one step of the event loop. What a store is asked in one step, it answers once. `later` runs a function at the end of the turn.
 */
export const together = <A>(
  begin: (what: A) => void,
  later: (run: () => void) => void = (run) => void setImmediate(run)
): ((what: A) => void) => {
  let waiting: Array<Arrival<A>> = []
  const beginAll = (): void => {
    const all = waiting
    waiting = []
    let next = 0
    try {
      for (const arrival of all) {
        next++
        arrival.runInAsyncScope(begin, undefined, arrival.what)
      }
    } finally {
      // A bug in one of them must not keep the others waiting
      if (next < all.length) {
        waiting = [...all.slice(next), ...waiting]
        later(beginAll)
      }
    }
  }
  return (what) => {
    if (waiting.push(new Arrival(what)) === 1) later(beginAll)
  }
}
