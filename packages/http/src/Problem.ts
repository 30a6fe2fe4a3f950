/**
 * The answer to every failure: a code, a message and headers. The table is total, so a new failure does not compile until it has an
 * answer here. It never shows what an upstream or a store said about itself.
 */
import {
  type Charge,
  Credits,
  type InvalidEmail,
  type MailNotConfigured,
  type MailNotSent,
  Money,
  type OperationError,
  type Passkey,
  type RateLimited,
  type RateLimitState,
  type SessionNotFound,
  type SignInLink,
  type TooManyFailures,
  type TooManyPasskeys,
  type Unauthorized
} from "@millrace/core"
import type { Projection } from "@millrace/event-sourcing"
import type { HttpServerResponse } from "effect/http"
import * as Answer from "./Answer.ts"
import { type ErrorBody, type ErrorCode, termsOf } from "./ErrorCode.ts"
import type { InvalidRequest, Refusal } from "./Refusal.ts"
import type { PasskeysUnavailable } from "./sessions/RelyingParty.ts"

export type Failure = Refusal | Unauthorized | RateLimited | TooManyFailures | OperationError | Charge.ChargeError | SessionFailure

/** Why a sign-up, a sign-in or a look at sessions failed. */
export type SessionFailure =
  | InvalidEmail
  | MailNotSent
  | MailNotConfigured
  | SignInLink.SignInRefused
  | Passkey.PasskeyRefused
  | Passkey.PasskeyKnown
  | Passkey.PasskeyNotFound
  | TooManyPasskeys
  | PasskeysUnavailable
  | SessionNotFound
  | Projection.ProjectionBehind
  | Projection.ProjectionStopped

/** The answer to a failure. */
export interface Problem {
  readonly code: ErrorCode
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The problem of a failure. Amounts are told in the host's words. */
export const problemOf = (failure: Failure, money: Money.Money = Money.STANDARD): Problem =>
  (PROBLEMS[failure._tag] as (failure: Failure, money: Money.Money) => Problem)(failure, money)

/** The error object, with the status and the headers of its code. */
export const answerOf = (problem: Problem, requestId: string): Answer.Answer => {
  const { status, retry, after } = termsOf(problem.code)
  const body: ErrorBody = { error: { code: problem.code, message: problem.message, request_id: requestId } }
  return {
    status,
    headers: {
      "cache-control": "private, no-store",
      "x-should-retry": String(retry),
      ...(after === undefined ? {} : { "retry-after": String(after) }),
      ...problem.headers
    },
    body: JSON.stringify(body)
  }
}

/** The error object as a response. */
export const responseOf = (problem: Problem, requestId: string): HttpServerResponse.HttpServerResponse =>
  Answer.responseOf(answerOf(problem, requestId))

type Problems = { readonly [Tag in Failure["_tag"]]: (failure: Extract<Failure, { readonly _tag: Tag }>, money: Money.Money) => Problem }

/** The number of issues of one request that a message lists; it counts the others. */
const MAX_ISSUES = 20

const decimal = (amount: Credits.Credits): string => String(Credits.toDecimal(amount))

/** Tells a caller how much of its rate is left: https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/. */
export const rateLimitHeaders = ({ limit, window, remaining, resetAfter }: RateLimitState): Readonly<Record<string, string>> => ({
  "ratelimit-policy": `"burst";q=${limit};w=${window}`,
  ratelimit: `"burst";r=${remaining};t=${resetAfter}`
})

/** Whole seconds to wait, at least one. */
const retryAfter = (seconds: number) => ({ "retry-after": String(Math.max(1, Math.ceil(seconds))) })

const messageOf = ({ issues }: InvalidRequest): string => {
  const told = issues.slice(0, MAX_ISSUES).map(({ field, message }) => `${field}: ${message}`)
  return [...told, ...(issues.length > MAX_ISSUES ? [`and ${issues.length - MAX_ISSUES} more`] : [])].join("; ")
}

/** A problem without details. Its message is the meaning of its code, unless another is given. */
const plain =
  (code: ErrorCode, message: string = termsOf(code).means) =>
  (): Problem => ({ code, message })

// Closed and missing accounts have no keys, so they are answered like a missing key
const unauthorized = (): Problem => ({
  code: "unauthorized",
  message: "Missing or invalid API key.",
  headers: { "www-authenticate": "Bearer" }
})
// The kept reply of a resource that was erased since is answered like a missing resource
const notFound = plain("not_found", "There is no such resource, or it is not yours.")
const outcomeUnknown = plain(
  "outcome_unknown",
  "The store did not answer in time. If you sent an Idempotency-Key, send the same request again to learn the outcome; without one it costs nothing."
)
const internalError = plain("internal_error", "Something went wrong on our side. Nothing was charged.")

const PROBLEMS: Problems = {
  // the caller
  Unauthorized: unauthorized,
  AccountNotFound: unauthorized,
  AccountClosed: unauthorized,
  InsufficientScope: ({ scope }) => ({
    code: "insufficient_scope",
    message: `This API key lacks the scope ${scope}.`,
    // RFC 6750, section 3.1
    headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${scope}"` }
  }),
  CrossSiteRequest: plain("cross_site_request"),
  PasskeyRefused: ({ message }) => ({ code: "sign_in_refused", message: `${message}.` }),
  PasskeysUnavailable: ({ message }) => ({ code: "upstream_not_configured", message: `${message}.` }),
  SignInRefused: ({ message }) => ({ code: "sign_in_refused", message: `${message}.` }),
  TooManyFailures: (failure) => ({
    code: "rate_limited",
    message: "Too many requests with a missing or invalid API key.",
    headers: retryAfter(failure.retryAfter / 1000)
  }),
  RateLimited: ({ limit, window, resetAfter }) => ({
    code: "rate_limited",
    message: `More than ${limit} requests in ${window} seconds.`,
    headers: { ...rateLimitHeaders({ limit, window, resetAfter, remaining: 0 }), ...retryAfter(resetAfter) }
  }),

  // the account
  InsufficientCredits: ({ required, available, shortfall }, money) => ({
    code: "insufficient_credits",
    message: `This call needs ${Money.text(required, money)}; ${Money.text(available, money)} available, ${Money.text(shortfall, money)} short.`,
    headers: {
      "x-credits-required": decimal(required),
      "x-credits-available": decimal(available),
      "x-credits-shortfall": decimal(shortfall)
    }
  }),
  AccountInDebt: ({ debt }, money) => ({
    code: "account_in_debt",
    message: `The account owes ${Money.text(debt, money)}; nothing priced runs until that is repaid.`
  }),
  TrialUsedUp: ({ slots }) => ({
    code: "trial_used_up",
    message: `All ${slots} calls of the trial are used. Verify the address of the account, or buy credits, to go on.`
  }),
  TrialExcludesJobs: plain(
    "trial_excludes_jobs",
    "This call would become a job, which the trial does not include. Verify the address of the account, or buy credits, to go on."
  ),
  AccountSuspended: plain("account_suspended", "The account is suspended; nothing priced runs until it is reinstated."),
  CostExceedsLimit: ({ cost, limit }, money) => ({
    code: "cost_exceeds_limit",
    message: `This call would cost ${Money.text(cost, money)}, more than the ${Money.text(limit, money)} that X-Max-Credits allows. Nothing was charged.`
  }),

  // the request
  RouteNotFound: plain("route_not_found"),
  NotFound: notFound,
  SubjectDestroyed: notFound,
  PasskeyNotFound: notFound,
  SessionNotFound: notFound,
  MethodNotAllowed: ({ allow }) => ({
    code: "method_not_allowed",
    message: `This path takes ${allow.join(", ")}.`,
    headers: { allow: allow.join(", ") }
  }),
  PayloadTooLarge: ({ limit }) => ({ code: "payload_too_large", message: `The request body is larger than ${limit} bytes.` }),
  UnsupportedMediaType: plain("unsupported_media_type", "The request body must be JSON in UTF-8, with the content type application/json."),
  MalformedJson: ({ reason }) => ({ code: "malformed_json", message: `The request body is not valid JSON: ${reason}.` }),
  BodyUnreadable: plain("bad_request", "The request body is incomplete."),
  InvalidRequest: (failure) => ({ code: "invalid_request", message: messageOf(failure) }),
  InvalidEmail: plain("invalid_request", "address: is no e-mail address"),
  PasskeyKnown: ({ message }) => ({ code: "invalid_request", message: `credential: ${message}` }),
  TooManyPasskeys: ({ message }) => ({ code: "invalid_request", message: `credential: ${message}` }),
  InvalidInput: ({ field, message }) => ({ code: "invalid_request", message: `${field}: ${message}` }),
  RangeNotSatisfiable: ({ size }) => ({
    code: "range_not_satisfiable",
    message: `The file has ${size} bytes.`,
    headers: { "content-range": `bytes */${size}` }
  }),

  // jobs, payments and idempotency keys
  TooManyJobs: ({ limit, scope, retryAfter }) => ({
    ...(scope === "account"
      ? { code: "too_many_jobs", message: `${limit} jobs of this account wait or run already. Nothing was charged.` }
      : { code: "queue_full", message: termsOf("queue_full").means }),
    headers: { "retry-after": String(retryAfter) }
  }),
  TooManyPayments: ({ limit, retryAfter }) => ({
    code: "too_many_payments",
    message: `${limit} payments of this account are pending. Pay one of them, or wait until they lapse.`,
    headers: { "retry-after": String(retryAfter) }
  }),
  TooManySubmissions: ({ limit, retryAfter }) => ({
    code: "too_many_submissions",
    message: `The limit of ${limit} submissions is reached. Try again later.`,
    headers: { "retry-after": String(retryAfter) }
  }),
  AddressNotVerified: plain("address_not_verified"),
  InFlight: plain("idempotency_key_in_use"),
  KeyReused: plain("idempotency_key_reused"),
  ReplyUnavailable: plain("reply_unavailable", "The reply to this Idempotency-Key was not kept. The call does not run again."),

  // upstreams, stores and this server
  UpstreamUnavailable: ({ invalidReply, retryAfter: seconds }) => ({
    ...(invalidReply === true
      ? { code: "upstream_invalid_reply", message: "The service behind this operation sent an invalid reply. Nothing was charged." }
      : { code: "upstream_unavailable", message: "The service behind this operation is unavailable. Nothing was charged." }),
    ...(seconds === undefined ? {} : { headers: retryAfter(seconds) })
  }),
  DownloadUnavailable: ({ message, reason }) => ({ code: `download_${reason}`, message: `${message}. Nothing was charged.` }),
  UpstreamNotConfigured: plain("upstream_not_configured", "This operation is not set up at this host. Nothing was charged."),
  MailNotSent: plain("upstream_unavailable", "The mail cannot be sent now."),
  MailNotConfigured: plain("upstream_not_configured", "This host sends no mail, so nobody can sign up or sign in by mail."),
  NotPriced: plain("operation_not_priced", "This operation has no price yet, so it cannot be called."),
  StreamRefused: plain("account_unavailable"),
  Tampered: plain("account_unavailable"),
  Busy: plain("busy"),
  StoreUnavailable: ({ why }) =>
    why === "clock"
      ? { code: "store_unavailable", message: "The clock of this server is wrong, so it writes nothing. Nothing was charged." }
      : { code: "store_unavailable", message: termsOf("store_unavailable").means },
  StateUnavailable: plain("store_unavailable"),
  ProjectionBehind: plain("store_unavailable"),
  ProjectionStopped: plain("store_unavailable"),
  AppendInDoubt: outcomeUnknown,
  OutcomeUnknown: outcomeUnknown,
  ResultWithheld: plain("result_withheld"),
  ShuttingDown: plain("shutting_down", "This server is shutting down. Nothing was charged."),
  OperationFailed: ({ operation }) => ({
    code: "operation_failed",
    message: `The operation ${operation} failed because of a bug in it. Nothing was charged.`
  }),
  // A batch that is too large for every store is a bug of Millrace
  AppendTooLarge: internalError,
  Defect: internalError
}
