/** Holds that are overdue: their time is over, and neither their call nor recovery has ended them. Amounts in credits. */
import { Account, Ledger, Recovery } from "@millrace/core"
import type { Deadlines } from "@millrace/event-sourcing"
import type { OperatorRoutes } from "@millrace/http"
import { Clock, Effect } from "effect"
import * as Holds from "../administration/Holds.ts"

/** The most holds that are shown, those that have waited longest. */
const LIMIT = 100

/** What recovery knows of a hold: the payload of its deadline. */
interface Known {
  readonly accountId: string
  readonly operation: string
}

export const make: Effect.Effect<ReturnType<OperatorRoutes.View["read"]>, never, Recovery | Ledger> = Effect.gen(function* () {
  const recovery = yield* Recovery
  const ledger = yield* Ledger

  const shown = Effect.fnUntraced(function* ({ dueAt, key, payload }: Deadlines.Deadline, now: number) {
    const { accountId, operation }: Known = JSON.parse(payload)
    const hold = yield* ledger.read(accountId).pipe(
      Effect.map(({ state }) => Account.hold(state, key)),
      Effect.catchTag("StreamRefused", () => Effect.undefined)
    )
    // A call of a trial holds a slot, and no credits
    const of = hold && Holds.shownOf(accountId, key, hold, now)
    return {
      reservation_id: key,
      account_id: accountId,
      operation,
      request_id: of?.request ?? null,
      amount: of?.amount ?? null,
      reserved_at: of?.reservedAt.toISOString() ?? null,
      due_at: new Date(dueAt).toISOString(),
      /** Seconds since it was due. */
      overdue_for: Math.floor((now - dueAt) / 1_000)
    }
  })

  return Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const overdue = yield* recovery.overdue(now)
    return { total: overdue.length, holds: yield* Effect.forEach(overdue.slice(0, LIMIT), (deadline) => shown(deadline, now)) }
  })
})
