/**
 * Calls without an idempotency key whose outcome is unknown. Their callers cannot retry safely, so these calls are made free. The process
 * that answered does it; this record lets another process do it if that one dies first.
 */

import { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"

export const CallInDoubt = Schema.Struct({
  accountId: Schema.String,
  reservationId: Schema.String,
  requestId: Schema.String,
  /** The key of the operation, if the call was to become a job. */
  operation: Schema.optionalKey(Schema.String),
  /** When the call was recorded, milliseconds since 1970. */
  at: Schema.Int
})
export type CallInDoubt = typeof CallInDoubt.Type

/** Stored under this name by every release. */
const SPACE = "unanswered"
const PAGE = 500

const Text = Schema.fromJsonString(CallInDoubt)
const encode = Schema.encodeSync(Text)
const decode = Schema.decodeUnknownOption(Text)

const make = Effect.gen(function* () {
  const state = yield* StateStore.StateStore
  const clock = yield* Clock.Clock
  const write = (change: StateStore.Change) =>
    // A write without an expected version cannot conflict
    Effect.asVoid(Effect.catchTag(state.write([change]), "StateConflict", Effect.die))

  return {
    /** Records a call that must become free. */
    add: (call: Omit<CallInDoubt, "at">) =>
      Effect.suspend(() => {
        const value = Buffer.from(encode({ ...call, at: clock.currentTimeMillisUnsafe() }))
        return write({ _tag: "put", space: SPACE, key: call.reservationId, value })
      }),
    /** Removes a call that is free now. */
    remove: (reservationId: string) => write({ _tag: "remove", space: SPACE, key: reservationId }),
    /** A page of calls after a reservation id, in the order of ids; empty at the end. */
    page: (after?: string) =>
      Effect.map(state.list(SPACE, { limit: PAGE, ...(after === undefined ? {} : { after }) }), (entries) =>
        entries.flatMap(({ value }) => Option.toArray(decode(Buffer.from(value).toString())))
      )
  }
})

export class CallsInDoubt extends Context.Service<CallsInDoubt, Effect.Success<typeof make>>()("@millrace/core/billing/CallsInDoubt") {
  static readonly layer: Layer.Layer<CallsInDoubt, never, StateStore.StateStore> = Layer.effect(this, make)
}
