/** A projection of the charges that were refunded, in part or in whole: they are few, and come long after the call that was charged. */
import { type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { type Effect, HashMap, Option, Schema, type Scope } from "effect"
import * as Credits from "../Credits.ts"
import { Account } from "../ledger/Account.ts"
import { type AccountEvent, RefundReason } from "../ledger/AccountEvent.ts"

const RefundedCharge = Schema.Struct({
  /** All refunds of the charge together. */
  amount: Credits.Credits,
  /** Of the last refund, as is its time: milliseconds since 1970. */
  reason: RefundReason,
  at: Schema.Int
})
export type RefundedCharge = typeof RefundedCharge.Type

/** By the reservation that was charged. */
const State = Schema.HashMap(Schema.String, RefundedCharge)
type State = typeof State.Type

export const make = (
  options?: Projection.Options
): Effect.Effect<Projection.Projection<State>, never, EventStore.EventStore | StateStore.StateStore | Scope.Scope> =>
  Projection.make(
    {
      name: "refundedCharges",
      version: 1,
      state: State,
      initial: () => HashMap.empty(),
      ...Projection.of<State, AccountEvent>(Account, {
        Refunded: ({ amount, reason, reservationId, stage }, { at }, refunds) =>
          stage === "reserved"
            ? refunds
            : HashMap.modifyAt(refunds, reservationId, (before) =>
                Option.some({
                  amount: Credits.of(amount + Option.match(before, { onNone: () => 0, onSome: ({ amount }) => amount })),
                  reason,
                  at
                })
              )
      })
    },
    options
  )
