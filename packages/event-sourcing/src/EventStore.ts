/**
 * The event store: streams of events, appended at an exact revision, read back in order, followed live.
 * Everything above this file behaves the same in memory, on SQLite, on PostgreSQL and on KurrentDB.
 */
import { type Array, type Brand, Context, type Effect, Schema, type Stream } from "effect"
import type { StreamName } from "./StreamName.ts"

/** Place of an event in its stream, counted from 0. */
export type Revision = number

/** Where a writer believes a stream to be: its last event, or not begun. */
export type ExpectedRevision = Revision | "noStream"

/**
 * Place of an event in the whole log. Opaque, but for one promise: positions sort as text in the order of the log.
 * {@link start} is before the first event.
 */
export type Position = string & Brand.Brand<"Position">

export const start = "" as Position

/** A position read from outside: a flag, a file, a checkpoint. */
export const position = (text: string): Position => text as Position

/** An event as it is written. `data` and `metadata` are JSON text, so what was hashed is what is kept, byte for byte. */
export interface EventData {
  /** A UUID. It makes an append idempotent; it does not make a command idempotent: that belongs in the fold. */
  readonly id: string
  readonly type: string
  readonly data: string
  readonly metadata: string
}

export interface RecordedEvent extends EventData {
  readonly stream: StreamName
  readonly revision: Revision
  readonly position: Position
}

/** The last event of an append. */
export interface Appended {
  readonly revision: Revision
  readonly position: Position
}

/** A run of events in log order; `live` once everything that had been written when the subscription reached the end was seen. */
export interface Batch {
  readonly events: ReadonlyArray<RecordedEvent>
  readonly live: boolean
}

/** A state that saves reading the stream up to `revision` again: derived, replaceable, outside the log and its hash chain. */
export interface StoredSnapshot {
  readonly revision: Revision
  readonly data: string
}

export interface ReadStreamOptions {
  readonly direction?: "forwards" | "backwards"
  /** The first event to read; by default the oldest, or the newest when reading backwards. */
  readonly from?: Revision
  readonly limit?: number
}

/** What one append may hold, in UTF-8 bytes of ids, types, data and metadata: the least that any store takes. */
export const MAX_APPEND_BYTES = 1_000_000

/** UTF-8 bytes of an append, as {@link MAX_APPEND_BYTES} counts them. */
export const appendBytes = (events: ReadonlyArray<EventData>): number => {
  let bytes = 0
  for (const { id, type, data, metadata } of events)
    bytes += Buffer.byteLength(data) + Buffer.byteLength(metadata) + id.length + type.length
  return bytes
}

/** The stream is not where the caller thought: nothing was written. */
export class WrongRevision extends Schema.TaggedError<WrongRevision>()("WrongRevision", {
  stream: Schema.String,
  actual: Schema.Union([Schema.Int, Schema.Literal("noStream")])
}) {}

/** No answer came: the events are all there or not at all. Sending the identical append again settles which. */
export class AppendInDoubt extends Schema.TaggedError<AppendInDoubt>()("AppendInDoubt", {
  stream: Schema.String,
  reason: Schema.String
}) {}

/** More than {@link MAX_APPEND_BYTES}: nothing was written, and nothing will be however often it is sent. */
export class AppendTooLarge extends Schema.TaggedError<AppendTooLarge>()("AppendTooLarge", {
  stream: Schema.String,
  bytes: Schema.Int
}) {}

/** The store cannot serve now, or this host may not write, because its `clock` is wrong; when it was asked to append, nothing was written. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  reason: Schema.String,
  why: Schema.optionalKey(Schema.Literal("clock"))
}) {}

/** This host's clock, beside the store's. */
export interface ClockStatus {
  /** Milliseconds by which this host's is ahead; undefined before the store told its time. */
  readonly ahead: number | undefined
  /** Why nothing is appended, where that is too much. */
  readonly trouble: string | undefined
}

export class EventStore extends Context.Service<
  EventStore,
  {
    /**
     * Appends all events or none, durably, after exactly `expected`.
     * The identical append (same ids, same order, same `expected`) sent again is answered as the success it was.
     */
    readonly append: (
      stream: StreamName,
      expected: ExpectedRevision,
      events: Array.NonEmptyReadonlyArray<EventData>
    ) => Effect.Effect<Appended, WrongRevision | AppendInDoubt | AppendTooLarge | StoreUnavailable>
    /** The events of one stream, in order; none when it does not exist. */
    readonly readStream: (stream: StreamName, options?: ReadStreamOptions) => Stream.Stream<RecordedEvent, StoreUnavailable>
    /** Where a stream ends now, by whomever it was written: the cheapest question a store can be asked. */
    readonly lastRevision: (stream: StreamName) => Effect.Effect<ExpectedRevision, StoreUnavailable>
    /** Everything after a position, in log order, up to what is written when the end is reached. */
    readonly readAll: (after: Position) => Stream.Stream<RecordedEvent, StoreUnavailable>
    /** Everything after a position, then what is appended from now on by whatever process, for ever. */
    readonly subscribe: (after: Position) => Stream.Stream<Batch, StoreUnavailable>
    /** The position of the newest event that `subscribe` delivers; {@link start} while the log is empty. */
    readonly head: Effect.Effect<Position, StoreUnavailable>
    /** The newest snapshot saved under a name, such as `accountSnapshot.v1-{id}`. */
    readonly loadSnapshot: (name: StreamName) => Effect.Effect<StoredSnapshot | undefined, StoreUnavailable>
    /** Replaces the snapshot of that name unless a newer one is there. */
    readonly saveSnapshot: (name: StreamName, snapshot: StoredSnapshot) => Effect.Effect<void, StoreUnavailable>
    /** Where the store has a clock of its own: no append of a host is taken whose clock is too far from it. */
    readonly clock?: { readonly status: Effect.Effect<ClockStatus> }
  }
>()("@millrace/event-sourcing/EventStore") {}
