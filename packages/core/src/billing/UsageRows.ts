/**
 * The stored usage of an account in a month, with the last event folded into it. A row is derived data. It is discarded when its version
 * differs, or when the log no longer has that event, as after a restore from a backup.
 */
import { type EventStore, HashChain, type StateStore, type StreamName } from "@millrace/event-sourcing"
import { Duration, Effect, Option, Schema } from "effect"
import { DayUsage, listedDays } from "./UsageDays.ts"
import { type Counts, eventAt, listed, type Month, OperationUsage } from "./UsageFold.ts"

/** Raise it when the fold or the row changes. */
const VERSION = 3

const Row = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(VERSION),
    /** The revision, hash and time of the last folded event. */
    revision: Schema.Int,
    hash: Schema.String,
    at: Schema.Int,
    /** Whether the log has an event of a later month: events of an account are in the order of time, so this month never changes again. */
    isFinished: Schema.Boolean,
    operations: Schema.Array(OperationUsage),
    days: Schema.Array(DayUsage)
  })
)
type Row = typeof Row.Type
const encodeRow = Schema.encodeSync(Row)
const decodeRow = Schema.decodeUnknownOption(Row)

const SPACE = "usage"
/** The lifetime of a row, milliseconds: longer than its month, because most requests come within it. */
const KEPT = Duration.toMillis("40 days")
/** That of the row of a finished month: longer than any read looks back, which is 90 days. */
const KEPT_FINISHED = Duration.toMillis("130 days")

type States = StateStore.StateStore["Service"]

const keyOf = (accountId: string, month: Month) => `${accountId}/${month}`

/** The row of an account and month, and the version to expect of it at a write. */
export const load = Effect.fnUntraced(function* (states: States, accountId: string, month: Month) {
  const entry = yield* states.get(SPACE, keyOf(accountId, month))
  const row = entry && Option.getOrUndefined(decodeRow(Buffer.from(entry.value).toString()))
  return { row, version: entry?.version ?? ("absent" as const) }
})

/** Whether the log still has the event that a row was folded to. */
export const isOf = (events: EventStore.EventStore["Service"], stream: StreamName.StreamName, { revision, hash }: Row) =>
  Effect.map(
    eventAt(events, stream, revision),
    Option.exists((event) => HashChain.hashOf(event) === hash)
  )

/** Writes the rows of one month during a fold. It stops when another host writes the same row. */
export const writer = (states: States, accountId: string, month: Month, version: number | "absent") => {
  let expected: number | "absent" | undefined = version
  /** Writes the row, which expires by itself after `now`. A failure is ignored, as the events can be folded again. */
  return (now: number, last: EventStore.RecordedEvent, { days, operations }: Counts, isFinished: boolean): Effect.Effect<void> => {
    if (expected === undefined) return Effect.void
    const at = HashChain.timeOf(last)
    const { revision } = last
    const folded = { revision, hash: HashChain.hashOf(last), at, isFinished, operations: listed(operations), days: listedDays(days) }
    const value = Buffer.from(encodeRow({ version: VERSION, ...folded }))
    const expiresAt = now + (isFinished ? KEPT_FINISHED : KEPT)
    const put = { _tag: "put", space: SPACE, key: keyOf(accountId, month), value, expiresAt, expected } as const
    return Effect.map(Effect.option(states.write([put])), (version) => {
      expected = Option.getOrUndefined(version)
    })
  }
}
