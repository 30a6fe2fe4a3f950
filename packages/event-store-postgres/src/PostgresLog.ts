/** The log in its tables: what is asked of the database, and what its answers mean. */
import { EventStore, type StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { booleans, int4s, int8s, texts, uuids } from "./BinaryArrays.ts"
import type { Connections } from "./Connections.ts"
import { Fault } from "./Fault.ts"

/** Place of an event in the log, from 1, without gaps. */
export type Place = number

/** Digits of a position, so that positions sort as text. */
const DIGITS = 16

/** The position of an event; the start for place 0. */
export const positionOf = (place: Place): EventStore.Position =>
  place === 0 ? EventStore.start : EventStore.position(place.toString().padStart(DIGITS, "0"))

/** A position as a user types it: leading zeros may be left out. Undefined for any other text. */
export const parsePosition = (text: string): EventStore.Position | undefined =>
  /^\d+$/u.test(text) && text.length <= DIGITS ? EventStore.position(text.padStart(DIGITS, "0")) : undefined

/** The place a position names; a defect for one that this store did not give out. */
export const placeOf = (position: EventStore.Position): Place => {
  if (position !== EventStore.start && !/^\d{16}$/.test(position)) throw new Error(`No position of this log: ${JSON.stringify(position)}`)
  return Number(position)
}

/** Events read at once, at most. */
export const PAGE = 512
/** A page that has come to so many bytes ends there. */
const PAGE_BYTES = 4_000_000

export interface Append {
  readonly stream: StreamName.StreamName
  /** The revision before its first event; -1 for a stream that has not begun. */
  readonly before: EventStore.Revision
  readonly events: ReadonlyArray<EventStore.EventData>
}

export interface NamedSnapshot extends EventStore.StoredSnapshot {
  readonly name: StreamName.StreamName
}

/** Where an append ended, and whether it was written now or found there, as whoever sends it again finds it; or what stood in its way. */
export type Outcome = (EventStore.Appended & { readonly isNew: boolean }) | { readonly actual: EventStore.ExpectedRevision }

export interface Page {
  readonly events: ReadonlyArray<EventStore.RecordedEvent>
  readonly isLast: boolean
}

export const expectedOf = (revision: EventStore.Revision): EventStore.ExpectedRevision => (revision === -1 ? "noStream" : revision)

interface Row {
  readonly [column: string]: unknown
  readonly stream: StreamName.StreamName
  readonly revision: string
  readonly place: string
  readonly id: string
  readonly type: string
  readonly data: string
  readonly metadata: string
  /** Bytes of the page up to here. */
  readonly total: string
}

const recorded = ({ stream, revision, place, id, type, data, metadata }: Row): EventStore.RecordedEvent => ({
  id,
  type,
  data,
  metadata,
  stream,
  revision: Number(revision),
  position: positionOf(Number(place))
})

const pageOf = (rows: ReadonlyArray<Row>, limit: number): Page => ({
  events: rows.map(recorded),
  isLast: rows.length < limit && Number(rows.at(-1)?.total ?? 0) < PAGE_BYTES
})

/** Events of `from`, in the order of `by`, until their number or their bytes are enough for a page; always one, if there is one. */
const page = (from: string, by: string, limit: string) => `
  SELECT * FROM (
    SELECT p.*, sum(octet_length(p.data) + octet_length(p.metadata)) OVER (ORDER BY ${by} ROWS UNBOUNDED PRECEDING) AS total FROM (
      SELECT s.name AS stream, e.revision, e.position AS place, e.id, e.type, e.data, e.metadata ${from} LIMIT ${limit}) p) q
  WHERE total - octet_length(data) - octet_length(metadata) < ${PAGE_BYTES} ORDER BY ${by}`

export const make = (connections: Connections, schema: string, isStandbyEnough: boolean) => {
  const { where, write, read } = connections
  const appendSql = `SELECT * FROM ${schema}.append($1::text[], $2::bigint[], $3::boolean[], $4::integer[], $5::integer[], $6::uuid[], $7::text[], $8::text[], $9::text[])`
  const ofStream = (bound: string, order: string) =>
    page(
      `FROM ${schema}.streams s JOIN ${schema}.events e ON e.stream = s.id WHERE s.name = $1 AND e.revision ${bound} $2 ORDER BY ${order}`,
      order.replace("e.", ""),
      "$3"
    )
  const forwards = ofStream(">=", "e.revision")
  const backwards = ofStream("<=", "e.revision DESC")
  const all = page(
    `FROM ${schema}.events e JOIN ${schema}.streams s ON s.id = e.stream WHERE e.position > $1 ORDER BY e.position`,
    "place",
    `${PAGE}`
  )

  return {
    /** One transaction for all of them: each is written whole, or found there already, or stands aside. */
    append: (appends: ReadonlyArray<Append>): Effect.Effect<ReadonlyArray<Outcome>, Fault> =>
      Effect.suspend(() => {
        const known = new Set<string>()
        const leads = appends.map(({ stream }) => known.size < known.add(stream).size)
        const events = appends.flatMap((one) => one.events)
        return Effect.flatMap(
          write<{
            before: string
            refused: ReadonlyArray<number>
            actual: ReadonlyArray<string> | null
            there: ReadonlyArray<string | null> | null
          }>(
            appendSql,
            texts(appends.map(({ stream }) => stream)),
            int8s(appends.map(({ before }) => before)),
            booleans(leads),
            int4s(appends.map((one) => one.events.length)),
            int4s(appends.flatMap((one, i) => one.events.map(() => i + 1))),
            uuids(events.map(({ id }) => id)),
            texts(events.map(({ type }) => type)),
            texts(events.map(({ data }) => data)),
            texts(events.map(({ metadata }) => metadata))
          ),
          ([answer]) => {
            if (answer === undefined) return Effect.fail(new Fault("other", `${where} did not answer`, { inDoubt: true }))
            const refused = new Map(answer.refused.map((i, k) => [i - 1, k]))
            let place = Number(answer.before)
            return Effect.succeed(
              appends.map((one, i): Outcome => {
                const k = refused.get(i)
                const revision = one.before + one.events.length
                if (k === undefined) {
                  place += one.events.length
                  return { revision, position: positionOf(place), isNew: true }
                }
                const there = answer.there?.[k] ?? undefined
                return there === undefined
                  ? { actual: expectedOf(Number(answer.actual?.[k])) }
                  : { revision, position: positionOf(Number(there)), isNew: false }
              })
            )
          }
        )
      }),

    /** Where streams end now. */
    tails: (names: ReadonlyArray<StreamName.StreamName>): Effect.Effect<ReadonlyArray<EventStore.ExpectedRevision>, Fault> =>
      Effect.map(
        read<{ revisions: ReadonlyArray<string> }>(`SELECT * FROM ${schema}.tails($1::text[], $2)`, texts(names), `${isStandbyEnough}`),
        ([answer]) => (answer?.revisions ?? []).map((revision) => expectedOf(Number(revision)))
      ),

    readStream: (
      stream: StreamName.StreamName,
      direction: "forwards" | "backwards",
      from: EventStore.Revision | undefined,
      left: number
    ): Effect.Effect<Page, Fault> => {
      const limit = Math.min(left, PAGE)
      const rows =
        direction === "forwards"
          ? read<Row>(forwards, stream, from ?? 0, limit)
          : read<Row>(backwards, stream, from ?? Number.MAX_SAFE_INTEGER, limit)
      return Effect.map(rows, (found) => pageOf(found, limit))
    },

    readAll: (after: EventStore.Position): Effect.Effect<Page, Fault> =>
      Effect.map(
        Effect.suspend(() => read<Row>(all, placeOf(after))),
        (rows) => pageOf(rows, PAGE)
      ),

    last: Effect.map(
      read<{ last: string }>(`SELECT coalesce(max(position), 0) AS last FROM ${schema}.events`),
      ([row]): Place => Number(row?.last ?? 0)
    ),

    loadSnapshot: (name: StreamName.StreamName): Effect.Effect<EventStore.StoredSnapshot | undefined, Fault> =>
      Effect.map(
        read<{ revision: string; data: string }>(`SELECT revision, data FROM ${schema}.snapshots WHERE name = $1`, name),
        ([row]) => row && { revision: Number(row.revision), data: row.data }
      ),

    /** Each replaces the one of its name, unless that is newer. In the order of names, so that two hosts do not wait for each other. */
    saveSnapshots: (snapshots: ReadonlyArray<NamedSnapshot>): Effect.Effect<ReadonlyArray<void>, Fault> =>
      Effect.as(
        write(
          `INSERT INTO ${schema}.snapshots AS s(name, revision, data)
            SELECT DISTINCT ON (a.name COLLATE "C") a.name, a.revision, a.data
            FROM unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY a(name, revision, data, n)
            ORDER BY a.name COLLATE "C", a.revision DESC, a.n DESC
          ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, data = excluded.data WHERE excluded.revision >= s.revision`,
          texts(snapshots.map(({ name }) => name)),
          int8s(snapshots.map(({ revision }) => revision)),
          texts(snapshots.map(({ data }) => data))
        ),
        snapshots.map(() => undefined)
      )
  }
}

export type PostgresLog = ReturnType<typeof make>
