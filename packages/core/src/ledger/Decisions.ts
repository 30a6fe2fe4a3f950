/**
 * The decisions on accounts: one pure function for each command. A decision first expires what is due, and ends with automatic consequences
 * such as debt repayment: see `Transaction.ts`. A refused decision writes nothing.
 */
export { TRIAL_SLOTS } from "./Account.ts"
export * from "./CallDecisions.ts"
export * from "./LotDecisions.ts"
export * from "./NoticeDecisions.ts"
export * from "./RecurringDecisions.ts"
export * from "./Refusals.ts"
export { abandon, applyDue, close, open, reinstate, suspend, verify } from "./StatusDecisions.ts"
export { ADJUSTMENT_LIFETIME, asOf, expireDue, MAX_BALANCE } from "./Transaction.ts"
export { releaseTrial, reserveTrial, useTrial } from "./TrialDecisions.ts"
