/**
 * What the store asks of a client library: one connection to a node, whose every failure says whether something may have been done.
 * The folder `eventstoredb` holds the one there is; another library would stand beside it.
 */
import type { EventStore } from "@millrace/event-sourcing"
import { Data, type Effect } from "effect"
import type { LogPosition } from "./Position.ts"

export interface Proposed {
  readonly id: string
  readonly type: string
  /** JSON text. */
  readonly data: string
  readonly metadata: string
}

export interface Recorded {
  readonly id: string
  readonly stream: string
  readonly revision: EventStore.Revision
  /** Servers before 22.6 do not tell it when a stream is read. */
  readonly position: LogPosition | undefined
  /** When the server wrote it, by its own clock: milliseconds since 1970. */
  readonly created: number
  readonly type: string
  readonly contentType: string
  readonly data: Uint8Array
  readonly metadata: Uint8Array
}

export interface Appended {
  readonly revision: EventStore.Revision
  /** Not told when the events, appended before, were truncated since. */
  readonly position: LogPosition | undefined
}

/** The events that the server sends: by their type, or by the beginning of the name of their stream. */
export type Filter = { readonly by: "type"; readonly regex: string } | { readonly by: "stream"; readonly prefixes: ReadonlyArray<string> }

export type Direction = "forwards" | "backwards"

export type Message =
  | { readonly _tag: "confirmed" }
  | { readonly _tag: "event"; readonly event: Recorded }
  /** Up to here the log was looked through. */
  | { readonly _tag: "checkpoint"; readonly position: LogPosition }

/**
 * - `wrongRevision`, `tooLarge`, `refused`: the server's word; nothing was done
 * - `notLeader`: another node has to be asked, and the driver knows which; nothing was done
 * - `unreachable`: it was not sent, or the node is not ready; nothing was done
 * - `noAnswer`: it may have been done
 */
export type Kind = "wrongRevision" | "tooLarge" | "refused" | "notLeader" | "unreachable" | "noAnswer"

export class Fault extends Data.TaggedError("Fault")<{
  readonly kind: Kind
  readonly message: string
  /** Where the stream ends, with `wrongRevision`. */
  readonly actual?: EventStore.ExpectedRevision
}> {}

export interface Driver {
  readonly append: (
    stream: string,
    expected: EventStore.ExpectedRevision,
    events: ReadonlyArray<Proposed>
  ) => Effect.Effect<Appended, Fault>
  /** At most `count` events; none of a stream that does not exist. Includes `from`. */
  readonly readStream: (
    stream: string,
    direction: Direction,
    from: EventStore.Revision | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<Recorded>, Fault>
  /** At most `count` events. A position is included forwards and excluded backwards. */
  readonly readLog: (direction: Direction, from: LogPosition | undefined, count: number) => Effect.Effect<ReadonlyArray<Recorded>, Fault>
  /** Everything after a position, for ever: only a fault or an interruption ends it. */
  readonly follow: (after: LogPosition | undefined, filter: Filter, take: (message: Message) => void) => Effect.Effect<never, Fault>
  readonly close: () => void
}
