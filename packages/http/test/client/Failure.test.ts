/** The class of each error code. A new code does not compile until it has its class here. */
import { Struct } from "effect"
import { expect, test } from "vitest"
import type { Failure } from "../../src/client/Failure.ts"
import { ofTerms } from "../../src/client/Failure.ts"
import { type ErrorCode, termsOf } from "../../src/ErrorCode.ts"

const CLASSES: Readonly<Record<ErrorCode, Failure["_tag"]>> = {
  unauthorized: "Unauthorized",
  insufficient_scope: "Forbidden",
  cross_site_request: "Forbidden",
  sign_in_refused: "Forbidden",
  address_not_verified: "Forbidden",
  insufficient_credits: "InsufficientCredits",
  account_in_debt: "AccountBlocked",
  account_suspended: "AccountBlocked",
  trial_used_up: "AccountBlocked",
  trial_excludes_jobs: "AccountBlocked",
  rate_limited: "RateLimited",
  route_not_found: "NotFound",
  not_found: "NotFound",
  method_not_allowed: "InvalidRequest",
  payload_too_large: "InvalidRequest",
  unsupported_media_type: "InvalidRequest",
  malformed_json: "InvalidRequest",
  invalid_request: "InvalidRequest",
  cost_exceeds_limit: "CostExceedsLimit",
  range_not_satisfiable: "InvalidRequest",
  download_private: "Conflict",
  download_members_only: "Conflict",
  download_age_restricted: "Conflict",
  download_region_blocked: "Conflict",
  download_live: "Conflict",
  download_upcoming: "Conflict",
  download_unavailable: "Unavailable",
  too_many_jobs: "RateLimited",
  too_many_payments: "RateLimited",
  too_many_submissions: "RateLimited",
  queue_full: "Unavailable",
  idempotency_key_in_use: "Conflict",
  idempotency_key_reused: "Conflict",
  reply_unavailable: "Conflict",
  internal_error: "Unavailable",
  operation_failed: "Unavailable",
  upstream_unavailable: "Unavailable",
  upstream_invalid_reply: "Unavailable",
  upstream_not_configured: "Unavailable",
  operation_not_priced: "Unavailable",
  account_unavailable: "Unavailable",
  store_unavailable: "Unavailable",
  busy: "Unavailable",
  outcome_unknown: "Unavailable",
  result_withheld: "Unavailable",
  shutting_down: "Unavailable",
  bad_request: "InvalidRequest",
  request_timeout: "Unavailable",
  headers_too_large: "InvalidRequest"
}

const failureOf = (code: string, status: number) =>
  ofTerms({ code, status, message: "", requestId: "", credits: undefined, idempotencyKey: "", retryable: false, retryAfter: undefined })

test.each(Struct.keys(CLASSES))("the error code %s has its class", (code) => {
  const failure = failureOf(code, termsOf(code).status)
  expect([failure._tag, failure.name, failure.constructor.name]).toEqual([CLASSES[code], CLASSES[code], CLASSES[code]])
})

test.each([
  ["gone_fishing", 404, "NotFound"],
  ["constructor", 422, "InvalidRequest"],
  ["out_of_paper", 507, "Unavailable"]
])("the unknown code %s is classified by its status %i", (code, status, tag) => {
  expect(failureOf(code, status)._tag).toBe(tag)
})
