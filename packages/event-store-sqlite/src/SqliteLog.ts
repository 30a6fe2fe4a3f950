/**
 * The log in one SQLite file, without Effect. Inside a transaction ({@link SqliteLog.transact}), each append succeeds or conflicts by
 * itself: it checks before it writes, so a conflict needs no rollback.
 */
import { EventStore, type Paging, type Place, positionOf, type StreamName } from "@millrace/event-sourcing"
import type Database from "better-sqlite3"
import { Connection, type ConnectionOptions } from "./Connection.ts"
import { Fault } from "./Fault.ts"
import type { Schema } from "./Migrations.ts"

/** The most events in a page: reading them takes about a third of a millisecond. */
export const PAGE = 512
/** The most stream heads in memory. */
const HEADS = 100_000
/** If other processes have written more events than this, the heads in memory are dropped instead of updated. */
const CATCH_UP = 10_000

// The unique key starts with the revision: streams of about the same length then share its pages, so that a transaction over a
// thousand streams dirties a few of them instead of one for each stream. It holds a stream's number, not its name, for the same reason.
export const SCHEMA: Schema = {
  name: "an event log",
  applicationId: 0x4d_69_6c_45,
  migrations: [
    `CREATE TABLE streams(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE events(
      position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, revision INTEGER NOT NULL,
      id TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL, metadata TEXT NOT NULL,
      UNIQUE(revision, stream)) STRICT;
    CREATE TABLE snapshots(name TEXT PRIMARY KEY, revision INTEGER NOT NULL, data TEXT NOT NULL) STRICT;
    CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
    CREATE TRIGGER events_are_never_removed BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
    CREATE TRIGGER streams_are_never_changed BEFORE UPDATE ON streams BEGIN SELECT RAISE(ABORT, 'streams are never changed'); END;
    CREATE TRIGGER streams_are_never_removed BEFORE DELETE ON streams BEGIN SELECT RAISE(ABORT, 'streams are never removed'); END`
  ]
}

// fullfsync: on macOS a plain fsync does not reach the disk; elsewhere it has no effect. The page cache is small (4 MiB), because SQLite
// walks through all of it whenever a commit has to renumber pages
export const PRAGMAS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
  PRAGMA wal_autocheckpoint = 10000; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY`

/** Finds `count` events of a stream revision by revision, because the key starts with the revision. */
const range = (next: string) =>
  `WITH RECURSIVE r(n) AS (SELECT ? UNION ALL SELECT ${next} FROM r LIMIT ?)
  SELECT e.revision, e.position AS place, e.id, e.type, e.data, e.metadata
  FROM r CROSS JOIN events e ON e.revision = r.n AND e.stream = ?`

interface Row extends EventStore.EventData {
  readonly revision: EventStore.Revision
  readonly place: Place
}

interface NamedRow extends Row {
  readonly stream: StreamName.StreamName
}

interface Head {
  readonly id: number
  revision: EventStore.Revision
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
  last: db.prepare<[], Place>("SELECT coalesce(max(position), 0) FROM events").pluck(),
  moved: db.prepare<[Place], { readonly name: StreamName.StreamName; readonly revision: EventStore.Revision }>(
    "SELECT s.name, max(e.revision) AS revision FROM events e JOIN streams s ON s.id = e.stream WHERE e.position > ? GROUP BY e.stream"
  ),
  stream: db.prepare<[StreamName.StreamName], number>("SELECT id FROM streams WHERE name = ?").pluck(),
  addStream: db.prepare<[StreamName.StreamName]>("INSERT INTO streams(name) VALUES (?)"),
  add: db.prepare<[Place, number, EventStore.Revision, string, string, string, string]>(
    "INSERT INTO events(position, stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)"
  ),
  has: db.prepare<[EventStore.Revision, number], 1>("SELECT 1 FROM events WHERE revision = ? AND stream = ?").pluck(),
  at: db.prepare<[EventStore.Revision, number], { readonly id: string; readonly place: Place }>(
    "SELECT id, position AS place FROM events WHERE revision = ? AND stream = ?"
  ),
  forwards: db.prepare<[EventStore.Revision, number, number], Row>(range("n + 1")),
  backwards: db.prepare<[EventStore.Revision, number, number], Row>(range("n - 1")),
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

interface Append {
  readonly stream: StreamName.StreamName
  /** The revision of its first event. */
  readonly revision: EventStore.Revision
  readonly events: ReadonlyArray<EventStore.EventData>
}

/** Counts the transactions of this process on all files and connections. */
let transactions = 0

export class SqliteLog {
  readonly #connection: Connection<Statements>
  readonly #sql: Statements
  readonly #heads = new Map<StreamName.StreamName, Head>()
  #version = -1
  #place: Place = 0
  /** The events of this connection's newest transaction, and the place before them. */
  #written: { readonly after: Place; readonly appends: Array<Append> } = { after: 0, appends: [] }
  /** When this turn of the event loop last looked for writes of other connections, and the number of transactions then. */
  #looked: { readonly at: number; readonly transactions: number } | undefined

  /** Throws a {@link Fault}. */
  constructor(options: ConnectionOptions) {
    this.#connection = new Connection(options, SCHEMA, PRAGMAS, statements)
    this.#sql = this.#connection.sql
    try {
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
        this.#written = { after: this.#place, appends: [] }
        body()
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
    let head = this.#head(stream)
    const before = expected === "noStream" ? -1 : expected
    const actual = head?.revision ?? -1
    if (actual !== before) {
      return this.#alreadyThere(head, before, events) ?? { actual: EventStore.expectedOf(actual) }
    }
    if (head === undefined) {
      head = { id: Number(this.#sql.addStream.run(stream).lastInsertRowid), revision: -1 }
      this.#remember(stream, head)
    }
    this.#written.appends.push({ stream, revision: head.revision + 1, events })
    for (const { id, type, data, metadata } of events) this.#sql.add.run(++this.#place, head.id, ++head.revision, id, type, data, metadata)
    return { revision: head.revision, position: positionOf(this.#place) }
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
    const head = this.#head(stream)
    if (head === undefined) return []
    const first = direction === "forwards" ? (from ?? 0) : Math.min(from ?? head.revision, head.revision)
    const count = Math.min(limit, PAGE, direction === "forwards" ? head.revision - first + 1 : first + 1)
    if (count <= 0) return []
    const rows = this.#sql[direction].all(first, count, head.id)
    if (rows.length !== count)
      throw new Fault(`${this.#connection.filename} is corrupt: events of ${stream} are missing after revision ${first}`)
    return rows.map((row) => recorded(row, stream))
  }

  lastRevision(stream: StreamName.StreamName): EventStore.ExpectedRevision {
    this.#noticeOthersOnce()
    return EventStore.expectedOf(this.#head(stream)?.revision ?? -1)
  }

  /** The events that this connection wrote last, if they directly follow a place. Followers need not read them from the file. */
  justWritten(after: Place): Array<EventStore.RecordedEvent> | undefined {
    const { after: before, appends } = this.#written
    if (after !== before || appends.length === 0) return undefined
    let place = before
    return appends.flatMap(({ stream, revision, events }) =>
      events.map(({ id, type, data, metadata }, i) =>
        recorded({ id, type, data, metadata, revision: revision + i, place: ++place }, stream)
      )
    )
  }

  /** At most {@link PAGE} events; fewer only at the end of the log. */
  readAll(after: Place): Array<EventStore.RecordedEvent> {
    return this.#sql.all.all(after).map((row) => recorded(row, row.stream))
  }

  /** The place of the newest event that this connection has written or read; 0 if there is none. */
  get place(): Place {
    return this.#place
  }

  /** The place of the newest event of the log, also of other processes; 0 if the log is empty. */
  last(): Place {
    this.#noticeOthers()
    return this.#place
  }

  close(): void {
    this.#connection.close()
  }

  #alreadyThere(
    head: Head | undefined,
    before: EventStore.Revision,
    events: ReadonlyArray<EventStore.EventData>
  ): EventStore.Appended | undefined {
    if (head === undefined || before + events.length > head.revision) return undefined
    let place: Place | undefined
    for (const [i, event] of events.entries()) {
      const there = this.#sql.at.get(before + 1 + i, head.id)
      if (there?.id !== event.id) return undefined
      place = there.place
    }
    return place === undefined ? undefined : { revision: before + events.length, position: positionOf(place) }
  }

  #head(stream: StreamName.StreamName): Head | undefined {
    const known = this.#heads.get(stream)
    if (known !== undefined) return known
    const id = this.#sql.stream.get(stream)
    if (id === undefined) return undefined
    const head = { id, revision: this.#findLast(id) }
    this.#remember(stream, head)
    return head
  }

  #remember(stream: StreamName.StreamName, head: Head): void {
    if (this.#heads.size >= HEADS) this.#heads.clear()
    this.#heads.set(stream, head)
  }

  /** Revisions have no gaps. So doubling finds a missing revision, and bisection finds the last one before it. */
  #findLast(id: number): EventStore.Revision {
    let last = -1
    let missing = 0
    while (this.#sql.has.get(missing, id) !== undefined) {
      last = missing
      missing = missing * 2 + 1
    }
    while (missing - last > 1) {
      const middle = (last + missing) >> 1
      if (this.#sql.has.get(middle, id) === undefined) missing = middle
      else last = middle
    }
    return last
  }

  #forget(): void {
    this.#written = { after: this.#place, appends: [] }
    this.#heads.clear()
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

  /** Updates the heads in memory. They stay valid until another connection commits, which only adds events after the last one read. */
  #noticeOthers(): void {
    const version = this.#sql.version.get() ?? 0
    if (version === this.#version) return
    const last = this.#sql.last.get() ?? 0
    if (last - this.#place > CATCH_UP) this.#heads.clear()
    if (this.#heads.size > 0) {
      for (const { name, revision } of this.#sql.moved.all(this.#place)) {
        const head = this.#heads.get(name)
        if (head !== undefined) head.revision = Math.max(head.revision, revision)
      }
    }
    this.#place = last
    this.#version = version
  }
}
