/**
 * The event store: streams of events that are appended at an exact revision, read in order, and followed live.
 * All code that uses this interface behaves the same in memory, on SQLite, on PostgreSQL and on KurrentDB.
 */
import { type Array, type Brand, Context, Effect, type Exit, Schema, type Stream } from "effect"
import type { DecidedEvent } from "./DecidedEvent.ts"
import type { StreamName } from "./StreamName.ts"

/** The place of an event in its stream, counted from 0. */
export type Revision = number

/** The last revision of a stream that a writer expects, or `noStream`. */
export type ExpectedRevision = Revision | "noStream"

/**
 * The place of an event in the whole log. The format depends on the store; positions sort as text in log order. {@link start} is before
 * the first event.
 */
export type Position = string & Brand.Brand<"Position">

export const start = "" as Position

/** A position from a flag, a file or a checkpoint. */
export const position = (text: string): Position => text as Position

/** An event to append. `data` and `metadata` are JSON text, so the store keeps exactly the bytes that were hashed. */
export interface EventData {
  /** A UUID. It makes the append idempotent, but not the command: for that, the state must remember the decided commands. */
  readonly id: string
  readonly type: string
  readonly data: string
  readonly metadata: string
  /** What `data` encodes, if this process has just decided it. Stores may drop it. */
  readonly decided?: DecidedEvent
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

/** Selects events by category and type. An event must match all given conditions. No event is parsed for this. */
export interface Selection {
  readonly types?: ReadonlyArray<string>
  readonly categories?: ReadonlyArray<string>
}

/** A selection of a subscriber that may be spared the batches which hold nothing for it. */
export interface Subscription extends Selection {
  /**
   * Called in place of a batch without a selected event: the events after `after`, up to `position`. Returns whether the subscriber has noted
   * `position`; if not, the batch is sent. A store need not call it. It does so only where the subscription has reached the end of the log, and
   * the subscriber waits for the next batch. Must not throw.
   */
  readonly skip?: (after: Position, position: Position) => boolean
}

/** Events in log order: consecutive ones, but for those that the subscriber did not select. */
export interface Batch {
  readonly events: ReadonlyArray<RecordedEvent>
  /** Whether the subscription has reached the end of the log, this batch included. */
  readonly live: boolean
  /** How far the log was read, if the store left out events after the last one of the batch. */
  readonly position?: Position
}

/** How far a batch reads the log; undefined for a batch without events that were read. */
export const endOf = ({ events, position }: Pick<Batch, "events" | "position">): Position | undefined => position ?? events.at(-1)?.position

/** A stream's state after `revision`, so that a reader can begin there. Derived data, outside the log and its hash chain. */
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

/** The largest append that every store takes, in UTF-8 bytes of ids, types, data and metadata. */
export const MAX_APPEND_BYTES = 1_000_000

/** UTF-8 bytes of an append, as {@link MAX_APPEND_BYTES} counts them. */
export const appendBytes = (events: ReadonlyArray<EventData>): number => {
  let bytes = 0
  for (const { id, type, data, metadata } of events)
    bytes += Buffer.byteLength(data) + Buffer.byteLength(metadata) + id.length + type.length
  return bytes
}

/** Characters of an append: cheap to count, and never more than its bytes. */
export const appendChars = (events: ReadonlyArray<EventData>): number => {
  let chars = 0
  for (const { id, type, data, metadata } of events) chars += id.length + type.length + data.length + metadata.length
  return chars
}

/** The error of an append of more than {@link MAX_APPEND_BYTES}; undefined for a smaller one. */
export const tooLarge = (stream: StreamName, events: ReadonlyArray<EventData>): AppendTooLarge | undefined => {
  // A character is at most three bytes of UTF-8
  const bytes = appendChars(events) * 3 > MAX_APPEND_BYTES ? appendBytes(events) : 0
  return bytes > MAX_APPEND_BYTES ? new AppendTooLarge({ stream, bytes }) : undefined
}

/** The expected revision after this last revision; -1 stands for a stream without events. */
export const expectedOf = (revision: Revision): ExpectedRevision => (revision === -1 ? "noStream" : revision)

/** The last revision as a number; -1 stands for a stream without events. */
export const revisionOf = (last: ExpectedRevision): Revision => (last === "noStream" ? -1 : last)

/** Unchecked: an event that a store tells is checked where it is folded, as one that is read. */
const Recorded: Schema.Codec<RecordedEvent, unknown> = Schema.Any

/** The stream's last revision is not the expected one. Nothing was written. */
export class WrongRevision extends Schema.TaggedError<WrongRevision>()("WrongRevision", {
  stream: Schema.String,
  actual: Schema.Union([Schema.Int, Schema.Literal("noStream")]),
  /** All events after the expected revision up to `actual`, if the store tells them with the refusal. */
  newer: Schema.optionalKey(Schema.Array(Recorded))
}) {
  override get message(): string {
    return `Stream ${this.stream} is at revision ${this.actual}, not where the append expected it`
  }
}

/** The store did not answer: either all events were written or none. Send the identical append again to find out. */
export class AppendInDoubt extends Schema.TaggedError<AppendInDoubt>()("AppendInDoubt", {
  stream: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `Whether the append to ${this.stream} was written is not known: ${this.reason}`
  }
}

/** The append has more than {@link MAX_APPEND_BYTES}. Nothing was written; do not retry. */
export class AppendTooLarge extends Schema.TaggedError<AppendTooLarge>()("AppendTooLarge", {
  stream: Schema.String,
  bytes: Schema.Int
}) {
  override get message(): string {
    return `The append to ${this.stream} has ${this.bytes} bytes, more than a store takes at once`
  }
}

/** The store cannot serve now, or this host must not write because its `clock` is wrong. An append that failed with this wrote nothing. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  reason: Schema.String,
  why: Schema.optionalKey(Schema.Literal("clock"))
}) {
  override get message(): string {
    return `The event store is not available: ${this.reason}`
  }
}

/** The comparison of this host's clock with the store's. */
export interface ClockStatus {
  /** Milliseconds by which this host's clock is ahead; undefined until the store has answered with its time. */
  readonly ahead: number | undefined
  /** Why this host's appends are refused; undefined while the clocks agree. */
  readonly trouble: string | undefined
}

export type AppendFailure = WrongRevision | AppendInDoubt | AppendTooLarge | StoreUnavailable

type Told<A, E> = (exit: Exit.Exit<A, E>) => void

/** An append by callback. It calls `told` exactly once, at the latest when the store is closed; perhaps before it returns. */
export type SubmitAppend = (
  stream: StreamName,
  expected: ExpectedRevision,
  events: Array.NonEmptyReadonlyArray<EventData>,
  told: Told<Appended, AppendFailure>
) => void

export interface Append {
  (stream: StreamName, expected: ExpectedRevision, events: Array.NonEmptyReadonlyArray<EventData>): Effect.Effect<Appended, AppendFailure>
  /**
   * The same without a fiber, where the store has it. A wrapper that replaces the function replaces this as well, because it is a property
   * of it.
   */
  readonly submit?: SubmitAppend
}

/** An append by its callback form. */
export const appendBy = (submit: SubmitAppend): Append =>
  Object.assign(
    (stream: StreamName, expected: ExpectedRevision, events: Array.NonEmptyReadonlyArray<EventData>) =>
      Effect.callback<Appended, AppendFailure>((resume) => submit(stream, expected, events, resume)),
    { submit }
  )

/** Wraps both forms of an append. `begin` is called before each, and `ended` with what it returned and the result. */
export const observeAppend = <A>(
  append: Append,
  begin: () => A,
  ended: (begun: A, exit: Exit.Exit<Appended, AppendFailure>) => void
): Append => {
  const { submit } = append
  if (submit !== undefined)
    return appendBy((stream, expected, events, told) => {
      const begun = begin()
      submit(stream, expected, events, (exit) => {
        ended(begun, exit)
        told(exit)
      })
    })
  return (...of) =>
    Effect.suspend(() => {
      const begun = begin()
      return Effect.onExitPrimitive(append(...of), (exit) => void ended(begun, exit))
    })
}

export interface LastRevision {
  (stream: StreamName): Effect.Effect<ExpectedRevision, StoreUnavailable>
  /** The same at once, where the store has it; undefined if it cannot answer without waiting. */
  readonly now?: (stream: StreamName) => ExpectedRevision | undefined
}

export class EventStore extends Context.Service<
  EventStore,
  {
    /**
     * Appends all events or none, durably, after exactly `expected`.
     * Sending the identical append again (same ids, same order, same `expected`) succeeds and writes nothing.
     */
    readonly append: Append
    /** The events of one stream in order; empty if it does not exist. */
    readonly readStream: (stream: StreamName, options?: ReadStreamOptions) => Stream.Stream<RecordedEvent, StoreUnavailable>
    /** The revision of the stream's last event, including events of other processes. The cheapest call of a store. */
    readonly lastRevision: LastRevision
    /** All events after a position, in log order. Ends at the end of the log. */
    readonly readAll: (after: Position) => Stream.Stream<RecordedEvent, StoreUnavailable>
    /**
     * All events after a position, then each new event that any process appends. Never ends. A store may leave out events that do not match
     * the `subscription`, so that they need not be sent; the subscriber must still look at each event.
     */
    readonly subscribe: (after: Position, subscription?: Subscription) => Stream.Stream<Batch, StoreUnavailable>
    /** The position of the newest event that `subscribe` delivers; {@link start} while the log is empty. */
    readonly head: Effect.Effect<Position, StoreUnavailable>
    /** The newest snapshot saved under a name, such as `accountSnapshot.v1-{id}`. */
    readonly loadSnapshot: (name: StreamName) => Effect.Effect<StoredSnapshot | undefined, StoreUnavailable>
    /** Replaces the snapshot of that name unless a newer one is stored. */
    readonly saveSnapshot: (name: StreamName, snapshot: StoredSnapshot) => Effect.Effect<void, StoreUnavailable>
    /** Present for a store with its own clock. Such a store refuses the appends of a host whose clock differs too much. */
    readonly clock?: { readonly status: Effect.Effect<ClockStatus> }
  }
>()("@millrace/event-sourcing/EventStore") {}
