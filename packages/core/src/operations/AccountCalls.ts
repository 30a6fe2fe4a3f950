/** An operation that lists the calls of an account, each with what was held, what it cost, and why. */
import { Effect, Schema } from "effect"
import { CallHistory, OUTCOMES, type PastCall } from "../billing/CallHistory.ts"
import * as Credits from "../Credits.ts"
import { RefundReason } from "../ledger/AccountEvent.ts"
import { Timestamp } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { UpstreamUnavailable } from "../work/OperationError.ts"

const Call = Schema.Struct({
  reservation_id: Schema.String,
  request_id: Schema.String,
  operation: Schema.String,
  /** `released`: it failed or was cancelled, and cost nothing. `refunded`: it was charged, and credits went back later. */
  outcome: Schema.Literals(OUTCOMES),
  /** Why credits went back; null where none did. */
  reason: Schema.NullOr(RefundReason),
  /** Units: those held while it runs, then those charged. */
  quantity: Schema.Int,
  /** The version of the price plan that it was priced by; null for a trial call. */
  price_version: Schema.NullOr(Schema.Int),
  held: Credits.CreditsFromDecimal,
  /** Null while it runs. */
  charged: Schema.NullOr(Credits.CreditsFromDecimal),
  refunded: Credits.CreditsFromDecimal,
  /** The job that it made; null for none. */
  job_id: Schema.NullOr(Schema.String),
  /** The lots that paid for it, or are held for it. */
  lots: Schema.Array(Schema.Struct({ lot_id: Schema.String, amount: Credits.CreditsFromDecimal })),
  started_at: Timestamp,
  ended_at: Schema.NullOr(Timestamp),
  refunded_at: Schema.NullOr(Timestamp)
})

export const AccountCalls = Schema.Struct({
  /** The newest first. */
  calls: Schema.Array(Call),
  /** `before` of the next page; null after the last. A page may have fewer calls than its limit, and a next one. */
  next: Schema.NullOr(Schema.String)
})

const called = (call: PastCall): typeof Call.Type => ({
  reservation_id: call.reservationId,
  request_id: call.requestId,
  operation: call.operation,
  outcome: call.outcome,
  reason: call.reason,
  quantity: call.quantity,
  price_version: call.priceVersion,
  held: call.held,
  charged: call.charged,
  refunded: call.refunded,
  job_id: call.jobId,
  lots: call.lots.map(({ amount, lotId }) => ({ lot_id: lotId, amount })),
  started_at: call.startedAt,
  ended_at: call.endedAt,
  refunded_at: call.refundedAt
})

const DEFAULT_LIMIT = 25

export const list = Operation.make("account.calls", {
  summary: "List the priced calls of the account, newest first, with what each cost and why",
  description:
    "Calls that cost nothing by their price are not listed. Pages are read from the newest call back: send `next` of a page as `before` of the following one.",
  price: 0,
  route: {
    method: "GET",
    path: "/account/calls",
    query: {
      limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
      before: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^(?:0|[1-9][0-9]{0,14})$/u))),
      operation: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100))),
      outcome: Schema.optionalKey(Schema.Literals(OUTCOMES)),
      kind: Schema.optionalKey(Schema.Literals(["call", "job"]))
    }
  },
  success: AccountCalls,
  local: true,
  run: Effect.fnUntraced(function* ({ before, limit = DEFAULT_LIMIT, ...wanted }, { accountId }) {
    const history = yield* CallHistory
    const query = { ...wanted, limit, ...(before === undefined ? {} : { before: Number(before) }) }
    const { calls, next } = yield* Effect.mapError(
      history.read(accountId, query),
      ({ _tag }) => new UpstreamUnavailable({ upstream: "ledger", reason: _tag })
    )
    return { data: { calls: calls.map(called), next: next === null ? null : String(next) } }
  }),
  example: {
    input: { limit: 1, operation: "bin.lookup" },
    data: {
      calls: [
        {
          reservation_id: "res_01JDA1B2C3D4E5F6G7H8J9K0M1",
          request_id: "0192f3a0-6c1e-7b2a-9d4e-3f5a7c9b1d2e",
          operation: "bin.lookup",
          outcome: "charged",
          reason: null,
          quantity: 1,
          price_version: 1,
          held: Credits.of(500),
          charged: Credits.of(500),
          refunded: Credits.zero,
          job_id: null,
          lots: [{ lot_id: "lot_01JAGVQG6ZJ5YH8W3N0T4RQX2K", amount: Credits.of(500) }],
          started_at: Date.UTC(2026, 10, 21, 12),
          ended_at: Date.UTC(2026, 10, 21, 12, 0, 0, 12),
          refunded_at: null
        }
      ],
      next: "812"
    }
  }
})
