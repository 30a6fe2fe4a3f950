/**
 * Ends the holds that nobody ended: of calls whose process died, or whose refund the store did not take. It touches a hold only
 * once it is due, so a call that still runs, here or at another host, is safe from it. And it keeps the promises of processes that
 * died: that a call costs nothing whose caller was told that nobody knows how it ended.
 */

import { Deadlines, type EventStore, Following, Lease, type StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer, type Scope } from "effect"
import { idOf as jobIdOf } from "../jobs/Job.ts"
import { Jobs } from "../jobs/Jobs.ts"
import { Account } from "../ledger/Account.ts"
import * as Metrics from "../observability/Metrics.ts"
import type * as Operation from "../work/Operation.ts"
import { Charge } from "./Charge.ts"
import { Unanswered, type UnansweredCall } from "./Unanswered.ts"

export class Recovery extends Context.Service<
  Recovery,
  {
    /** Open holds that are past their time, at `now`. Milliseconds since 1970. */
    readonly overdue: Deadlines.Deadlines["overdue"]
    /** Of the sweep over open holds; `unanswered`: why promised refunds cannot be looked up, if so. */
    readonly status: Effect.Effect<Deadlines.Status & { readonly unanswered: Following.Retrying | undefined }>
  }
>()("@millrace/core/billing/Recovery") {
  /** `operations`: those that can say what became of a call of theirs are asked before its hold is ended. */
  static readonly layer = <Op extends Operation.Any>(
    operations: ReadonlyArray<Op>,
    options: Deadlines.Options = {}
  ): Layer.Layer<Recovery, never, Charge | Jobs | Unanswered | EventStore.EventStore | StateStore.StateStore | Operation.Services<Op>> =>
    Layer.effect(Recovery, make(operations, options))
}

/** What a deadline remembers of its hold, as JSON. */
interface Hold {
  readonly accountId: string
  readonly operation: string
}

/** What is not known of a call by then never happened: no append is on its way for an hour. */
const ARRIVES_WITHIN = Duration.toMillis("1 hour")

/**
 * Gives back what the calls took that were never answered. What fails now is tried again in the next sweep. `abandon` sees to it that one
 * which was to become a job becomes none.
 */
const keepPromises = Effect.fnUntraced(function* <E, R>(abandon: (call: UnansweredCall) => Effect.Effect<void, E, R>) {
  const charge = yield* Charge
  const unanswered = yield* Unanswered
  const keep = Effect.fnUntraced(function* (call: UnansweredCall) {
    yield* abandon(call)
    const known = yield* charge.makeFree(call)
    const now = yield* Clock.currentTimeMillis
    if (known || now - call.at > ARRIVES_WITHIN) yield* unanswered.remove(call.reservationId)
  })
  let calls = yield* unanswered.page()
  while (calls.length > 0) {
    // One that cannot be given back must not keep the others waiting
    for (const call of calls) yield* Effect.exit(keep(call))
    calls = yield* unanswered.page(calls.at(-1)?.reservationId)
  }
})

/** A hold falls due at its expiry; its end clears it. */
const schedule = Deadlines.of(Account, {
  CreditReserved: ({ expiresAt, operation, reservationId: key }, { id: accountId }) => {
    if (expiresAt === undefined) return []
    const hold: Hold = { accountId, operation }
    return [{ _tag: "set", key, dueAt: expiresAt, payload: JSON.stringify(hold) }]
  },
  OperationSucceeded: ({ reservationId: key }) => [{ _tag: "clear", key }],
  Refunded: ({ reservationId: key, stage }) => (stage === "reserved" ? [{ _tag: "clear", key }] : [])
})

const make = <Op extends Operation.Any>(
  operations: ReadonlyArray<Op>,
  options: Deadlines.Options
): Effect.Effect<
  Recovery["Service"],
  never,
  Charge | Jobs | Unanswered | EventStore.EventStore | StateStore.StateStore | Operation.Services<Op> | Scope.Scope
> =>
  Effect.gen(function* () {
    const charge = yield* Charge
    const jobs = yield* Jobs
    const services = yield* Effect.context<Operation.Services<Op>>()
    const byKey = new Map(operations.map((operation) => [operation.key, operation]))

    const deadlines = yield* Deadlines.make(
      {
        name: "holds",
        version: 1,
        ...schedule,
        onDue: ({ key, payload }) => {
          const { accountId, operation }: Hold = JSON.parse(payload)
          return Effect.provideContext(charge.recover(byKey.get(operation), accountId, key), services)
        }
      },
      options
    )
    yield* Metrics.lag(
      "holds",
      Effect.map(deadlines.status, ({ projection }) => projection)
    )
    yield* Metrics.recovery(Effect.map(deadlines.status, ({ failing }) => failing.length))
    let unanswered: Following.Retrying | undefined
    const told = (trouble: Following.Retrying | undefined) => {
      unanswered = trouble
    }
    const abandon = (call: UnansweredCall) => {
      return call.operation === undefined ? Effect.void : jobs.abandon({ ...call, jobId: jobIdOf(call.reservationId) })
    }
    const sweep = Effect.andThen(Following.retryForever(keepPromises(abandon), told), Effect.sleep(options.sweepEvery ?? "30 seconds"))
    yield* Effect.forkScoped(Lease.keep("unanswered", options)(() => Effect.forever(sweep)))

    return Recovery.of({
      overdue: deadlines.overdue,
      status: Effect.map(deadlines.status, (holds) => ({ ...holds, unanswered }))
    })
  })
