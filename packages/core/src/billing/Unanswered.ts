/**
 * Calls whose callers were told that nobody knows how they ended, and who have no key to ask again with: they shall cost nothing. The
 * process that told them sees to it; it is written down here, so that another does when that one dies first.
 */

import { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"

export const UnansweredCall = Schema.Struct({
  accountId: Schema.String,
  reservationId: Schema.String,
  requestId: Schema.String,
  /** Set where the call was to become a job: the key of its operation. */
  operation: Schema.optionalKey(Schema.String),
  /** When its caller was told, milliseconds since 1970. */
  at: Schema.Int
})
export type UnansweredCall = typeof UnansweredCall.Type

const SPACE = "unanswered"
const PAGE = 500

export class Unanswered extends Context.Service<
  Unanswered,
  {
    readonly add: (call: Omit<UnansweredCall, "at">) => Effect.Effect<void, StateStore.StateUnavailable>
    readonly remove: (reservationId: string) => Effect.Effect<void, StateStore.StateUnavailable>
    /** Those after a reservation's id, in the order of their ids; none when there are no more. */
    readonly page: (after?: string) => Effect.Effect<ReadonlyArray<UnansweredCall>, StateStore.StateUnavailable>
  }
>()("@millrace/core/billing/Unanswered") {
  static readonly layer: Layer.Layer<Unanswered, never, StateStore.StateStore> = Layer.effect(
    Unanswered,
    Effect.gen(function* () {
      const state = yield* StateStore.StateStore
      const clock = yield* Clock.Clock
      const Text = Schema.fromJsonString(UnansweredCall)
      const encode = Schema.encodeSync(Text)
      const decode = Schema.decodeUnknownOption(Text)
      const write = (change: StateStore.Change) =>
        // Nothing is expected of an entry, so nothing conflicts
        Effect.asVoid(Effect.catchTag(state.write([change]), "StateConflict", Effect.die))

      return Unanswered.of({
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
