/**
 * A small durable map of bytes by space and key, with versions for compare-and-set. It holds data that must be deletable or is derived, and
 * so does not belong in the log: vault keys, sealed replies, leases, projections and checkpoints.
 */
import { type Array, Context, type Effect, Schema } from "effect"

export interface Entry {
  readonly key: string
  readonly value: Uint8Array
  /** Grows with every change in the whole store, also after a removal, so it can serve as a fencing token. */
  readonly version: number
  /** Milliseconds since 1970. From this time on, the entry counts as absent. */
  readonly expiresAt: number | null
}

export type Change =
  | {
      readonly _tag: "put"
      readonly space: string
      readonly key: string
      readonly value: Uint8Array
      readonly expiresAt?: number
      /** The version that the entry must have now, or `absent`. Not checked by default. */
      readonly expected?: number | "absent"
    }
  | {
      readonly _tag: "remove"
      readonly space: string
      readonly key: string
      readonly expected?: number
      /** Leaves no trace on disk, also in free pages and journals. For keys: destroying a key deletes the data that it encrypts. */
      readonly shred?: boolean
    }
  /** Changes nothing. The write conflicts unless the entry has this version, or is absent. */
  | { readonly _tag: "check"; readonly space: string; readonly key: string; readonly expected: number | "absent" }

/** An entry does not have the expected version. Nothing was written. */
export class StateConflict extends Schema.TaggedError<StateConflict>()("StateConflict", {
  space: Schema.String,
  key: Schema.String
}) {
  override get message(): string {
    return `The entry ${this.key} of ${this.space} was changed meanwhile`
  }
}

export class StateUnavailable extends Schema.TaggedError<StateUnavailable>()("StateUnavailable", { reason: Schema.String }) {
  override get message(): string {
    return `The state store is not available: ${this.reason}`
  }
}

export class StateStore extends Context.Service<
  StateStore,
  {
    readonly get: (space: string, key: string) => Effect.Effect<Entry | undefined, StateUnavailable>
    /** Entries of a space by key, in text order, after `after`; at most `limit`, 1,000 by default. */
    readonly list: (
      space: string,
      options?: { readonly after?: string; readonly limit?: number }
    ) => Effect.Effect<ReadonlyArray<Entry>, StateUnavailable>
    /** Applies all changes or none, durably. Returns the version that every `put` of this write now has. */
    readonly write: (changes: Array.NonEmptyReadonlyArray<Change>) => Effect.Effect<number, StateConflict | StateUnavailable>
  }
>()("@millrace/event-sourcing/StateStore") {}
