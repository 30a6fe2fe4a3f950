/**
 * The interface to a client library: the calls to a node. Each failure says whether the call may have been carried out.
 * The folder `eventstoredb` implements it. Another library would get a folder of its own.
 */
import type { EventStore } from "@millrace/event-sourcing"
import { Data, type Effect } from "effect"
import type { LogPosition } from "./Position.ts"

export interface Recorded {
  readonly id: string
  readonly stream: string
  readonly revision: EventStore.Revision
  /** Undefined when a stream is read from a server older than 22.6. */
  readonly position: LogPosition | undefined
  /** When the server wrote the event, by its own clock: milliseconds since 1970. */
  readonly created: number
  readonly type: string
  readonly contentType: string
  readonly data: Uint8Array
  readonly metadata: Uint8Array
}

export interface Appended {
  readonly revision: EventStore.Revision
  /** Undefined if this is a repeated append whose events have been truncated. */
  readonly position: LogPosition | undefined
}

/** Selects events by their type, or by the beginning of their stream's name. */
export type Filter = { readonly by: "type"; readonly regex: string } | { readonly by: "stream"; readonly prefixes: ReadonlyArray<string> }

export type Direction = "forwards" | "backwards"

export type Message =
  | { readonly _tag: "confirmed" }
  | { readonly _tag: "event"; readonly event: Recorded }
  /** The server has searched the log up to this position. */
  | { readonly _tag: "checkpoint"; readonly position: LogPosition }

/**
 * - `wrongRevision`, `tooLarge`, `refused`: the server refused; nothing was done
 * - `notLeader`: another node leads, and the driver knows which; nothing was done
 * - `unreachable`: the call was not sent, or the node is not ready; nothing was done
 * - `noAnswer`: the call may have been carried out
 */
export type Kind = "wrongRevision" | "tooLarge" | "refused" | "notLeader" | "unreachable" | "noAnswer"

export class Fault extends Data.TaggedError("Fault")<{
  readonly kind: Kind
  readonly message: string
  /** For `wrongRevision`: where the stream ends. */
  readonly actual?: EventStore.ExpectedRevision
}> {}

export interface Driver {
  readonly append: (
    stream: string,
    expected: EventStore.ExpectedRevision,
    events: ReadonlyArray<EventStore.EventData>
  ) => Effect.Effect<Appended, Fault>
  /** Reads at most `count` events, beginning with `from`. Returns an empty array for a stream that does not exist. */
  readonly readStream: (
    stream: string,
    direction: Direction,
    from: EventStore.Revision | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<Recorded>, Fault>
  /** Reads at most `count` events: forwards from the event at `from`, backwards from the event before it. */
  readonly readLog: (direction: Direction, from: LogPosition | undefined, count: number) => Effect.Effect<ReadonlyArray<Recorded>, Fault>
  /** Follows the log after a position. Only a fault or an interruption ends it. */
  readonly follow: (after: LogPosition | undefined, filter: Filter, take: (message: Message) => void) => Effect.Effect<never, Fault>
  readonly close: () => void
}
