/**
 * Every `error.code` there is, in one place: its status, whether the same call is worth sending again, and when. Codes never change
 * their meaning and never leave; clients branch on them.
 */
import { Schema, Struct } from "effect"
import { HttpApiSchema } from "effect/http-api"

interface Terms {
  readonly status: 400 | 401 | 402 | 403 | 404 | 405 | 408 | 409 | 413 | 415 | 422 | 429 | 431 | 500 | 503
  /** Whether the same call may succeed later, and is safe to send again: `X-Should-Retry`. */
  readonly retry: boolean
  /** Seconds to wait at the least: `Retry-After`, unless the error itself knows better. */
  readonly after?: number
}

const TERMS = {
  // who calls, and what they have
  unauthorized: { status: 401, retry: false },
  insufficient_scope: { status: 403, retry: false },
  insufficient_credits: { status: 402, retry: false },
  account_in_debt: { status: 402, retry: false },
  account_suspended: { status: 402, retry: false },
  rate_limited: { status: 429, retry: true, after: 1 },

  // what is asked
  route_not_found: { status: 404, retry: false },
  not_found: { status: 404, retry: false },
  method_not_allowed: { status: 405, retry: false },
  payload_too_large: { status: 413, retry: false },
  unsupported_media_type: { status: 415, retry: false },
  malformed_json: { status: 422, retry: false },
  invalid_request: { status: 422, retry: false },
  cost_exceeds_limit: { status: 422, retry: false },

  // idempotency
  idempotency_key_in_use: { status: 409, retry: true, after: 1 },
  idempotency_key_reused: { status: 422, retry: false },
  reply_unavailable: { status: 409, retry: false },

  // what is our fault, or our upstreams': always uncharged
  internal_error: { status: 500, retry: false },
  upstream_unavailable: { status: 503, retry: true, after: 5 },
  upstream_not_configured: { status: 503, retry: false, after: 3600 },
  operation_not_priced: { status: 503, retry: false, after: 3600 },
  account_unavailable: { status: 503, retry: false, after: 60 },
  store_unavailable: { status: 503, retry: true, after: 2 },
  busy: { status: 503, retry: true, after: 1 },
  outcome_unknown: { status: 503, retry: true, after: 2 },
  result_withheld: { status: 503, retry: true, after: 1 },
  shutting_down: { status: 503, retry: true, after: 1 },

  // what is no request at all
  bad_request: { status: 400, retry: false },
  request_timeout: { status: 408, retry: true },
  headers_too_large: { status: 431, retry: false }
} as const satisfies Record<string, Terms>

export type ErrorCode = keyof typeof TERMS

export const ERROR_CODES: ReadonlyArray<ErrorCode> = Struct.keys(TERMS)

export const termsOf = (code: ErrorCode): Terms => TERMS[code]

/** The body of every error. */
const body = (codes: ReadonlyArray<ErrorCode>) =>
  Schema.Struct({
    error: Schema.Struct({
      /** One of a fixed set: branch on this, not on the message. */
      code: Schema.Literals(codes),
      /** For people; it may change. */
      message: Schema.String,
      /** Equal to the header `X-Request-Id`. */
      request_id: Schema.String
    })
  })

export const ErrorBody = body(ERROR_CODES)
export type ErrorBody = typeof ErrorBody.Type

const STATUSES = [401, 402, 403, 404, 409, 413, 415, 422, 429, 500, 503] as const

/** The errors of an operation, one schema a status, for the contract. */
export const errorSchemas: ReadonlyArray<typeof ErrorBody> = STATUSES.map((status) =>
  body(ERROR_CODES.filter((code) => TERMS[code].status === status))
    .annotate({ identifier: `Error${status}` })
    .pipe(HttpApiSchema.status(status))
)
