/**
 * From every typed failure to what the caller is told: a code, a message, headers. Total, so a new failure does not compile until it
 * has an answer here. What an upstream or a store said about itself is never shown.
 */

import { type Charge, Credits, type OperationError, type RateLimited, type TooManyFailures, type Unauthorized } from "@millrace/core"
import { Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { type ErrorBody, type ErrorCode, termsOf } from "./ErrorCode.ts"
import { rateLimitHeaders } from "./RateLimitHeaders.ts"

// what a request may be refused for before it reaches an operation

/** The key is good, but not for this. */
export class InsufficientScope extends Schema.TaggedError<InsufficientScope>()("InsufficientScope", { scope: Schema.String }) {}
export class MethodNotAllowed extends Schema.TaggedError<MethodNotAllowed>()("MethodNotAllowed", { allow: Schema.Array(Schema.String) }) {}
export class RouteNotFound extends Schema.TaggedError<RouteNotFound>()("RouteNotFound", {}) {}
/** `limit` in bytes. */
export class PayloadTooLarge extends Schema.TaggedError<PayloadTooLarge>()("PayloadTooLarge", { limit: Schema.Int }) {}
export class UnsupportedMediaType extends Schema.TaggedError<UnsupportedMediaType>()("UnsupportedMediaType", {}) {}
export class MalformedJson extends Schema.TaggedError<MalformedJson>()("MalformedJson", { reason: Schema.String }) {}
/** The body did not come to its end. */
export class BodyUnreadable extends Schema.TaggedError<BodyUnreadable>()("BodyUnreadable", {}) {}
/** Fields, or headers, and what is wrong with each. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  issues: Schema.Array(Schema.Struct({ field: Schema.String, message: Schema.String }))
}) {}
/** There is no such part of the file, which has `size` bytes. */
export class RangeNotSatisfiable extends Schema.TaggedError<RangeNotSatisfiable>()("RangeNotSatisfiable", { size: Schema.Int }) {}
/** A bug: of ours, or of an operation. */
export class Defect extends Schema.TaggedError<Defect>()("Defect", {}) {}
/** This process takes no new calls, or ended this one. */
export class ShuttingDown extends Schema.TaggedError<ShuttingDown>()("ShuttingDown", {}) {}

export type Refusal =
  | InsufficientScope
  | MethodNotAllowed
  | RouteNotFound
  | PayloadTooLarge
  | UnsupportedMediaType
  | MalformedJson
  | BodyUnreadable
  | InvalidRequest
  | RangeNotSatisfiable
  | Defect
  | ShuttingDown

export type Failure = Refusal | Unauthorized | RateLimited | TooManyFailures | OperationError | Charge.ChargeError

/** What the caller is told. */
export interface Problem {
  readonly code: ErrorCode
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Issues told of one request; what comes after them is counted. */
const MAX_ISSUES = 20

const credits = (amount: Credits.Credits): string => `${Credits.toDecimal(amount)} ${amount === 1000 ? "credit" : "credits"}`

const RETRY_WITH_KEY =
  "If you sent an Idempotency-Key, send the same request again to learn what became of it; without one it costs nothing."

const UNREACHABLE: Problem = { code: "store_unavailable", message: "The service cannot reach its store. Nothing was charged." }

export const problemOf = (failure: Failure): Problem => {
  switch (failure._tag) {
    // Closed and missing accounts have no keys: the same as none
    case "Unauthorized":
    case "AccountNotFound":
    case "AccountClosed":
      return { code: "unauthorized", message: "Missing or invalid API key.", headers: { "www-authenticate": "Bearer" } }
    case "InsufficientScope":
      return {
        code: "insufficient_scope",
        message: `This API key lacks the scope ${failure.scope}.`,
        // RFC 6750, section 3.1
        headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${failure.scope}"` }
      }
    case "TooManyFailures":
      return {
        code: "rate_limited",
        message: "Too many requests with a missing or invalid API key.",
        headers: { "retry-after": String(Math.max(1, Math.ceil(failure.retryAfter / 1000))) }
      }
    case "RateLimited": {
      const { limit, window, resetAfter } = failure
      return {
        code: "rate_limited",
        message: `More than ${limit} requests in ${window} seconds.`,
        headers: { ...rateLimitHeaders({ limit, window, resetAfter, remaining: 0 }), "retry-after": String(Math.max(1, resetAfter)) }
      }
    }

    case "InsufficientCredits": {
      const { required, available, shortfall } = failure
      return {
        code: "insufficient_credits",
        message: `This call needs ${credits(required)}; ${credits(available)} available, ${credits(shortfall)} short.`,
        headers: {
          "x-credits-required": String(Credits.toDecimal(required)),
          "x-credits-available": String(Credits.toDecimal(available)),
          "x-credits-shortfall": String(Credits.toDecimal(shortfall))
        }
      }
    }
    case "AccountInDebt":
      return { code: "account_in_debt", message: `The account owes ${credits(failure.debt)}; nothing priced runs until that is repaid.` }
    case "AccountSuspended":
      return { code: "account_suspended", message: "The account is suspended; nothing priced runs until it is reinstated." }
    case "CostExceedsLimit":
      return {
        code: "cost_exceeds_limit",
        message: `This call would cost ${credits(failure.cost)}, more than the ${credits(failure.limit)} that X-Max-Credits allows. Nothing was charged.`
      }

    case "RouteNotFound":
      return { code: "route_not_found", message: "There is nothing at this path." }
    case "NotFound":
    // A kept reply whose subject was erased since
    case "SubjectDestroyed":
      return { code: "not_found", message: "There is no such resource, or it is not yours." }
    case "MethodNotAllowed":
      return {
        code: "method_not_allowed",
        message: `This path takes ${failure.allow.join(", ")}.`,
        headers: { allow: failure.allow.join(", ") }
      }
    case "PayloadTooLarge":
      return { code: "payload_too_large", message: `The request body is larger than ${failure.limit} bytes.` }
    case "UnsupportedMediaType":
      return { code: "unsupported_media_type", message: "The request body must be JSON in UTF-8, with the content type application/json." }
    case "MalformedJson":
      return { code: "malformed_json", message: `The request body is not valid JSON: ${failure.reason}.` }
    case "BodyUnreadable":
      return { code: "bad_request", message: "The request body ended before its time." }
    case "InvalidRequest": {
      const { issues } = failure
      const told = issues.slice(0, MAX_ISSUES).map(({ field, message }) => `${field}: ${message}`)
      if (issues.length > MAX_ISSUES) told.push(`and ${issues.length - MAX_ISSUES} more`)
      return { code: "invalid_request", message: told.join("; ") }
    }
    case "InvalidInput":
      return { code: "invalid_request", message: `${failure.field}: ${failure.message}` }

    case "RangeNotSatisfiable":
      return {
        code: "range_not_satisfiable",
        message: `The file has ${failure.size} bytes.`,
        headers: { "content-range": `bytes */${failure.size}` }
      }
    case "TooManyJobs": {
      const { limit, retryAfter, scope } = failure
      const headers = { "retry-after": String(retryAfter) }
      return scope === "account"
        ? { code: "too_many_jobs", message: `${limit} jobs of this account wait or run already. Nothing was charged.`, headers }
        : { code: "queue_full", message: "Too many jobs wait at this service. Nothing was charged.", headers }
    }

    case "InFlight":
      return { code: "idempotency_key_in_use", message: "A call with this Idempotency-Key is still running." }
    case "KeyReused":
      return { code: "idempotency_key_reused", message: "This Idempotency-Key was used for another request." }
    case "ReplyUnavailable":
      return { code: "reply_unavailable", message: "The reply to this Idempotency-Key was not kept. The call does not run again." }

    case "UpstreamUnavailable":
      return { code: "upstream_unavailable", message: "The service behind this operation is unavailable. Nothing was charged." }
    case "UpstreamNotConfigured":
      return { code: "upstream_not_configured", message: "This operation is not set up at this host. Nothing was charged." }
    case "NotPriced":
      return { code: "operation_not_priced", message: "This operation has no price yet, so it cannot be called." }
    case "StreamRefused":
    case "Tampered":
      return { code: "account_unavailable", message: "The account cannot be read at this host. Nothing was charged." }
    case "Busy":
      return { code: "busy", message: "Too many calls wait for this account. Nothing was charged." }
    case "StoreUnavailable":
      return failure.why === "clock"
        ? { code: "store_unavailable", message: "The clock of this server is wrong, so it writes nothing. Nothing was charged." }
        : UNREACHABLE
    case "StateUnavailable":
      return UNREACHABLE
    case "AppendInDoubt":
    case "OutcomeUnknown":
      return { code: "outcome_unknown", message: `The store did not answer in time. ${RETRY_WITH_KEY}` }
    case "ResultWithheld":
      return { code: "result_withheld", message: "The call took longer than its credits were held for. Nothing was charged." }
    case "ShuttingDown":
      return { code: "shutting_down", message: "This server is shutting down. Nothing was charged." }
    case "OperationFailed":
      return {
        code: "operation_failed",
        message: `The operation ${failure.operation} failed because of a bug in it. Nothing was charged.`
      }
    // A batch that no store takes is of our own making
    case "AppendTooLarge":
    case "Defect":
      return { code: "internal_error", message: "Something went wrong on our side. Nothing was charged." }
  }
}

/** The error object with its status and headers. */
export const responseOf = (problem: Problem, requestId: string): HttpServerResponse.HttpServerResponse => {
  const { status, retry, after } = termsOf(problem.code)
  const body: ErrorBody = { error: { code: problem.code, message: problem.message, request_id: requestId } }
  return HttpServerResponse.text(JSON.stringify(body), {
    status,
    contentType: "application/json",
    headers: {
      "cache-control": "private, no-store",
      "x-should-retry": String(retry),
      ...(after === undefined ? {} : { "retry-after": String(after) }),
      ...problem.headers
    }
  })
}
