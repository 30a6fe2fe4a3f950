/**
 * The log in one SQLite file, without Effect. Inside a transaction ({@link SqliteLog.transact}), each append succeeds or conflicts by
 * itself: it checks before it writes, so a conflict needs no rollback.
 */
import { EventStore, type Paging, type Place, positionOf, type StreamName, WrittenEvents } from "@millrace/event-sourcing"
import type Database from "better-sqlite3"
import { Connection, type ConnectionOptions } from "./Connection.ts"
import { Fault } from "./Fault.ts"
import { PRAGMAS, SCHEMA } from "./LogTables.ts"
import { type KnownStream, type Row, StreamIndex } from "./StreamIndex.ts"

/** The most events in a page: reading them takes about a third of a millisecond. */
export const PAGE = 512

/** The options of a log. */
export interface LogOptions extends ConnectionOptions {
  /** The most events that the table of the stream index lacks; 16,384 by default. */
  readonly unindexed?: number
}

interface NamedRow extends Row {
  readonly stream: StreamName.StreamName
}

const recorded = ({ id, type, data, metadata, revision, place }: Row, stream: StreamName.StreamName): EventStore.RecordedEvent => ({
  id,
  type,
  data,
  metadata,
  stream,
  revision,
  position: positionOf(place)
})

const statements = (db: Database.Database) => ({
  version: db.prepare<[], number>("PRAGMA data_version").pluck(),
  add: db.prepare<[Place, number, EventStore.Revision, string, string, string, string]>(
    "INSERT INTO events(position, stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)"
  ),
  all: db.prepare<[Place], NamedRow>(
    `SELECT s.name AS stream, e.revision, e.position AS place, e.id, e.type, e.data, e.metadata
    FROM events e JOIN streams s ON s.id = e.stream WHERE e.position > ? ORDER BY e.position LIMIT ${PAGE}`
  ),
  snapshot: db.prepare<[StreamName.StreamName], EventStore.StoredSnapshot>("SELECT revision, data FROM snapshots WHERE name = ?"),
  saveSnapshot: db.prepare<[StreamName.StreamName, EventStore.Revision, string]>(
    `INSERT INTO snapshots(name, revision, data) VALUES (?, ?, ?) ON CONFLICT(name)
    DO UPDATE SET revision = excluded.revision, data = excluded.data WHERE excluded.revision >= revision`
  )
})

type Statements = ReturnType<typeof statements>

/** Counts the transactions of this process on all files and connections. */
let transactions = 0

export class SqliteLog {
  readonly #connection: Connection<Statements>
  readonly #sql: Statements
  readonly #index: StreamIndex
  #version = -1
  /** The events of this connection's newest transaction. */
  #written = new WrittenEvents(0)
  /** When this turn of the event loop last looked for writes of other connections, and the number of transactions then. */
  #looked: { readonly at: number; readonly transactions: number } | undefined

  /** Throws a {@link Fault}. */
  constructor(options: LogOptions) {
    this.#connection = new Connection(options, SCHEMA, PRAGMAS, statements)
    this.#sql = this.#connection.sql
    try {
      this.#index = new StreamIndex(this.#connection.db, this.#connection.filename, options.unindexed)
      this.#noticeOthers()
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Runs `body`, which may append and save, in one durable transaction. Throws a {@link Fault} if that fails. */
  transact(body: () => void): void {
    let isUndone = false
    try {
      this.#connection.transact(() => {
        isUndone = true
        transactions++
        this.#noticeOthers()
        this.#index.requireSound()
        this.#written = new WrittenEvents(this.place)
        body()
        if (this.#written.size > 0) this.#index.write()
      })
      isUndone = false
    } finally {
      if (isUndone) this.#forget()
    }
  }

  /** Inside {@link transact}: appends the events, finds them already written, or returns the stream's actual end. */
  append(
    stream: StreamName.StreamName,
    expected: EventStore.ExpectedRevision,
    events: ReadonlyArray<EventStore.EventData>
  ): EventStore.Appended | { readonly actual: EventStore.ExpectedRevision } {
    const found = this.#index.find(stream)
    const before = EventStore.revisionOf(expected)
    const actual = found?.end ?? -1
    if (actual !== before) {
      const there = found === undefined || before + events.length > actual ? undefined : this.#alreadyThere(found, before, events)
      return there ?? { actual: EventStore.expectedOf(actual) }
    }
    const known = found ?? this.#index.addStream(stream)
    this.#written.add(stream, actual + 1, events)
    for (const { id, type, data, metadata } of events) {
      this.#sql.add.run(this.place + 1, known.number, known.end + 1, id, type, data, metadata)
      this.#index.add(known)
    }
    return { revision: known.end, position: positionOf(this.place) }
  }

  /** Inside {@link transact}. */
  saveSnapshot(name: StreamName.StreamName, { revision, data }: EventStore.StoredSnapshot): void {
    this.#sql.saveSnapshot.run(name, revision, data)
  }

  loadSnapshot(name: StreamName.StreamName): EventStore.StoredSnapshot | undefined {
    return this.#sql.snapshot.get(name)
  }

  /** At most {@link PAGE} events; fewer only at the end of the stream. `from`: the first revision to read, in either direction. */
  readStream(
    stream: StreamName.StreamName,
    direction: Paging.Place["direction"],
    from: EventStore.Revision | undefined,
    limit: number
  ): Array<EventStore.RecordedEvent> {
    this.#noticeOthersOnce()
    const known = this.#index.find(stream)
    if (known === undefined) return []
    const { end, number } = known
    const first = direction === "forwards" ? (from ?? 0) : Math.min(from ?? end, end)
    const count = Math.min(limit, PAGE, direction === "forwards" ? end - first + 1 : first + 1)
    if (count <= 0) return []
    const low = direction === "forwards" ? first : first - count + 1
    const rows = this.#index.rows(number, low, low + count - 1)
    if (rows.length !== count || rows.some(({ revision }, i) => revision !== low + i))
      throw new Fault(`${this.#connection.filename} is corrupt: events of ${stream} are missing after revision ${first}`)
    const events = rows.map((row) => recorded(row, stream))
    return direction === "forwards" ? events : events.reverse()
  }

  lastRevision(stream: StreamName.StreamName): EventStore.ExpectedRevision {
    this.#noticeOthersOnce()
    return EventStore.expectedOf(this.#index.find(stream)?.end ?? -1)
  }

  /** The events that this connection wrote last, if they directly follow a place. Followers need not read them from the file. */
  justWritten(after: Place): WrittenEvents | undefined {
    return after === this.#written.after && this.#written.size > 0 ? this.#written : undefined
  }

  /** At most {@link PAGE} events; fewer only at the end of the log. */
  readAll(after: Place): Array<EventStore.RecordedEvent> {
    return this.#sql.all.all(after).map((row) => recorded(row, row.stream))
  }

  /** The place of the newest event that this connection has written or read; 0 if there is none. */
  get place(): Place {
    return this.#index.place
  }

  /** The place of the newest event of the log, also of other processes; 0 if the log is empty. */
  last(): Place {
    this.#noticeOthers()
    return this.place
  }

  close(): void {
    this.#connection.close()
  }

  /** Recognizes an append that was written before, by the ids of its events. */
  #alreadyThere(
    { number }: KnownStream,
    before: EventStore.Revision,
    events: ReadonlyArray<EventStore.EventData>
  ): EventStore.Appended | undefined {
    const revision = before + events.length
    const rows = this.#index.rows(number, before + 1, revision)
    const last = rows.at(-1)
    if (last === undefined || events.some(({ id }, i) => rows[i]?.id !== id)) return undefined
    return { revision, position: positionOf(last.place) }
  }

  #forget(): void {
    this.#index.forget()
    this.#written = new WrittenEvents(0)
    this.#version = -1
  }

  /**
   * One look in a turn of the event loop is enough, unless this process has written since. A caller cannot learn of a later write of
   * another process before the turn ends, except by waiting synchronously, which takes longer than a millisecond.
   */
  #noticeOthersOnce(): void {
    const now = performance.now()
    if (this.#looked?.transactions === transactions && now - this.#looked.at < 1) return
    this.#noticeOthers()
    if (this.#looked === undefined) {
      queueMicrotask(() => {
        this.#looked = undefined
      })
    }
    this.#looked = { at: now, transactions }
  }

  /** Updates what is in memory, which stays valid until another connection commits. */
  #noticeOthers(): void {
    const version = this.#sql.version.get() ?? 0
    if (version === this.#version) return
    this.#index.catchUp()
    this.#version = version
  }
}
