/**
 * Which events are of which stream. The table `stream_index` has all events up to a place, and this connection keeps the places of the
 * later ones in memory. Once these are many, the next transaction adds them to the table.
 */
import type { EventStore, Place, StreamName } from "@millrace/event-sourcing"
import type Database from "better-sqlite3"
import { Fault } from "./Fault.ts"
import { UnindexedEvents } from "./UnindexedEvents.ts"

/** The most streams in memory. */
const STREAMS = 100_000
/** If other processes have written more events than this, the streams in memory are dropped instead of updated. */
const CATCH_UP = 10_000
/** The events that are added to the table at once. It takes about twenty milliseconds. */
const UNINDEXED = 16_384

/** An event as the file has it, in a known stream. */
export interface Row extends EventStore.EventData {
  readonly revision: EventStore.Revision
  readonly place: Place
}

/** Where an event is, by the number of its stream. */
interface Whereabouts {
  readonly stream: number
  readonly revision: EventStore.Revision
  readonly place: Place
}

/** A stream in memory. One object for all that is known of it, because to find one in a large map waits for memory. */
export interface KnownStream {
  readonly number: number
  /** Its last revision; -1 if it has no events. */
  end: EventStore.Revision
}

const EVENT = "e.revision, e.position AS place, e.id, e.type, e.data, e.metadata"

const statements = (db: Database.Database) => ({
  last: db.prepare<[], Place>("SELECT coalesce(max(position), 0) FROM events").pluck(),
  between: db.prepare<[Place, Place], Whereabouts>(
    "SELECT stream, revision, position AS place FROM events WHERE position > ? AND position <= ? ORDER BY position"
  ),
  stream: db.prepare<[StreamName.StreamName], number>("SELECT id FROM streams WHERE name = ?").pluck(),
  addStream: db.prepare<[StreamName.StreamName]>("INSERT INTO streams(name) VALUES (?)"),
  indexed: db.prepare<[], Place>("SELECT position FROM stream_index_end").pluck(),
  setIndexed: db.prepare<[Place]>("UPDATE stream_index_end SET position = ?"),
  add: db.prepare<[Place]>(
    "INSERT INTO stream_index SELECT stream, revision, position FROM events WHERE position > ? ORDER BY stream, revision"
  ),
  end: db.prepare<[number], EventStore.Revision | null>("SELECT max(revision) FROM stream_index WHERE stream = ?").pluck(),
  rows: db.prepare<[number, EventStore.Revision, EventStore.Revision], Row>(
    `SELECT ${EVENT} FROM stream_index i
    CROSS JOIN events e ON e.position = i.position AND e.stream = i.stream AND e.revision = i.revision
    WHERE i.stream = ? AND i.revision BETWEEN ? AND ? ORDER BY i.revision`
  ),
  /** Takes the places as a JSON array. */
  rowsAt: db.prepare<[string], Row>(`SELECT ${EVENT} FROM json_each(?) p CROSS JOIN events e ON e.position = p.value`)
})

export class StreamIndex {
  readonly #sql: ReturnType<typeof statements>
  readonly #filename: string
  readonly #most: number
  readonly #streams = new Map<StreamName.StreamName, KnownStream>()
  /** The same streams by their numbers. */
  readonly #byNumber = new Map<number, KnownStream>()
  #unindexed: UnindexedEvents
  #place: Place = 0

  /** `most`: the most events that the table lacks, up to a transaction. */
  constructor(db: Database.Database, filename: string, most = UNINDEXED) {
    this.#sql = statements(db)
    this.#filename = filename
    this.#most = most
    this.#unindexed = new UnindexedEvents(0)
  }

  /** The newest event that is known here; 0 if there is none. */
  get place(): Place {
    return this.#place
  }

  /** The stream, if it has events. It is valid until another one is asked for or added. */
  find(name: StreamName.StreamName): KnownStream | undefined {
    const known = this.#streams.get(name)
    if (known !== undefined) return known
    const number = this.#sql.stream.get(name)
    if (number === undefined) return undefined
    return this.#remember(name, { number, end: this.#unindexed.lastOf(number) ?? this.#sql.end.get(number) ?? -1 })
  }

  /** The events of a stream from one revision to another, in order. Those that the file lacks are left out. */
  rows(stream: number, low: EventStore.Revision, high: EventStore.Revision): ReadonlyArray<Row> {
    const unindexed = this.#unindexed.firstOf(stream)
    const old = low < unindexed ? this.#sql.rows.all(stream, low, Math.min(high, unindexed - 1)) : []
    if (high < unindexed) return old
    return [...old, ...this.#sql.rowsAt.all(JSON.stringify(this.#unindexed.placesOf(stream, low, high)))]
  }

  /** Inside a transaction. */
  addStream(name: StreamName.StreamName): KnownStream {
    return this.#remember(name, { number: Number(this.#sql.addStream.run(name).lastInsertRowid), end: -1 })
  }

  /** Inside a transaction: notes the next event of a stream, at the place after {@link place}. */
  add(stream: KnownStream): void {
    this.#place++
    this.#unindexed.add(stream.number, ++stream.end, this.#place)
  }

  /** Inside a transaction, before its events: refuses a file in which a revision occurs twice. It can still be read, as by an audit. */
  requireSound(): void {
    const { repeated } = this.#unindexed
    if (repeated !== undefined)
      throw new Fault(`${this.#filename} is corrupt: event ${repeated} repeats a revision of its stream; audit it`)
  }

  /** Inside a transaction, after its events: adds what the table lacks, if that is much. */
  write(): void {
    if (this.#place - this.#unindexed.after < this.#most) return
    this.#sql.add.run(this.#unindexed.after)
    this.#sql.setIndexed.run(this.#place)
    this.#unindexed = new UnindexedEvents(this.#place)
  }

  /** Reads which events other connections have written. They only add events after the last one. */
  catchUp(): void {
    const indexed = this.#sql.indexed.get() ?? 0
    if (indexed !== this.#unindexed.after) this.#unindexed = new UnindexedEvents(indexed)
    const last = this.#sql.last.get() ?? 0
    if (last - this.#place > CATCH_UP) this.#drop()
    // What others have indexed is not before the last event that is known here
    const after = this.#streams.size > 0 ? this.#place : this.#unindexed.last
    for (const { stream, revision, place } of this.#sql.between.all(after, last)) {
      if (place > this.#unindexed.last) this.#unindexed.add(stream, revision, place)
      const known = this.#byNumber.get(stream)
      if (known !== undefined) known.end = revision
    }
    this.#place = last
  }

  /** After a transaction that was undone: drops what is in memory. {@link catchUp} reads it again. */
  forget(): void {
    this.#place = 0
    this.#drop()
    this.#unindexed = new UnindexedEvents(0)
  }

  #remember(name: StreamName.StreamName, stream: KnownStream): KnownStream {
    if (this.#streams.size >= STREAMS) this.#drop()
    this.#streams.set(name, stream)
    this.#byNumber.set(stream.number, stream)
    return stream
  }

  #drop(): void {
    this.#streams.clear()
    this.#byNumber.clear()
  }
}
