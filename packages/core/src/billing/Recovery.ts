/**
 * Ends abandoned holds: of calls whose process died, or whose release the store did not accept. It ends a hold only once it is due, so it
 * does not disturb a call that still runs, here or at another host. It also makes calls free whose outcome is unknown, if the process that
 * promised it died: see `CallsInDoubt.ts`.
 */

import { Deadlines, type EventStore, Following, Lease, type StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { idOf as jobIdOf } from "../jobs/Job.ts"
import { Jobs } from "../jobs/Jobs.ts"
import { Account } from "../ledger/Account.ts"
import * as Metrics from "../observability/Metrics.ts"
import type * as Operation from "../work/Operation.ts"
import { type CallInDoubt, CallsInDoubt } from "./CallsInDoubt.ts"
import { Charge } from "./Charge.ts"

/** The payload of a deadline, as JSON. */
interface Hold {
  readonly accountId: string
  readonly operation: string
}

/** An append in doubt arrives within this time or never. After it, a call that the account does not know was never held. */
const ARRIVES_WITHIN = Duration.toMillis("1 hour")

/**
 * Makes calls with an unknown outcome free. A failure is retried in the next sweep. `abandon` refuses or cancels the job that such a call
 * may have become.
 */
const keepPromises = Effect.fnUntraced(function* <E, R>(abandon: (call: CallInDoubt) => Effect.Effect<void, E, R>) {
  const charge = yield* Charge
  const callsInDoubt = yield* CallsInDoubt
  const keep = Effect.fnUntraced(function* (call: CallInDoubt) {
    yield* abandon(call)
    const known = yield* charge.makeFree(call)
    const now = yield* Clock.currentTimeMillis
    if (known || now - call.at > ARRIVES_WITHIN) yield* callsInDoubt.remove(call.reservationId)
  })
  let calls = yield* callsInDoubt.page()
  while (calls.length > 0) {
    // A failure must not stop the other calls
    for (const call of calls) yield* Effect.exit(keep(call))
    calls = yield* callsInDoubt.page(calls.at(-1)?.reservationId)
  }
})

/** The deadlines of holds and of slots of trials: set at the reservation, cleared at the end. */
const schedule = Deadlines.of(Account, {
  CreditReserved: ({ expiresAt, operation, reservationId: key }, { id: accountId }) => {
    if (expiresAt === undefined) return []
    const hold: Hold = { accountId, operation }
    return [{ _tag: "set", key, dueAt: expiresAt, payload: JSON.stringify(hold) }]
  },
  TrialReserved: ({ expiresAt, operation, reservationId: key }, { id: accountId }) => {
    const slot: Hold = { accountId, operation }
    return [{ _tag: "set", key, dueAt: expiresAt, payload: JSON.stringify(slot) }]
  },
  TrialUsed: ({ reservationId: key }) => [{ _tag: "clear", key }],
  TrialReleased: ({ reservationId: key }) => [{ _tag: "clear", key }],
  OperationSucceeded: ({ reservationId: key }) => [{ _tag: "clear", key }],
  Refunded: ({ reservationId: key, stage }) => (stage === "reserved" ? [{ _tag: "clear", key }] : [])
})

/** `operations`: recoverable ones are asked for the outcome of a call before its hold is ended. */
const make = Effect.fnUntraced(function* <Op extends Operation.Any>(operations: ReadonlyArray<Op>, options: Deadlines.Options = {}) {
  const charge = yield* Charge
  const jobs = yield* Jobs
  const services = yield* Effect.context<Operation.Services<Op>>()
  const byKey = new Map(operations.map((operation) => [operation.key, operation]))
  const onDue = ({ key, payload }: Deadlines.Deadline) => {
    const { accountId, operation }: Hold = JSON.parse(payload)
    return Effect.provideContext(charge.recover(byKey.get(operation), accountId, key), services)
  }
  const deadlines = yield* Deadlines.make({ name: "holds", version: 2, ...schedule, onDue }, options)
  yield* Metrics.lag(
    "holds",
    Effect.map(deadlines.status, ({ projection }) => projection)
  )
  yield* Metrics.recovery(() => Effect.runSync(deadlines.status).failing.length)

  let trouble: Following.Retrying | undefined
  const abandon = (call: CallInDoubt) =>
    call.operation === undefined ? Effect.void : jobs.abandon({ ...call, jobId: jobIdOf(call.reservationId) })
  const sweep = Following.retryForever(keepPromises(abandon), (now) => {
    trouble = now
  })
  const sweeps = Effect.forever(Effect.andThen(sweep, Effect.sleep(options.sweepEvery ?? "30 seconds")))
  yield* Effect.forkScoped(Lease.keep("unanswered", options)(() => sweeps))

  const status = Effect.map(deadlines.status, (holds) => ({ ...holds, callsInDoubt: trouble }))
  return Recovery.of({ overdue: deadlines.overdue, status })
})

export class Recovery extends Context.Service<
  Recovery,
  {
    /** Open holds that were due at `now`, milliseconds since 1970. */
    readonly overdue: Deadlines.Deadlines["overdue"]
    /** The status of the sweep over open holds. `callsInDoubt`: why the sweep over calls with an unknown outcome fails now, if it does. */
    readonly status: Effect.Effect<Deadlines.Status & { readonly callsInDoubt: Following.Retrying | undefined }>
  }
>()("@millrace/core/billing/Recovery") {
  static readonly layer = <Op extends Operation.Any>(
    operations: ReadonlyArray<Op>,
    options?: Deadlines.Options
  ): Layer.Layer<Recovery, never, Charge | Jobs | CallsInDoubt | EventStore.EventStore | StateStore.StateStore | Operation.Services<Op>> =>
    Layer.effect(this, make(operations, options))
}
