/** What an audit says: whether all is well, what was read, the head to keep for the next audit, and each problem by its event. */
import { Schema } from "effect"
import { Head } from "./Head.ts"

/** The stream of a problem that is the whole log's. */
export const WHOLE_LOG = "$all"

export const Problem = Schema.Struct({
  /** Of the event at fault; for what is found missing, of the first event that shows it. */
  position: Schema.String,
  /** `$all` when it is not one stream's. */
  stream: Schema.String,
  rule: Schema.String,
  detail: Schema.String
})
export type Problem = typeof Problem.Type

export const Report = Schema.Struct({
  ok: Schema.Boolean,
  events: Schema.Int,
  streams: Schema.Int,
  accounts: Schema.Int,
  seconds: Schema.Finite,
  head: Head,
  /** All that was found; `problems` holds at most {@link MAX_PROBLEMS}, {@link MAX_PROBLEMS_OF_STREAM} of one stream. */
  found: Schema.Int,
  problems: Schema.Array(Problem)
})
export type Report = typeof Report.Type

export const MAX_PROBLEMS = 1_000
/** So that one stream broken from end to end does not hide what is wrong with others. */
export const MAX_PROBLEMS_OF_STREAM = 100

/** Where a problem is. */
export interface Place {
  readonly position: string
  readonly stream: string
}

/** Problems as they are found: counted all, kept up to the limits. */
export class Problems {
  found = 0
  readonly #kept: Array<Problem> = []
  readonly #ofStream = new Map<string, number>()

  add({ position, stream }: Place, rule: string, detail: string): void {
    this.found++
    const before = this.#ofStream.get(stream) ?? 0
    this.#ofStream.set(stream, before + 1)
    if (before < MAX_PROBLEMS_OF_STREAM && this.#kept.length < MAX_PROBLEMS) this.#kept.push({ position, stream, rule, detail })
  }

  /** In the order of the log. */
  list(): ReadonlyArray<Problem> {
    return this.#kept.toSorted((a, b) => (a.position < b.position ? -1 : a.position > b.position ? 1 : 0))
  }
}
