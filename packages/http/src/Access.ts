/** Authenticates callers and limits their rates: first the API key or the session, then the rate of its account. */

import {
  type Authenticated,
  AuthThrottle,
  clientOf,
  KeyRing,
  RateLimit,
  type RateLimited,
  type RateLimitState,
  rateKeyOfAccount,
  Sessions,
  type SignedIn,
  type TooManyFailures,
  Unauthorized
} from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect, Option, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { CrossSiteRequest } from "./Refusal.ts"
import type { Head } from "./RequestReport.ts"
import * as Cookies from "./sessions/Cookies.ts"
import * as SameOrigin from "./sessions/SameOrigin.ts"

const BEARER = /^Bearer +(?<key>[^\s]+) *$/iu

type Request = HttpServerRequest.HttpServerRequest

/** The key of a request: of an account, or of an operator. Nothing else reads the header. */
export const keyOf = (request: Pick<Head, "headers">): string | undefined =>
  BEARER.exec(request.headers["authorization"] ?? "")?.groups?.["key"]

/** Limits the attempts of each client address that fail as unauthorized. */
export const throttling =
  (throttle: AuthThrottle["Service"]) =>
  <A, E>(request: Request, attempt: Effect.Effect<A, E | Unauthorized>): Effect.Effect<A, E | Unauthorized | TooManyFailures> =>
    Effect.tapError(attempt, (error) => {
      const address = Option.getOrUndefined(request.remoteAddress)
      return !(error instanceof Unauthorized) || address === undefined
        ? Effect.void
        : Effect.andThen(throttle.check(address), throttle.failed(address))
    })

type KeyFailure = Unauthorized | TooManyFailures | Aggregate.Failure

/** Who calls: by a key, or by a session. */
export type Caller = Authenticated | SignedIn

/**
 * Missing, malformed, unknown and revoked keys get the same answer, and so do sessions that have ended. Failed requests are limited for each
 * client address. A valid key is never refused for failures of others at its address, since the address may be that of a proxy.
 *
 * A key counts before a session's cookie, which browsers send by themselves.
 */
export const make = Effect.gen(function* () {
  const keys = yield* KeyRing
  const sessions = Option.getOrUndefined(yield* Effect.serviceOption(Sessions))
  const throttle = yield* AuthThrottle
  const rates = yield* RateLimit

  const throttled = throttling(throttle)

  /**
   * The session of a request. `isFree`: the request costs nothing. A request without the cookie is no attempt to guess one, and does not
   * count as a failure: a page asks so whether somebody is signed in.
   */
  const signedIn = Effect.fnUntraced(function* (
    request: Request,
    isFree: boolean
  ): Effect.fn.Return<SignedIn, KeyFailure | CrossSiteRequest> {
    const token = Cookies.sessionOf(request)
    if (token === undefined || sessions === undefined) return yield* new Unauthorized()
    const session = yield* throttled(request, sessions.authenticate(token))
    yield* SameOrigin.checkSession(request, session.csrfToken, isFree)
    return session
  })

  const authenticate = (request: Request): Effect.Effect<Caller, KeyFailure | CrossSiteRequest> =>
    request.headers["authorization"] === undefined && Cookies.sessionOf(request) !== undefined && sessions !== undefined
      ? signedIn(request, false)
      : throttled(request, keys.authenticate(keyOf(request)))

  /** The rate that a call without a key counts against, if the host knows the client's address. */
  const rateKeyOfClient = (address: string | undefined): string | undefined =>
    address === undefined ? undefined : `client:${clientOf(address)}`

  return {
    authenticate,
    signedIn,
    /** Counts one call against the rate of an account. */
    admit: (accountId: string) => rates.consume(rateKeyOfAccount(accountId)),
    /** Counts one call without a key against the rate of the client's address. */
    admitClient: ({ remoteAddress }: Request) => {
      const key = rateKeyOfClient(Option.getOrUndefined(remoteAddress))
      return key === undefined ? Effect.undefined : rates.consume(key)
    },
    /** The caller of a request with an API key; undefined where a store must be waited for, and for all that {@link make} refuses. */
    authenticateNow: (request: Head): Authenticated | undefined => {
      const key = keyOf(request)
      return key === undefined ? undefined : keys.authenticate.now?.(key)
    },
    /** Counts one call against the rate of the caller's account, or of the client where there is no caller. Counts none beyond the rate. */
    admitNow: (caller: Caller | undefined, address: () => string | undefined): Result.Result<RateLimitState | undefined, RateLimited> => {
      const key = caller === undefined ? rateKeyOfClient(address()) : rateKeyOfAccount(caller.accountId)
      return key === undefined ? Result.succeed(undefined) : rates.consume.now(key)
    }
  }
})
export type Access = Effect.Success<typeof make>
