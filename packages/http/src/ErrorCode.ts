/**
 * The table of every `error.code`: its status, and whether and when a client should retry. Clients branch on codes, so a code never
 * changes its meaning and is never removed.
 */
import { Schema, Struct } from "effect"
import { HttpApiSchema } from "effect/http-api"

export type ErrorStatus = 400 | 401 | 402 | 403 | 404 | 405 | 408 | 409 | 413 | 415 | 416 | 422 | 429 | 431 | 500 | 503

interface Terms {
  readonly status: ErrorStatus
  /** What the code means, for the documentation. */
  readonly means: string
  /** `X-Should-Retry`: whether the same call may succeed later and is safe to send again. */
  readonly retry: boolean
  /** `Retry-After` in seconds, unless the failure itself has one. */
  readonly after?: number
}

const TERMS = {
  // the caller and its account
  unauthorized: { status: 401, means: "The API key is missing, malformed, unknown, expired or revoked.", retry: false },
  insufficient_scope: { status: 403, means: "The API key is good, but not for this operation.", retry: false },
  insufficient_credits: {
    status: 402,
    means: "The account has fewer credits than the call costs; the headers say how many are short.",
    retry: false
  },
  account_in_debt: { status: 402, means: "The account owes credits, and nothing priced runs until they are repaid.", retry: false },
  account_suspended: { status: 402, means: "The account is suspended, and nothing priced runs until it is reinstated.", retry: false },
  rate_limited: { status: 429, means: "Too many requests; wait for as long as Retry-After says.", retry: true, after: 1 },

  // the request
  route_not_found: { status: 404, means: "There is nothing at this path.", retry: false },
  not_found: { status: 404, means: "The resource does not exist, is gone, or belongs to another account.", retry: false },
  method_not_allowed: { status: 405, means: "The path takes other methods, which the header Allow names.", retry: false },
  payload_too_large: { status: 413, means: "The request body is too large.", retry: false },
  unsupported_media_type: { status: 415, means: "The request body is not application/json in UTF-8.", retry: false },
  malformed_json: { status: 422, means: "The request body is not valid JSON.", retry: false },
  invalid_request: { status: 422, means: "A field or header is missing, unknown or out of bounds; the message names each.", retry: false },
  cost_exceeds_limit: { status: 422, means: "The call would cost more than X-Max-Credits allows.", retry: false },
  range_not_satisfiable: { status: 416, means: "The range begins past the end of the file.", retry: false },

  // jobs
  too_many_jobs: { status: 429, means: "So many jobs of this account wait or run already.", retry: true, after: 5 },
  queue_full: { status: 503, means: "Too many jobs wait at this service. Nothing was charged.", retry: true, after: 5 },

  // idempotency
  idempotency_key_in_use: { status: 409, means: "A call with this Idempotency-Key is still running.", retry: true, after: 1 },
  idempotency_key_reused: { status: 422, means: "This Idempotency-Key was used for another request.", retry: false },
  reply_unavailable: {
    status: 409,
    means: "The call under this Idempotency-Key succeeded, but its reply was not kept. It does not run again.",
    retry: false
  },

  // faults of ours and of upstreams, never charged
  internal_error: { status: 500, means: "A fault of ours. Nothing was charged.", retry: false },
  operation_failed: { status: 500, means: "The operation has a bug: its result breaks its contract. Nothing was charged.", retry: false },
  upstream_unavailable: { status: 503, means: "The service behind the operation failed. Nothing was charged.", retry: true, after: 5 },
  upstream_not_configured: {
    status: 503,
    means: "The operation is not set up at this host. Nothing was charged.",
    retry: false,
    after: 3600
  },
  operation_not_priced: { status: 503, means: "The operation has no price yet, so it cannot be called.", retry: false, after: 3600 },
  account_unavailable: { status: 503, means: "The account cannot be read at this host. Nothing was charged.", retry: false, after: 60 },
  store_unavailable: { status: 503, means: "The service cannot reach its store. Nothing was charged.", retry: true, after: 2 },
  busy: { status: 503, means: "Too many calls wait for this account. Nothing was charged.", retry: true, after: 1 },
  outcome_unknown: {
    status: 503,
    means:
      "The store did not say in time whether the call was settled. With an Idempotency-Key the same request tells; without one it costs nothing.",
    retry: true,
    after: 2
  },
  result_withheld: {
    status: 503,
    means: "The call took longer than its credits were held for. Nothing was charged.",
    retry: true,
    after: 1
  },
  shutting_down: { status: 503, means: "The server is about to end. Nothing was charged.", retry: true, after: 1 },

  // malformed requests
  bad_request: { status: 400, means: "This is no HTTP request, or its body ended before its time.", retry: false },
  request_timeout: { status: 408, means: "The request did not arrive in time.", retry: true },
  headers_too_large: { status: 431, means: "The headers are too large.", retry: false }
} as const satisfies Record<string, Terms>

export type ErrorCode = keyof typeof TERMS

export const ERROR_CODES: ReadonlyArray<ErrorCode> = Struct.keys(TERMS)

export const termsOf = (code: ErrorCode): Terms => TERMS[code]

/** The codes of a status. */
export const codesOf = (status: number): ReadonlyArray<ErrorCode> => ERROR_CODES.filter((code) => TERMS[code].status === status)

/** The schema of an error's body. */
const body = (codes: ReadonlyArray<ErrorCode>) =>
  Schema.Struct({
    error: Schema.Struct({
      /** Stable: branch on this, not on the message. */
      code: Schema.Literals(codes),
      /** For people; it may change. */
      message: Schema.String,
      /** Equal to the header `X-Request-Id`. */
      request_id: Schema.String
    })
  })

export const ErrorBody = body(ERROR_CODES)
export type ErrorBody = typeof ErrorBody.Type

/** The properties of an operation that decide which errors it can have. */
export interface Refusable {
  readonly isPublic: boolean
  readonly hasBody: boolean
  /** Whether it answers with a file. */
  readonly isFile?: boolean
}

const STATUSES: ReadonlyArray<ErrorStatus> = [400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 416, 422, 429, 431, 500, 503]

/** Whether an operation can have an error: some need an account, a body or a file. */
const isPossible = (status: ErrorStatus, { isPublic, hasBody, isFile = false }: Refusable): boolean =>
  !(isPublic && (status === 401 || status === 402 || status === 403 || status === 409)) &&
  (hasBody || status !== 415) &&
  (isFile || status !== 416)

const schemas = new Map(
  STATUSES.map((status) => [
    status,
    body(codesOf(status))
      .annotate({ identifier: `Error${status}` })
      .pipe(HttpApiSchema.status(status))
  ])
)

/** The error schemas of an operation, one for each status. */
export const errorSchemas = (operation: Refusable): ReadonlyArray<typeof ErrorBody> =>
  STATUSES.filter((status) => isPossible(status, operation)).flatMap((status) => schemas.get(status) ?? [])

/** The errors that a request can have before it reaches a route. */
export const protocolErrorSchemas: ReadonlyArray<typeof ErrorBody> = ([400, 405, 408, 431, 500] as const).flatMap(
  (status) => schemas.get(status) ?? []
)
