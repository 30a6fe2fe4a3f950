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

export class CallsInDoubt extends Context.Service<
  CallsInDoubt,
  {
    /** Records a call that must become free. */
    readonly add: (call: Omit<CallInDoubt, "at">) => Effect.Effect<void, StateStore.StateUnavailable>
    /** Removes a call that is free now. */
    readonly remove: (reservationId: string) => Effect.Effect<void, StateStore.StateUnavailable>
    /** A page of calls after a reservation id, in the order of ids; empty at the end. */
    readonly page: (after?: string) => Effect.Effect<ReadonlyArray<CallInDoubt>, StateStore.StateUnavailable>
  }
>()("@millrace/core/billing/CallsInDoubt") {
  static readonly layer: Layer.Layer<CallsInDoubt, never, StateStore.StateStore> = Layer.effect(
    CallsInDoubt,
    Effect.gen(function* () {
      const state = yield* StateStore.StateStore
      const clock = yield* Clock.Clock
      const Text = Schema.fromJsonString(CallInDoubt)
      const encode = Schema.encodeSync(Text)
      const decode = Schema.decodeUnknownOption(Text)
      const write = (change: StateStore.Change) =>
        // A write without an expected version cannot conflict
        Effect.asVoid(Effect.catchTag(state.write([change]), "StateConflict", Effect.die))

      return CallsInDoubt.of({
        add: (call) =>
          Effect.suspend(() => {
            const value = Buffer.from(encode({ ...call, at: clock.currentTimeMillisUnsafe() }))
            return write({ _tag: "put", space: SPACE, key: call.reservationId, value })
          }),
        remove: (reservationId) => write({ _tag: "remove", space: SPACE, key: reservationId }),
        page: (after) =>
          Effect.map(state.list(SPACE, { limit: PAGE, ...(after === undefined ? {} : { after }) }), (entries) =>
            entries.flatMap(({ value }) => Option.toArray(decode(Buffer.from(value).toString())))
          )
      })
    })
  )
}
