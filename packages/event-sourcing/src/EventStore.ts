/**
 * The event store: streams of events that are appended at an exact revision, read in order, and followed live.
 * All code that uses this interface behaves the same in memory, on SQLite, on PostgreSQL and on KurrentDB.
 */
import { type Array, Context, Effect, type Exit, type Stream } from "effect"
import type { EventData, ExpectedRevision, Position, RecordedEvent, Revision } from "./StoredEvent.ts"
import { type AppendInDoubt, AppendTooLarge, ConditionFailed, type StoreUnavailable, type WrongRevision } from "./StoreErrors.ts"
import type { StreamName } from "./StreamName.ts"

export { type EventData, type ExpectedRevision, type Position, position, type RecordedEvent, type Revision, start } from "./StoredEvent.ts"
export { AppendInDoubt, AppendTooLarge, ConditionFailed, StoreUnavailable, WrongRevision } from "./StoreErrors.ts"

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

/** The comparison of this host's clock with the store's. */
export interface ClockStatus {
  /** Milliseconds by which this host's clock is ahead; undefined until the store has answered with its time. */
  readonly ahead: number | undefined
  /** Why this host's appends are refused; undefined while the clocks agree. */
  readonly trouble: string | undefined
}

export type AppendFailure = WrongRevision | ConditionFailed | AppendInDoubt | AppendTooLarge | StoreUnavailable

type Told<A, E> = (exit: Exit.Exit<A, E>) => void

/** Where another stream must end for an append to be written, because what is appended was decided by that stream. */
export interface Condition {
  readonly stream: StreamName
  readonly expected: ExpectedRevision
}

/** An append by callback. It calls `told` exactly once, at the latest when the store is closed; perhaps before it returns. */
export type SubmitAppend = (
  stream: StreamName,
  expected: ExpectedRevision,
  events: Array.NonEmptyReadonlyArray<EventData>,
  told: Told<Appended, AppendFailure>,
  conditions?: ReadonlyArray<Condition>
) => void

/** An append as an effect, and what a store may offer beside it. A wrapper that replaces the function replaces these properties as well. */
export interface Append {
  (
    stream: StreamName,
    expected: ExpectedRevision,
    events: Array.NonEmptyReadonlyArray<EventData>,
    conditions?: ReadonlyArray<Condition>
  ): Effect.Effect<Appended, AppendFailure>
  /** The same without a fiber. */
  readonly submit?: SubmitAppend
  /** Whether the store checks conditions, in one step with the append. Without it they are ignored. */
  readonly isConditional?: boolean
}

/** An append by its callback form. */
export const appendBy = (submit: SubmitAppend, { isConditional = false }: Pick<Append, "isConditional"> = {}): Append =>
  Object.assign(
    (...[stream, expected, events, conditions]: Parameters<Append>) =>
      Effect.callback<Appended, AppendFailure>((resume) => submit(stream, expected, events, resume, conditions)),
    { submit, isConditional }
  )

/** An effect in place of an append. It hands all that it is given on to that append, so it checks conditions if that one does. */
export const wrapAppend = (
  { isConditional = false }: Append,
  wrapped: (...of: Parameters<Append>) => Effect.Effect<Appended, AppendFailure>
): Append => Object.assign(wrapped, { isConditional })

/** The condition among these that does not hold, by the current ends of streams; undefined if all hold. */
export const failedCondition = (
  conditions: ReadonlyArray<Condition>,
  endOf: (stream: StreamName) => ExpectedRevision | undefined
): ConditionFailed | undefined => {
  for (const { stream, expected } of conditions) {
    const actual = endOf(stream) ?? "noStream"
    if (actual !== expected) return new ConditionFailed({ stream, actual })
  }
  return undefined
}

/** Wraps both forms of an append. `begin` is called before each, and `ended` with what it returned and the result. */
export const observeAppend = <A>(
  append: Append,
  begin: () => A,
  ended: (begun: A, exit: Exit.Exit<Appended, AppendFailure>) => void
): Append => {
  const { isConditional = false, submit } = append
  if (submit !== undefined)
    return appendBy(
      (stream, expected, events, told, conditions) => {
        const begun = begin()
        const observed: typeof told = (exit) => {
          ended(begun, exit)
          told(exit)
        }
        submit(stream, expected, events, observed, conditions)
      },
      { isConditional }
    )
  return wrapAppend(append, (...of) =>
    Effect.suspend(() => {
      const begun = begin()
      return Effect.onExitPrimitive(append(...of), (exit) => void ended(begun, exit))
    })
  )
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
     * With conditions, it appends only if they hold at that moment, where the store checks them (`isConditional`).
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
