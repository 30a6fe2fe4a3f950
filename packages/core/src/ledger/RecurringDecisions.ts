/** Decisions on recurring grants: they are started and stopped. What they grant is due like an expiry, and is written by any decision. */

import type { EventOf } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"
import * as RecurringGrants from "./RecurringGrants.ts"
import { BalanceTooLarge, RecurringGrantNotFound, RecurringSourcePaid, TooManyRecurringGrants } from "./Refusals.ts"
import { unusable } from "./StatusDecisions.ts"
import { deciding, MAX_BALANCE, NOTHING } from "./Transaction.ts"

type Started = EventOf<"RecurringGrantStarted">

/** A new recurring grant, under an id that no grant had before. By default it never ends, and each lot expires with the next. */
export type RecurringGrant = Pick<Started, "grantId" | "amount" | "source" | "every"> &
  Partial<Pick<Started, "priority" | "until" | "expires">>

/**
 * Starts a recurring grant, whose first period begins now, and grants its first lot. Starting it again decides nothing, while it goes on or
 * one of its lots has credits left or held. Nor does a grant of zero credits, or one that would end before it begins.
 */
export const startRecurringGrant = ({ grantId, source, priority = Lots.DEFAULT_PRIORITY[source], until = null, ...rest }: RecurringGrant) =>
  deciding((transaction, account) => {
    const refusal = unusable(account)
    if (refusal !== undefined) return refusal
    if (Lots.isPaid(source)) return new RecurringSourcePaid({ source })
    const { now } = transaction
    const { purse, recurring } = transaction.account
    if (RecurringGrants.find(recurring, grantId) !== undefined || RecurringGrants.hasLot(grantId, purse.lots)) return NOTHING
    if (rest.amount === 0 || (until !== null && until <= now)) return NOTHING
    if (recurring.length >= RecurringGrants.MAX_RECURRING_GRANTS)
      return new TooManyRecurringGrants({ limit: RecurringGrants.MAX_RECURRING_GRANTS })
    if (Lots.left(purse.lots) + Lots.held(purse.lots) + rest.amount > MAX_BALANCE) return new BalanceTooLarge({ limit: MAX_BALANCE })
    transaction.startRecurring({ _tag: "RecurringGrantStarted", expires: "next", ...rest, grantId, source, priority, anchor: now, until })
    return undefined
  })

/** Stops a recurring grant: no other period is granted. The lots that were granted stay. */
export const stopRecurringGrant = (grantId: string) =>
  deciding((transaction, account) => {
    if (account.status === "absent") return unusable(account)
    // Undefined after its last period, too
    if (RecurringGrants.find(transaction.account.recurring, grantId) === undefined) return new RecurringGrantNotFound({ grantId })
    transaction.add({ _tag: "RecurringGrantStopped", grantId })
    return undefined
  })
