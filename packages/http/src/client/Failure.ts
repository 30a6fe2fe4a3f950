/**
 * The failures of a call: a class for each way to handle them. All are `MillraceError`; those that the API answered are `ApiError`, with
 * its code. An abort by the caller is thrown as it is.
 */
import type { ErrorCode } from "../ErrorCode.ts"

export interface Context {
  /** The key of the call. Sent again with this key, the call still runs only once. */
  readonly idempotencyKey: string
  /** Whether the same call may succeed later. */
  readonly retryable: boolean
  /** The milliseconds to wait, if the server named them. */
  readonly retryAfter: number | undefined
}

export abstract class MillraceError extends Error implements Context {
  abstract readonly _tag: string
  readonly idempotencyKey: string
  readonly retryable: boolean
  readonly retryAfter: number | undefined

  constructor(message: string, { idempotencyKey, retryable, retryAfter }: Context, options?: ErrorOptions) {
    super(message, options)
    this.idempotencyKey = idempotencyKey
    this.retryable = retryable
    this.retryAfter = retryAfter
  }

  override get name(): string {
    return this._tag
  }
}

// what the API answers

/** A code that this client knows, or one of a server that is newer. */
export type Code = ErrorCode | (string & {})

export interface Terms extends Context {
  /** Stable: branch on this, or on the class, never on the message. */
  readonly code: Code
  readonly message: string
  readonly status: number
  readonly requestId: string
  /** Credits, as the headers of a 402 say. */
  readonly credits: { readonly required: number; readonly available: number; readonly shortfall: number } | undefined
}

export abstract class ApiError extends MillraceError {
  readonly code: Code
  readonly status: number
  /** What to tell the operator of the server. */
  readonly requestId: string

  constructor(terms: Terms) {
    super(terms.message, terms)
    this.code = terms.code
    this.status = terms.status
    this.requestId = terms.requestId
  }
}

/** The API key is missing, malformed, unknown or revoked. */
export class Unauthorized extends ApiError {
  readonly _tag = "Unauthorized"
}

/** The API key is good, but not for this. */
export class Forbidden extends ApiError {
  readonly _tag = "Forbidden"
}

/** The balance does not cover the call. Amounts in credits; undefined when an intermediary kept the headers. */
export class InsufficientCredits extends ApiError {
  readonly _tag = "InsufficientCredits"
  readonly required: number | undefined
  readonly available: number | undefined
  /** What a top-up has to bring at the least. */
  readonly shortfall: number | undefined

  constructor(terms: Terms) {
    super(terms)
    this.required = terms.credits?.required
    this.available = terms.credits?.available
    this.shortfall = terms.credits?.shortfall
  }
}

/** The account is in debt or suspended: nothing priced runs. */
export class AccountBlocked extends ApiError {
  readonly _tag = "AccountBlocked"
}

/** Too many calls, still after all retries. */
export class RateLimited extends ApiError {
  readonly _tag = "RateLimited"
}

/** There is no such thing, or it is not the caller's. */
export class NotFound extends ApiError {
  readonly _tag = "NotFound"
}

/** The call is wrong, and stays so. The message names each field and its bound. */
export class InvalidRequest extends ApiError {
  readonly _tag = "InvalidRequest"
}

/** The call would cost more than `maxCredits`. */
export class CostExceedsLimit extends ApiError {
  readonly _tag = "CostExceedsLimit"
}

/** The idempotency key belongs to a call that still runs, to another call, or to one whose reply was not kept. */
export class Conflict extends ApiError {
  readonly _tag = "Conflict"
}

/** The service or what it asks is down, busy, not set up, or has failed. */
export class Unavailable extends ApiError {
  readonly _tag = "Unavailable"
}

// what no API answered

/** The connection failed, or the time was over, each time: `cause` says why the last time. The call may have run. */
export class NoAnswer extends MillraceError {
  readonly _tag = "NoAnswer"
}

/** The answer is not one of this API: of a proxy, perhaps, or of another service. */
export class UnexpectedAnswer extends MillraceError {
  readonly _tag = "UnexpectedAnswer"
  readonly status: number

  constructor(message: string, status: number, context: Context, options?: ErrorOptions) {
    super(message, context, options)
    this.status = status
  }
}

export type Failure =
  | Unauthorized
  | Forbidden
  | InsufficientCredits
  | AccountBlocked
  | RateLimited
  | NotFound
  | InvalidRequest
  | CostExceedsLimit
  | Conflict
  | Unavailable
  | NoAnswer
  | UnexpectedAnswer

/** Whether something that was thrown is of this client: then one of a known set, by `_tag`. */
export const isFailure = (error: unknown): error is Failure => error instanceof MillraceError

type Class = new (terms: Terms) => Exclude<Failure, NoAnswer | UnexpectedAnswer>

/** A new code does not compile until it has its class. */
const BY_CODE: Readonly<Record<ErrorCode, Class>> = {
  unauthorized: Unauthorized,
  insufficient_scope: Forbidden,
  insufficient_credits: InsufficientCredits,
  account_in_debt: AccountBlocked,
  account_suspended: AccountBlocked,
  rate_limited: RateLimited,
  route_not_found: NotFound,
  not_found: NotFound,
  method_not_allowed: InvalidRequest,
  payload_too_large: InvalidRequest,
  unsupported_media_type: InvalidRequest,
  malformed_json: InvalidRequest,
  invalid_request: InvalidRequest,
  cost_exceeds_limit: CostExceedsLimit,
  range_not_satisfiable: InvalidRequest,
  too_many_jobs: RateLimited,
  queue_full: Unavailable,
  idempotency_key_in_use: Conflict,
  idempotency_key_reused: Conflict,
  reply_unavailable: Conflict,
  internal_error: Unavailable,
  operation_failed: Unavailable,
  upstream_unavailable: Unavailable,
  upstream_not_configured: Unavailable,
  operation_not_priced: Unavailable,
  account_unavailable: Unavailable,
  store_unavailable: Unavailable,
  busy: Unavailable,
  outcome_unknown: Unavailable,
  result_withheld: Unavailable,
  shutting_down: Unavailable,
  bad_request: InvalidRequest,
  request_timeout: Unavailable,
  headers_too_large: InvalidRequest
}

/** For codes of a server that is newer than this client. */
const BY_STATUS: Readonly<Record<number, Class>> = {
  401: Unauthorized,
  402: AccountBlocked,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  429: RateLimited
}

const isKnown = (code: Code): code is ErrorCode => Object.hasOwn(BY_CODE, code)

export const ofTerms = (terms: Terms): Failure => {
  const { code, status } = terms
  const Class = isKnown(code) ? BY_CODE[code] : (BY_STATUS[status] ?? (status < 500 ? InvalidRequest : Unavailable))
  return new Class(terms)
}
