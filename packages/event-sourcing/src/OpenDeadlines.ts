/** Open deadlines in memory, by key and by time. */
import { Schema, SchemaTransformation } from "effect"

export interface Deadline {
  /** Identifies the deadline. Each key has one deadline, the last one set. */
  readonly key: string
  /** Milliseconds since 1970. */
  readonly dueAt: number
  /** Data for `onDue`. It should be small, because all open deadlines are in memory. */
  readonly payload: string
  /** From this time on it is not due any more. */
  readonly until?: number
}

/** Orders by time, then by key. */
export const byTime = (a: Deadline, b: Deadline) => a.dueAt - b.dueAt || (a.key < b.key ? -1 : 1)

const hasLapsed = ({ until }: Deadline, now: number): boolean => until !== undefined && until <= now

/**
 * A map by key and a binary heap by time. Moved and cleared deadlines stay in the heap until they reach its top or are too many. Setting
 * one of a million deadlines takes a few steps; finding the due ones takes about one step for each.
 */
export class OpenDeadlines {
  readonly #open = new Map<string, Deadline>()
  #heap: Array<Deadline> = []
  /** How many deadlines there were when lapsed ones were last dropped. */
  #kept = 0
  /** The earliest time set since the waiting sweep last reset this to infinity. */
  soonest = Number.POSITIVE_INFINITY

  get size(): number {
    return this.#open.size
  }

  /** Returns the deadlines unordered. */
  values(): Iterable<Deadline> {
    return this.#open.values()
  }

  /** Whether exactly this deadline is open, that is, not moved and not cleared. */
  has(deadline: Deadline): boolean {
    return this.#open.get(deadline.key) === deadline
  }

  /** `now`: a time that has come, at which lapsed deadlines may be dropped. */
  set(deadline: Deadline, now?: number): void {
    if (!Number.isFinite(deadline.dueAt)) throw new Error(`${deadline.key} due at ${deadline.dueAt}`)
    this.#open.set(deadline.key, deadline)
    this.soonest = Math.min(this.soonest, deadline.dueAt)
    this.#rise(this.#heap.length, deadline)
    if (now !== undefined && this.#open.size > 2 * this.#kept + 1_000) this.#dropLapsed(now)
    this.#tidy()
  }

  #dropLapsed(now: number): void {
    for (const [key, deadline] of this.#open) if (hasLapsed(deadline, now)) this.#open.delete(key)
    this.#kept = this.#open.size
  }

  clear(key: string): void {
    this.#open.delete(key)
    this.#tidy()
  }

  /** The deadlines due at `now`, the oldest first, and the time of the next one after them. */
  at(now: number): { readonly due: ReadonlyArray<Deadline>; readonly next: number } {
    for (let top = this.#heap[0]; top !== undefined && !this.has(top); top = this.#heap[0]) {
      const last = this.#heap.pop()
      if (last !== undefined && last !== top) this.#sink(0, last)
    }
    const due: Array<Deadline> = []
    let next = Number.POSITIVE_INFINITY
    const places = [0]
    for (let place = places.pop(); place !== undefined; place = places.pop()) {
      const deadline = this.#heap[place]
      // No deadline below this node is earlier
      if (deadline === undefined || deadline.dueAt >= next) continue
      const open = this.has(deadline) && !hasLapsed(deadline, now)
      if (open && deadline.dueAt > now) next = deadline.dueAt
      else {
        if (open) due.push(deadline)
        places.push(2 * place + 1, 2 * place + 2)
      }
    }
    return { due: due.sort(byTime), next }
  }

  #tidy(): void {
    if (this.#heap.length <= 2 * this.#open.size + 1_000) return
    this.#heap = [...this.#open.values()]
    for (let place = (this.#heap.length >> 1) - 1; place >= 0; place--) {
      const deadline = this.#heap[place]
      if (deadline !== undefined) this.#sink(place, deadline)
    }
  }

  #rise(place: number, deadline: Deadline): void {
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = this.#heap[above]
      if (parent === undefined || parent.dueAt <= deadline.dueAt) break
      this.#heap[place] = parent
      place = above
    }
    this.#heap[place] = deadline
  }

  #sink(place: number, deadline: Deadline): void {
    for (;;) {
      const left = this.#heap[2 * place + 1]
      const right = this.#heap[2 * place + 2]
      const child = right !== undefined && left !== undefined && right.dueAt < left.dueAt ? right : left
      if (child === undefined || child.dueAt >= deadline.dueAt) break
      this.#heap[place] = child
      place = 2 * place + (child === left ? 1 : 2)
    }
    this.#heap[place] = deadline
  }
}

/** The stored form of a deadline: `[key, dueAt, payload]`, and `until` where it lapses. */
export const StoredDeadlines = Schema.Array(
  Schema.Tuple([Schema.String, Schema.Finite, Schema.String, Schema.optionalKey(Schema.Finite)])
).pipe(
  Schema.decodeTo(
    Schema.instanceOf(OpenDeadlines),
    SchemaTransformation.transform({
      decode: (rows) => {
        const open = new OpenDeadlines()
        for (const [key, dueAt, payload, until] of rows) open.set({ key, dueAt, payload, ...(until === undefined ? {} : { until }) })
        return open
      },
      encode: (open) =>
        Array.from(open.values(), ({ key, dueAt, payload, until }) =>
          until === undefined ? ([key, dueAt, payload] as const) : ([key, dueAt, payload, until] as const)
        )
    })
  )
)
