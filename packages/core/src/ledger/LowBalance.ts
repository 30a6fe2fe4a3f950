/**
 * The threshold of an account's balance. When its balance falls below the threshold, the decision that took the credits also writes
 * `BalanceFellBelow`, once. It is written again only after credits came in that lifted the balance to the threshold or above.
 *
 * The balance counts held credits, because a hold that is released must not have told anything: credits are gone only when they are charged,
 * expired or taken back. It does not count held credits that a clawback has claimed, because no end of their hold returns them. So
 * neither a reservation nor a release changes it.
 */
import { Schema } from "effect"
import * as Credits from "../Credits.ts"
import type { AccountEvent } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"

export const LowBalance = Schema.Struct({
  /** In thousandths; null for none. */
  threshold: Schema.NullOr(Credits.Credits),
  /** Whether it was told that the balance is below the threshold, and the balance has not been lifted since. */
  told: Schema.Boolean
})
export type LowBalance = typeof LowBalance.Type

export const initial: LowBalance = { threshold: null, told: false }

/** The threshold and the balance, where `BalanceFellBelow` is missing; undefined where it is not. */
export const untold = (
  { threshold, told }: LowBalance,
  lots: ReadonlyArray<Lots.Lot>
): { readonly threshold: Credits.Credits; readonly balance: Credits.Credits } | undefined => {
  if (threshold === null || told) return undefined
  const balance = Lots.owned(lots)
  return balance < threshold ? { threshold, balance } : undefined
}

/** The state after an event that left the account these lots. */
export const evolve = (state: LowBalance, event: AccountEvent, lots: ReadonlyArray<Lots.Lot>): LowBalance => {
  if (event._tag === "BalanceThresholdSet") return { threshold: event.threshold, told: false }
  if (event._tag === "BalanceFellBelow") return { ...state, told: true }
  return state.told && state.threshold !== null && Lots.owned(lots) >= state.threshold ? { ...state, told: false } : state
}
