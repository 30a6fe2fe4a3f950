/** Events as stores keep them, and their places. */
import type { Brand } from "effect"
import type { DecidedEvent } from "./DecidedEvent.ts"
import type { StreamName } from "./StreamName.ts"

/** The place of an event in its stream, counted from 0. */
export type Revision = number

/** The last revision of a stream that a writer expects, or `noStream`. */
export type ExpectedRevision = Revision | "noStream"

/**
 * The place of an event in the whole log. The format depends on the store; positions sort as text in log order. `start` is before
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
