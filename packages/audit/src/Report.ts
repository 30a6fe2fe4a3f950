/** The report of an audit: the verdict, counts of the log, the head to keep for the next audit, and every problem with its event. */
import { Money } from "@millrace/core"
import { Schema } from "effect"
import { Head } from "./Head.ts"
import { Means, meansOf, type Say, type Stake, sayIn } from "./Means.ts"
import type { RuleName } from "./rules/Catalog.ts"

/** The stream of a problem of the whole log. */
export const WHOLE_LOG = "$all"

export const Problem = Schema.Struct({
  /** The position of the faulty event; for a missing event, of the first event that shows the gap. */
  position: Schema.String,
  /** `$all` for a problem of the whole log. */
  stream: Schema.String,
  rule: Schema.String,
  detail: Schema.String,
  /** In an export: the line of the faulty event, counted from 1. */
  line: Schema.optionalKey(Schema.Int),
  /** What it means in money. */
  means: Means
})
export type Problem = typeof Problem.Type

export const Report = Schema.Struct({
  ok: Schema.Boolean,
  events: Schema.Int,
  streams: Schema.Int,
  accounts: Schema.Int,
  /** Grants of credits, and the holds, published prices and jobs in the log. */
  lots: Schema.Int,
  holds: Schema.Int,
  prices: Schema.Int,
  jobs: Schema.Int,
  apiKeys: Schema.Struct({ issued: Schema.Int, revoked: Schema.Int }),
  /** The times of the first and the latest event, ISO 8601; null while the log is empty. */
  from: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.String),
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

/**
 * Takes the next event of a stream: its type, its JSON, when it was decided (milliseconds since 1970), its position in the log, the id of the
 * request that caused it, where its metadata has one, and its own id.
 */
export type Replay = (type: string, data: string, at: number, position: string, requestOf: () => string | undefined, id: string) => void

/** Reports a problem under the name of a rule. `stake`: what it means in money; asked only where the problem is kept. */
export type ReportProblem = (rule: string, detail: string, stake?: (say: Say) => Stake) => void

/** Milliseconds since 1970 as ISO 8601, for messages. */
export const iso = (millis: number): string => new Date(millis).toISOString()

/** The place of a problem. */
export interface Place {
  readonly position: string
  readonly stream: string
  /** In an export. */
  readonly line?: number
}

/** Collects problems: counts them all, and keeps them up to the limits. */
export class Problems {
  found = 0
  readonly #kept: Array<Problem> = []
  readonly #ofStream = new Map<string, number>()
  readonly #money: Money.Money
  readonly #say: Say

  constructor(money: Money.Money = Money.STANDARD) {
    this.#money = money
    this.#say = sayIn(money)
  }

  /** Adds a problem by a rule of the catalog. */
  add(place: Place, rule: RuleName, detail: string, stake: (say: Say) => Stake): void {
    this.addOf(place, rule, detail, stake)
  }

  /** Adds a problem by any rule, such as one of a host's category. */
  addOf({ line, position, stream }: Place, rule: string, detail: string, stake: (say: Say) => Stake): void {
    this.found++
    const before = this.#ofStream.get(stream) ?? 0
    this.#ofStream.set(stream, before + 1)
    if (before >= MAX_PROBLEMS_OF_STREAM || this.#kept.length >= MAX_PROBLEMS) return
    const means = meansOf(stake(this.#say), this.#money)
    this.#kept.push({ position, stream, rule, detail, ...(line === undefined ? {} : { line }), means })
  }

  /** In the order of the log, or of the lines of an export. */
  list(): ReadonlyArray<Problem> {
    return this.#kept.toSorted((a, b) => {
      // Problems of the end have no line
      if (a.line !== b.line) return (a.line ?? Number.MAX_SAFE_INTEGER) - (b.line ?? Number.MAX_SAFE_INTEGER)
      return a.position < b.position ? -1 : a.position > b.position ? 1 : 0
    })
  }
}
