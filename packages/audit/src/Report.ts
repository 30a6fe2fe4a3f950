/** The report of an audit: the verdict, counts of the log, the head to keep for the next audit, and every problem with its event. */
import { Schema } from "effect"
import { Head } from "./Head.ts"

/** The stream of a problem of the whole log. */
export const WHOLE_LOG = "$all"

export const Problem = Schema.Struct({
  /** The position of the faulty event; for a missing event, of the first event that shows the gap. */
  position: Schema.String,
  /** `$all` for a problem of the whole log. */
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
  /** The number of all problems; `problems` holds at most {@link MAX_PROBLEMS}, {@link MAX_PROBLEMS_OF_STREAM} of one stream. */
  found: Schema.Int,
  problems: Schema.Array(Problem)
})
export type Report = typeof Report.Type

export const MAX_PROBLEMS = 1_000
/** One stream that is broken throughout must not hide the problems of others. */
export const MAX_PROBLEMS_OF_STREAM = 100

/** Takes the next event of a stream: its type, its JSON, when it was decided (milliseconds since 1970), and its position in the log. */
export type Replay = (type: string, data: string, at: number, position: string) => void

/** Reports a problem under the name of a rule. */
export type ReportProblem = (rule: string, detail: string) => void

/** Milliseconds since 1970 as ISO 8601, for messages. */
export const iso = (millis: number): string => new Date(millis).toISOString()

/** The place of a problem. */
export interface Place {
  readonly position: string
  readonly stream: string
}

/** Collects problems: counts them all, and keeps them up to the limits. */
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
