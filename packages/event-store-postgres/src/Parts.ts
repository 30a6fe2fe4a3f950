/** Parts of the log for the followers of a process. Most are at the same position, so one query serves them all. */
import type { EventStore } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import type { Fault } from "./Fault.ts"
import type { Part, PostgresLog } from "./PostgresLog.ts"

/** A follower reads on after a position. `types`: the events it needs, all of them if undefined. */
export interface Question {
  readonly after: EventStore.Position
  readonly types: ReadonlySet<string> | undefined
}

/**
 * The least milliseconds between two reads at the end of the log. Hosts that append all the time would otherwise have each other read a few
 * events after each append. A host's notifications are as far apart.
 */
const APART = 25

/** Answers questions: one query for each position, for the types that any of its followers needs. */
export const reader = (log: Pick<PostgresLog, "readSelected">) => {
  let readAt = Number.NEGATIVE_INFINITY
  let isAtEnd = false
  const pause = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    // A clock that was set back must not stop the reads
    const left = Math.min(readAt + APART - now, APART)
    return isAtEnd && left > 0 ? Effect.sleep(left) : Effect.void
  })
  const read = Effect.fnUntraced(function* (after: EventStore.Position, types: Question["types"]): Effect.fn.Return<Part, Fault> {
    const part = yield* log.readSelected(after, types)
    readAt = yield* Clock.currentTimeMillis
    isAtEnd = part.isLast
    return part
  })
  return (questions: ReadonlyArray<Question>): Effect.Effect<ReadonlyArray<Part>, Fault> =>
    Effect.gen(function* () {
      yield* pause
      const parts = new Map<EventStore.Position, Part>()
      for (const [after, asked] of Map.groupBy(questions, (question) => question.after))
        parts.set(after, yield* read(after, unionOf(asked)))
      return questions.flatMap(({ after }) => parts.get(after) ?? [])
    })
}

/** The types that any of the questions asks for; undefined for all types. */
const unionOf = (questions: ReadonlyArray<Question>): Question["types"] => {
  const types = new Set<string>()
  for (const question of questions) {
    if (question.types === undefined) return undefined
    for (const type of question.types) types.add(type)
  }
  return types
}
