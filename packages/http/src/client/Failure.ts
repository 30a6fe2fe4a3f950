/**
 * The failures of a call: a class for each way to handle them. All are `MillraceError`; those that the API answered are `ApiError`, with
 * its code. An abort by the caller rejects with its own reason.
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

// failures that the API answered

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
  /** For the operator of the server. */
  readonly requestId: string

  constructor(terms: Terms) {
    super(terms.message, terms)
    this.code = terms.code
    this.status = terms.status
    this.requestId = terms.requestId
  }
}

/** A class of answered failures, named by its tag. */
const answered = <const Tag extends string>(tag: Tag) =>
  class extends ApiError {
    readonly _tag = tag
  }

/** The API key is missing, malformed, unknown or revoked. */
export class Unauthorized extends answered("Unauthorized") {}

/** The API key is valid, but lacks the scope. */
export class Forbidden extends answered("Forbidden") {}

/** The balance does not cover the call. Amounts in credits; undefined if an intermediary removed the headers. */
export class InsufficientCredits extends answered("InsufficientCredits") {
  readonly required: number | undefined
  readonly available: number | undefined
  /** The least that a top-up must bring. */
  readonly shortfall: number | undefined

  constructor(terms: Terms) {
    super(terms)
    this.required = terms.credits?.required
    this.available = terms.credits?.available
    this.shortfall = terms.credits?.shortfall
  }
}

/** The account is in debt or suspended, or its trial does not cover the call: nothing priced runs. */
export class AccountBlocked extends answered("AccountBlocked") {}

/** Too many calls, still after all retries. */
export class RateLimited extends answered("RateLimited") {}

/** The resource does not exist, or belongs to another account. */
export class NotFound extends answered("NotFound") {}

/** The request is invalid. The message names each field and its bound. */
export class InvalidRequest extends answered("InvalidRequest") {}

/** The call would cost more than `maxCredits`. */
export class CostExceedsLimit extends answered("CostExceedsLimit") {}

/** The idempotency key belongs to a call that still runs, to another call, or to one whose reply was not kept. */
export class Conflict extends answered("Conflict") {}

/** The service or its upstream is down, busy, not set up, or has failed. */
export class Unavailable extends answered("Unavailable") {}

// failures without an answer of the API

/** Every attempt lost its connection or timed out. `cause` is that of the last. The call may have run. */
export class NoAnswer extends MillraceError {
  readonly _tag = "NoAnswer"
}

/** The answer does not come from this API, but perhaps from a proxy or another service. */
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

/** Whether a thrown value is a failure of this client. */
export const isFailure = (error: unknown): error is Failure => error instanceof MillraceError

type Class = new (terms: Terms) => Exclude<Failure, NoAnswer | UnexpectedAnswer>

/** The codes whose class does not follow from their status. */
const BY_CODE: Readonly<Record<string, Class>> = {
  insufficient_credits: InsufficientCredits,
  cost_exceeds_limit: CostExceedsLimit,
  idempotency_key_reused: Conflict
} satisfies Partial<Record<ErrorCode, Class>>

const BY_STATUS: Readonly<Record<number, Class>> = {
  401: Unauthorized,
  402: AccountBlocked,
  403: Forbidden,
  404: NotFound,
  408: Unavailable,
  409: Conflict,
  429: RateLimited
}

/** The failure of an answer. An unknown code, of a server that is newer than this client, is classified by its status. */
export const ofTerms = (terms: Terms): Failure => {
  const { code, status } = terms
  const Class = (Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : BY_STATUS[status]) ?? (status < 500 ? InvalidRequest : Unavailable)
  return new Class(terms)
}
