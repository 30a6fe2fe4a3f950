/**
 * Ends the holds that nobody ended: of calls whose process died, or whose refund the store did not take. It touches a hold only
 * once it is due, so a call that still runs, here or at another host, is safe from it.
 */

import { Deadlines, type EventStore, type StateStore, StreamName } from "@millrace/event-sourcing"
import { Context, Effect, Layer, type Scope } from "effect"
import { Account } from "../ledger/Account.ts"
import type * as Operation from "../operations/Operation.ts"
import { Charge } from "./Charge.ts"

export class Recovery extends Context.Service<
  Recovery,
  {
    /** Open holds that are past their time, at `now`. Milliseconds since 1970. */
    readonly overdue: Deadlines.Deadlines["overdue"]
    readonly status: Deadlines.Deadlines["status"]
  }
>()("@millrace/core/billing/Recovery") {
  /** `operations`: those that can say what became of a call of theirs are asked before its hold is ended. */
  static readonly layer = <Op extends Operation.Any>(
    operations: ReadonlyArray<Op>,
    options: Deadlines.Options = {}
  ): Layer.Layer<Recovery, never, Charge | EventStore.EventStore | StateStore.StateStore | Operation.Services<Op>> =>
    Layer.effect(Recovery, make(operations, options))
}

/** What it takes of an event as it is recorded: every charge at this host passes here, so nothing more is decoded. */
interface HoldFields {
  readonly reservationId: string
  readonly operation: string
  readonly expiresAt?: string
  readonly stage?: "reserved" | "settled"
}

interface Hold {
  readonly accountId: string
  readonly operation: string
}

const make = <Op extends Operation.Any>(
  operations: ReadonlyArray<Op>,
  options: Deadlines.Options
): Effect.Effect<
  Recovery["Service"],
  never,
  Charge | EventStore.EventStore | StateStore.StateStore | Operation.Services<Op> | Scope.Scope
> =>
  Effect.gen(function* () {
    const charge = yield* Charge
    const services = yield* Effect.context<Operation.Services<Op>>()
    const byKey = new Map(operations.map((operation) => [operation.key, operation]))

    const deadlines = yield* Deadlines.make(
      {
        name: "holds",
        version: 1,
        categories: [Account.category],
        types: ["CreditReserved", "OperationSucceeded", "Refunded"],
        schedule: ({ data, stream, type }) => {
          const { expiresAt, operation, reservationId: key, stage }: HoldFields = JSON.parse(data)
          if (type !== "CreditReserved") return stage === "settled" ? [] : [{ _tag: "clear", key }]
          if (expiresAt === undefined) return []
          const hold: Hold = { accountId: StreamName.id(stream), operation }
          return [{ _tag: "set", key, dueAt: Date.parse(expiresAt), payload: JSON.stringify(hold) }]
        },
        onDue: ({ key, payload }) => {
          const { accountId, operation }: Hold = JSON.parse(payload)
          return Effect.provideContext(charge.recover(byKey.get(operation), accountId, key), services)
        }
      },
      options
    )
    return Recovery.of({ overdue: deadlines.overdue, status: deadlines.status })
  })
