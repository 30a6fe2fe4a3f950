/** How calls of an event store fail. */
import { Schema } from "effect"
import type { RecordedEvent } from "./StoredEvent.ts"

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

/**
 * A condition of the append does not hold. Nothing was written by this append. The identical append, sent again, may fail with it although the
 * first one was written.
 */
export class ConditionFailed extends Schema.TaggedError<ConditionFailed>()("ConditionFailed", {
  /** The stream of the condition, not of the append. */
  stream: Schema.String,
  actual: Schema.Union([Schema.Int, Schema.Literal("noStream")])
}) {
  override get message(): string {
    return `Stream ${this.stream} is at revision ${this.actual}, not where a condition of the append expected it`
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

/** The append has more than `MAX_APPEND_BYTES`. Nothing was written; do not retry. */
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
