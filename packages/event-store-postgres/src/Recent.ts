/** The newest events of this process. Its followers need not read them from the server. */
import { type EventStore, type Place, placeOf, WrittenEvents } from "@millrace/event-sourcing"
import type { Append, Outcome } from "./PostgresLog.ts"

/** The most events that are kept. */
const KEPT = 2_048

export class Recent {
  /** By the place before each. */
  readonly #transactions = new Map<Place, WrittenEvents>()
  #kept = 0
  #last: EventStore.Position | undefined

  /** The newest event that an append of this process has written, or has found written. */
  get last(): EventStore.Position | undefined {
    return this.#last
  }

  /** Keeps the events that a transaction has written. They have consecutive positions. */
  wrote(appends: ReadonlyArray<Append>, outcomes: ReadonlyArray<Outcome>): void {
    let written: WrittenEvents | undefined
    for (const [i, { before, events, stream }] of appends.entries()) {
      const outcome = outcomes[i]
      if (outcome === undefined || "actual" in outcome) continue
      if (this.#last === undefined || outcome.position > this.#last) this.#last = outcome.position
      // A repeated append has the same ids as the stored events, but perhaps other data
      if (!outcome.isNew) continue
      written ??= new WrittenEvents(placeOf(outcome.position) - events.length)
      written.add(stream, before + 1, events)
    }
    if (written !== undefined) this.#keep(written)
  }

  /** The transactions after a position up to `head`; undefined unless this process wrote all of them. */
  between(after: EventStore.Position, head: EventStore.Position): ReadonlyArray<WrittenEvents> | undefined {
    const transactions: Array<WrittenEvents> = []
    for (let position = after; position < head; ) {
      const next = this.#transactions.get(placeOf(position))
      if (next === undefined) return undefined
      transactions.push(next)
      position = next.end
    }
    return transactions.length === 0 ? undefined : transactions
  }

  #keep(written: WrittenEvents): void {
    this.#transactions.set(written.after, written)
    this.#kept += written.size
    for (const [after, { size }] of this.#transactions) {
      if (this.#kept <= KEPT || after === written.after) break
      this.#transactions.delete(after)
      this.#kept -= size
    }
  }
}
