/** Every `error.code`, with its status and its terms of retry. A code never changes its meaning and is never removed. */
import { Schema, Struct } from "effect"
import { HttpApiSchema } from "effect/http-api"

const STATUSES = [400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 416, 422, 429, 431, 500, 503] as const
export type ErrorStatus = (typeof STATUSES)[number]

interface Terms {
  readonly status: ErrorStatus
  /** What the code means, for the documentation. */
  readonly means: string
  /** `X-Should-Retry`: whether the same call may succeed later and is safe to send again. */
  readonly retry: boolean
  /** `Retry-After` in seconds, unless the failure itself has one. */
  readonly after: number | undefined
}

/** The same call may succeed later. */
const transient = (status: ErrorStatus, means: string, after?: number): Terms => ({ status, means, retry: true, after })

/** The same call fails until something else changes. */
const permanent = (status: ErrorStatus, means: string, after?: number): Terms => ({ status, means, retry: false, after })

const TERMS = {
  // the caller and its account
  unauthorized: permanent(401, "The API key is missing, malformed, unknown, expired or revoked; or the session has ended."),
  insufficient_scope: permanent(403, "The API key is good, but not for this operation."),
  cross_site_request: permanent(403, "The session's cookie came without X-CSRF-Token, or from a page of another site."),
  sign_in_refused: permanent(403, "The sign-in link or the passkey is unknown, used, expired, or of another browser."),
  address_not_verified: permanent(403, "The account has no verified e-mail address, which the operation needs. Verify it first."),
  insufficient_credits: permanent(402, "The account has less than the call costs; the headers say how much is short."),
  account_in_debt: permanent(402, "The account is in debt, and nothing priced runs until that is repaid."),
  trial_used_up: permanent(402, "All calls of the account's trial are used. Verify its address, or buy credits."),
  trial_excludes_jobs: permanent(402, "The trial of an account has no jobs. Verify its address, or buy credits."),
  account_suspended: permanent(402, "The account is suspended, and nothing priced runs until it is reinstated."),
  rate_limited: transient(429, "Too many requests; wait for as long as Retry-After says.", 1),

  // the request
  route_not_found: permanent(404, "There is nothing at this path."),
  not_found: permanent(404, "The resource does not exist, is gone, or belongs to another account."),
  method_not_allowed: permanent(405, "The path takes other methods, which the header Allow names."),
  payload_too_large: permanent(413, "The request body is too large."),
  unsupported_media_type: permanent(415, "The request body is not application/json in UTF-8."),
  malformed_json: permanent(422, "The request body is not valid JSON."),
  invalid_request: permanent(422, "A field or header is missing, unknown or out of bounds; the message names each."),
  cost_exceeds_limit: permanent(422, "The call would cost more than X-Max-Credits allows."),
  range_not_satisfiable: permanent(416, "The range begins past the end of the file."),

  // downloads of videos
  download_private: permanent(409, "The video is private, so it cannot be downloaded."),
  download_members_only: permanent(409, "The video is for paying members only, so it cannot be downloaded."),
  download_age_restricted: permanent(409, "The video needs a proof of age, so it cannot be downloaded."),
  download_region_blocked: permanent(409, "The video is blocked where this service runs."),
  download_live: permanent(409, "The video is live: it can be downloaded when it has ended.", 3600),
  download_upcoming: permanent(409, "The video is not out yet, or is still processed.", 3600),
  download_unavailable: transient(503, "The platform gives no download of this video now. Nothing was charged.", 60),

  // jobs
  too_many_jobs: transient(429, "Too many jobs of this account wait or run already.", 5),
  queue_full: transient(503, "Too many jobs wait at this service. Nothing was charged.", 5),

  // payments
  too_many_payments: transient(429, "Too many payments of this account are pending.", 60),

  // submissions
  too_many_submissions: transient(429, "The account has submitted as much as it may for now.", 60),

  // idempotency
  idempotency_key_in_use: transient(409, "A call with this Idempotency-Key is still running.", 1),
  idempotency_key_reused: permanent(422, "This Idempotency-Key was used for another request."),
  reply_unavailable: permanent(409, "The call under this Idempotency-Key succeeded, but its reply was not kept. It does not run again."),

  // faults of ours and of upstreams, never charged
  internal_error: permanent(500, "A fault of ours. Nothing was charged."),
  operation_failed: permanent(500, "The operation has a bug: its result breaks its contract. Nothing was charged."),
  upstream_unavailable: transient(503, "The service behind the operation failed. Nothing was charged.", 5),
  upstream_invalid_reply: transient(
    503,
    "The service behind the operation answered with something else than it promises. Nothing was charged.",
    60
  ),
  upstream_not_configured: permanent(503, "The operation is not set up at this host. Nothing was charged.", 3600),
  operation_not_priced: permanent(503, "The operation has no price yet, so it cannot be called.", 3600),
  account_unavailable: permanent(503, "The account cannot be read at this host. Nothing was charged.", 60),
  store_unavailable: transient(503, "The service cannot reach its store. Nothing was charged.", 2),
  busy: transient(503, "Too many calls wait for this account. Nothing was charged.", 1),
  outcome_unknown: transient(
    503,
    "The store did not say in time whether the call was settled. With an Idempotency-Key, the same request tells the outcome; without one it costs nothing.",
    2
  ),
  result_withheld: transient(503, "The call took longer than its hold lasted. Nothing was charged.", 1),
  shutting_down: transient(503, "The server is about to end. Nothing was charged.", 1),

  // malformed requests
  bad_request: permanent(400, "This is no HTTP request, or its body is incomplete."),
  request_timeout: transient(408, "The request did not arrive in time."),
  headers_too_large: permanent(431, "The headers are too large.")
}

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

/** The errors of signing up and in, and of sessions. */
export const sessionErrorSchemas: ReadonlyArray<typeof ErrorBody> = (
  [400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 431, 500, 503] as const
).flatMap((status) => schemas.get(status) ?? [])

/** The errors of calls of providers, which sign instead of having a key. */
export const hookErrorSchemas: ReadonlyArray<typeof ErrorBody> = ([400, 401, 404, 405, 408, 413, 429, 431, 500, 503] as const).flatMap(
  (status) => schemas.get(status) ?? []
)
