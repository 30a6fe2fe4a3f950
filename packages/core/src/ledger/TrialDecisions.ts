/** Decisions on the free trial of an account that is not verified. */

import { HashMap } from "effect"
import type { EventOf } from "./AccountEvent.ts"
import { AccountSuspended, AlreadyEnded, ReservationNotFound, TrialUsedUp } from "./Refusals.ts"
import { unusable } from "./StatusDecisions.ts"
import { deciding, NOTHING } from "./Transaction.ts"
import * as Trial from "./Trial.ts"

/** Reserves one of ten slots. Repeating the reservation decides nothing. */
export const reserveTrial = ({ lifetime, ...call }: Omit<EventOf<"TrialReserved">, "_tag" | "expiresAt"> & { readonly lifetime: number }) =>
  deciding((transaction, account) => {
    const { reservationId } = call
    const { trial } = transaction.account
    if (HashMap.has(trial.open, reservationId)) return NOTHING
    const past = Trial.outcome(trial, reservationId)
    if (past !== undefined) return past === "succeeded" ? NOTHING : new AlreadyEnded({ reservationId, outcome: past })
    const refusal = unusable(account) ?? (account.status === "suspended" ? new AccountSuspended() : undefined)
    if (refusal !== undefined) return refusal
    if (account.verified || Trial.isUsedUp(trial)) return new TrialUsedUp({ slots: Trial.TRIAL_SLOTS })
    transaction.add({ _tag: "TrialReserved", ...call, expiresAt: transaction.now + lifetime })
    return undefined
  })

const endTrial = (_tag: "TrialUsed" | "TrialReleased", wanted: "succeeded" | "refunded") => (reservationId: string) =>
  deciding((transaction) => {
    const { trial } = transaction.account
    if (!HashMap.has(trial.open, reservationId)) {
      const past = Trial.outcome(trial, reservationId)
      if (past === undefined) return new ReservationNotFound({ reservationId })
      return past === wanted ? NOTHING : new AlreadyEnded({ reservationId, outcome: past })
    }
    transaction.add({ _tag, reservationId })
    return undefined
  })

/** Uses a slot up. Using it again decides nothing. */
export const useTrial = endTrial("TrialUsed", "succeeded")
/** Releases a slot. Releasing it again decides nothing. */
export const releaseTrial = endTrial("TrialReleased", "refunded")
