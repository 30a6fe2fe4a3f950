/** The statements on the tables of the log, and the decoding of their results. */
import { EventStore, type Paging, placeOf, positionOf, type StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { booleans, int4s, int8s, texts, uuids } from "./BinaryArrays.ts"
import { type Connections, calling } from "./Connections.ts"
import { Fault } from "./Fault.ts"

/** The most events in a page. */
export const PAGE = 512
/** The most events that the server looks at for a page of selected ones. */
const SELECTED_PAGE = 4 * PAGE
/** A page ends once it has this many bytes. */
const PAGE_BYTES = 4_000_000

/** The most newer events that a call of `append_3` answers. */
const NEWER = 100
/**
 * The most bytes of them. The server sends the answer while it holds the lock of the log, so it has to fit in the buffers of a connection
 * whose host was suspended.
 */
const NEWER_BYTES = 24_000

export interface Append {
  readonly stream: StreamName.StreamName
  /** The revision before the first event of this append; -1 for a stream without events. */
  readonly before: EventStore.Revision
  readonly events: ReadonlyArray<EventStore.EventData>
  readonly conditions?: ReadonlyArray<EventStore.Condition>
}

export interface NamedSnapshot extends EventStore.StoredSnapshot {
  readonly name: StreamName.StreamName
}

/** The last event of an append. `isNew`: false for a repeated append that was already written. */
export interface Written extends EventStore.Appended {
  readonly isNew: boolean
}

/** The stream's end, which differs from the expected revision, and the events up to it if the server told them. */
export type Conflict = Pick<EventStore.WrongRevision, "actual" | "newer">

export type Outcome = Written | Conflict | EventStore.ConditionFailed

interface EventRow {
  readonly [column: string]: unknown
  readonly revision: string
  readonly place: string
  readonly id: string
  readonly type: string
  readonly data: string
  readonly metadata: string
}

interface Row extends EventRow {
  readonly stream: StreamName.StreamName
  /** Bytes of the page up to and including this event. */
  readonly total: string
}

const recorded = (stream: StreamName.StreamName, { revision, place, id, type, data, metadata }: EventRow): EventStore.RecordedEvent => ({
  id,
  type,
  data,
  metadata,
  stream,
  revision: Number(revision),
  position: positionOf(Number(place))
})

const pageOf = (rows: ReadonlyArray<Row>, limit: number): Paging.Page => ({
  events: rows.map((row) => recorded(row.stream, row)),
  isLast: rows.length < limit && Number(rows.at(-1)?.total ?? 0) < PAGE_BYTES
})

/** The events of a part of the log that were asked for. `position`: how far it was read. `isLast`: whether that is the end of the log. */
export interface Part extends Required<Pick<EventStore.Batch, "events" | "position">> {
  readonly isLast: boolean
}

const partOf = (rows: ReadonlyArray<Row>, after: EventStore.Position, most: number): Part => {
  const last = Number(rows.at(-1)?.place ?? 0)
  const found = rows.slice(0, -1)
  const newest = found.at(-1)
  const isCut = newest !== undefined && Number(newest.total) >= PAGE_BYTES
  const end = isCut ? Number(newest.place) : Math.max(placeOf(after), Math.min(placeOf(after) + most, last))
  return { events: found.map((row) => recorded(row.stream, row)), position: positionOf(end), isLast: end >= last }
}

/** The first row of the database function `append_3`. */
interface AppendRow {
  readonly [column: string]: unknown
  /** The last position before these appends. */
  readonly before: string
  /** The appends that were not written, counted from 1, each with the end of its stream, and its last position if it was written before. */
  readonly refused: ReadonlyArray<number>
  readonly actual: ReadonlyArray<string> | null
  readonly there: ReadonlyArray<string | null> | null
  /** Where the streams of the conditions end, if one of these does not hold. Then nothing was appended. */
  readonly ends: ReadonlyArray<string> | null
}

/** A further row of `append_3`: an event that an append did not know. */
interface NewerRow extends EventRow {
  /** The place of the append in the call, from 1. */
  readonly conflict: number
}

const conflictOf = ({ stream, before }: Append, actual: number, newer: ReadonlyArray<NewerRow>): Conflict => {
  const events = newer.map((row) => recorded(stream, row))
  const isComplete = events.length > 0 && events.length === actual - before
  return { actual: EventStore.expectedOf(actual), ...(isComplete ? { newer: events } : {}) }
}

/** The conditions of all appends: each once, because many appends have the same one. */
const conditionsOf = (appends: ReadonlyArray<Append>): ReadonlyArray<EventStore.Condition> => {
  const all = new Map<string, EventStore.Condition>()
  for (const { conditions = [] } of appends)
    for (const condition of conditions) all.set(`${condition.expected} ${condition.stream}`, condition)
  return [...all.values()]
}

/** The appends whose conditions do not hold, by where the streams of all conditions end. */
const failuresOf = (
  appends: ReadonlyArray<Append>,
  conditions: ReadonlyArray<EventStore.Condition>,
  ends: ReadonlyArray<string>
): ReadonlyMap<Append, EventStore.ConditionFailed> => {
  const endOf = new Map(conditions.map(({ stream }, i) => [stream, EventStore.expectedOf(Number(ends[i]))]))
  const failures = new Map<Append, EventStore.ConditionFailed>()
  for (const append of appends) {
    const failed = EventStore.failedCondition(append.conditions ?? [], (stream) => endOf.get(stream))
    if (failed !== undefined) failures.set(append, failed)
  }
  return failures
}

const outcomesOf = (
  appends: ReadonlyArray<Append>,
  { actual, before, refused, there }: AppendRow,
  newer: ReadonlyArray<NewerRow>
): ReadonlyArray<Outcome> => {
  const byAppend = Map.groupBy(newer, ({ conflict }) => conflict - 1)
  const places = new Map(refused.map((i, k) => [i - 1, k]))
  let place = Number(before)
  return appends.map((one, i): Outcome => {
    const k = places.get(i)
    const revision = one.before + one.events.length
    if (k === undefined) {
      place += one.events.length
      return { revision, position: positionOf(place), isNew: true }
    }
    const last = there?.[k] ?? undefined
    return last === undefined
      ? conflictOf(one, Number(actual?.[k]), byAppend.get(i) ?? [])
      : { revision, position: positionOf(Number(last)), isNew: false }
  })
}

/** The types of the parameters that describe appends: first by append, then by event. */
const APPENDED = ["text[]", "bigint[]", "boolean[]", "integer[]", "integer[]"]
const THEIR_EVENTS = ["integer[]", "bigint[]", "uuid[]", "text[]", "text[]", "text[]"]

const statements = (schema: string) => ({
  append: calling(schema, "append_3", ...APPENDED, ...THEIR_EVENTS, "text[]", "bigint[]", "integer", "integer"),
  tails: calling(schema, "tails", "text[]", "boolean"),
  readStream: calling(schema, "read_stream", "text", "boolean", "bigint", "integer", "integer"),
  readAll: calling(schema, "read_log", "bigint", "integer", "integer"),
  readSelected: calling(schema, "read_log_2", "bigint", "integer", "integer", "text[]"),
  last: `SELECT coalesce(max(position), 0) AS last FROM ${schema}.events`,
  loadSnapshot: `SELECT revision, data FROM ${schema}.snapshots WHERE name = $1`,
  // Sorted by name, so that two hosts cannot deadlock
  saveSnapshots: `INSERT INTO ${schema}.snapshots AS s(name, revision, data)
      SELECT DISTINCT ON (a.name COLLATE "C") a.name, a.revision, a.data
      FROM unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY a(name, revision, data, n)
      ORDER BY a.name COLLATE "C", a.revision DESC, a.n DESC
    ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, data = excluded.data WHERE excluded.revision >= s.revision`
})

/** The parameters of the database function `append_3` that describe appends. */
const parametersOf = (appends: ReadonlyArray<Append>): ReadonlyArray<Buffer> => {
  const known = new Set<string>()
  const leads: Array<boolean> = []
  const starts: Array<number> = []
  const owners: Array<number> = []
  const revisions: Array<EventStore.Revision> = []
  const all: Array<EventStore.EventData> = []
  for (const [i, { before, events, stream }] of appends.entries()) {
    leads.push(known.size < known.add(stream).size)
    starts.push(all.length)
    for (const [n, event] of events.entries()) {
      owners.push(i + 1)
      revisions.push(before + 1 + n)
      all.push(event)
    }
  }
  return [
    texts(appends.map(({ stream }) => stream)),
    int8s(appends.map(({ before }) => before)),
    booleans(leads),
    int4s(appends.map(({ events }) => events.length)),
    int4s(starts),
    int4s(owners),
    int8s(revisions),
    uuids(all.map(({ id }) => id)),
    texts(all.map(({ type }) => type)),
    texts(all.map(({ data }) => data)),
    texts(all.map(({ metadata }) => metadata))
  ]
}

export type PostgresLog = ReturnType<typeof make>

/** `isStandbyEnough`: whether the end of a stream may be read from a standby, which may be behind. */
export const make = (connections: Connections, schema: string, isStandbyEnough: boolean) => {
  const sql = statements(schema)
  /** Sends all appends in one transaction. Each is written whole, found already written, or refused. */
  const append = (appends: ReadonlyArray<Append>): Effect.Effect<ReadonlyArray<Outcome>, Fault> =>
    Effect.suspend(() => {
      const conditions = conditionsOf(appends)
      const names = texts(conditions.map(({ stream }) => stream))
      const required = int8s(conditions.map(({ expected }) => EventStore.revisionOf(expected)))
      const rows = connections.write<AppendRow | NewerRow>(sql.append, ...parametersOf(appends), names, required, NEWER, NEWER_BYTES)
      return Effect.flatMap(rows, ([row, ...newer]) => {
        if (row === undefined) return Effect.fail(new Fault(`${connections.where} did not answer`, { inDoubt: true }))
        const answer = row as AppendRow
        return answer.ends === null
          ? Effect.succeed(outcomesOf(appends, answer, newer as ReadonlyArray<NewerRow>))
          : withoutFailed(appends, failuresOf(appends, conditions, answer.ends))
      })
    })

  /** Nothing was appended, because these appends have conditions that do not hold. Sends the others again. */
  const withoutFailed = (appends: ReadonlyArray<Append>, failures: ReadonlyMap<Append, EventStore.ConditionFailed>) => {
    const others = appends.filter((one) => !failures.has(one))
    const outcomes = others.length === 0 ? Effect.succeed([]) : append(others)
    return Effect.map(outcomes, (outcomes) => {
      const ofOthers = outcomes.values()
      return appends.flatMap((one) => failures.get(one) ?? ofOthers.next().value ?? [])
    })
  }

  return {
    append,

    /** The current ends of streams. */
    tails: (names: ReadonlyArray<StreamName.StreamName>): Effect.Effect<ReadonlyArray<EventStore.ExpectedRevision>, Fault> =>
      Effect.map(connections.read<{ revisions: ReadonlyArray<string> }>(sql.tails, texts(names), `${isStandbyEnough}`), ([answer]) =>
        (answer?.revisions ?? []).map((revision) => EventStore.expectedOf(Number(revision)))
      ),

    readStream: (stream: StreamName.StreamName, { direction, from, left }: Paging.Place): Effect.Effect<Paging.Page, Fault> => {
      const limit = Math.min(left, PAGE)
      const first = from ?? (direction === "forwards" ? 0 : Number.MAX_SAFE_INTEGER)
      return Effect.map(connections.read<Row>(sql.readStream, stream, `${direction === "forwards"}`, first, limit, PAGE_BYTES), (rows) =>
        pageOf(rows, limit)
      )
    },

    readAll: (after: EventStore.Position): Effect.Effect<Paging.Page, Fault> =>
      Effect.map(
        Effect.suspend(() => connections.read<Row>(sql.readAll, placeOf(after), PAGE, PAGE_BYTES)),
        (rows) => pageOf(rows, PAGE)
      ),

    /** The next part of the log, with the events of these types; of all types if they are undefined. */
    readSelected: (after: EventStore.Position, types: ReadonlySet<string> | undefined): Effect.Effect<Part, Fault> => {
      const most = types === undefined ? PAGE : SELECTED_PAGE
      const wanted = types === undefined ? null : texts([...types])
      return Effect.map(
        Effect.suspend(() => connections.read<Row>(sql.readSelected, placeOf(after), most, PAGE_BYTES, wanted)),
        (rows) => partOf(rows, after, most)
      )
    },

    /** The newest position of the log. */
    last: Effect.map(connections.read<{ last: string }>(sql.last), ([row]) => positionOf(Number(row?.last ?? 0))),

    loadSnapshot: (name: StreamName.StreamName): Effect.Effect<EventStore.StoredSnapshot | undefined, Fault> =>
      Effect.map(
        connections.read<{ revision: string; data: string }>(sql.loadSnapshot, name),
        ([row]) => row && { revision: Number(row.revision), data: row.data }
      ),

    /** Saves snapshots. Each replaces the one of its name, unless the stored one is newer. */
    saveSnapshots: (snapshots: ReadonlyArray<NamedSnapshot>): Effect.Effect<ReadonlyArray<void>, Fault> => {
      const names = texts(snapshots.map(({ name }) => name))
      const revisions = int8s(snapshots.map(({ revision }) => revision))
      const datas = texts(snapshots.map(({ data }) => data))
      return Effect.as(
        connections.write(sql.saveSnapshots, names, revisions, datas),
        snapshots.map(() => undefined)
      )
    }
  }
}
