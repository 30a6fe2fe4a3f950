/**
 * What may happen to an account next: one pure decision for each command. A decision first expires what is due by now, and ends with what
 * follows of itself: see `Transaction.ts`. A refused decision writes nothing.
 */
export { TRIAL_SLOTS } from "./Account.ts"
export * from "./CallDecisions.ts"
export * from "./LotDecisions.ts"
export * from "./Refusals.ts"
export { applyDue, close, open, reinstate, suspend, verify } from "./StatusDecisions.ts"
export { ADJUSTMENT_LIFETIME, asOf, expireDue } from "./Transaction.ts"
export * from "./TrialDecisions.ts"
