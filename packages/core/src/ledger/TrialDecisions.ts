/** Decisions on the free trial of an account that is not verified. */

import type { Decision } from "@millrace/event-sourcing"
import { HashMap, Result } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import type { Account } from "./Account.ts"
import type { AccountEvent } from "./AccountEvent.ts"
import { type AccountClosed, type AccountNotFound, AccountSuspended, AlreadyEnded, ReservationNotFound, TrialUsedUp } from "./Refusals.ts"
import { NOTHING, unusable } from "./StatusDecisions.ts"
import { Transaction } from "./Transaction.ts"
import * as Trial from "./Trial.ts"

/** Reserves one of ten slots. Repeating the reservation decides nothing. */
export const reserveTrial =
  (call: { readonly reservationId: string; readonly requestId: string; readonly operation: string; readonly lifetime: number }) =>
  (
    account: Account,
    now: Timestamp
  ): Decision<AccountEvent, AccountNotFound | AccountClosed | AccountSuspended | TrialUsedUp | AlreadyEnded> => {
    const { reservationId, requestId, operation, lifetime } = call
    const transaction = new Transaction(account, now)
    const { trial } = transaction.account
    if (HashMap.has(trial.open, reservationId)) return NOTHING
    const past = Trial.outcome(trial, reservationId)
    if (past !== undefined) return past === "succeeded" ? NOTHING : Result.fail(new AlreadyEnded({ reservationId, outcome: past }))
    const refusal = unusable(account) ?? (account.status === "suspended" ? new AccountSuspended() : undefined)
    if (refusal !== undefined) return Result.fail(refusal)
    if (account.verified || Trial.isUsedUp(trial)) return Result.fail(new TrialUsedUp({ slots: Trial.TRIAL_SLOTS }))
    transaction.add({ _tag: "TrialReserved", reservationId, requestId, operation, expiresAt: now + lifetime })
    return transaction.commit()
  }

const endTrial =
  (tag: "TrialUsed" | "TrialReleased", wanted: "succeeded" | "refunded") =>
  (reservationId: string) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReservationNotFound | AlreadyEnded> => {
    const transaction = new Transaction(account, now)
    const { trial } = transaction.account
    if (!HashMap.has(trial.open, reservationId)) {
      const past = Trial.outcome(trial, reservationId)
      if (past === undefined) return Result.fail(new ReservationNotFound({ reservationId }))
      return past === wanted ? NOTHING : Result.fail(new AlreadyEnded({ reservationId, outcome: past }))
    }
    transaction.add({ _tag: tag, reservationId })
    return transaction.commit()
  }

/** Uses a slot up. Using it again decides nothing. */
export const useTrial = endTrial("TrialUsed", "succeeded")
/** Releases a slot. Releasing it again decides nothing. */
export const releaseTrial = endTrial("TrialReleased", "refunded")
