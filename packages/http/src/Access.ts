/** Authenticates a request and counts it: the key first, then the rate limit of its account. */
import {
  type Authenticated,
  AuthThrottle,
  clientOf,
  KeyRing,
  RateLimit,
  type RateLimited,
  type RateLimitState,
  rateKeyOfAccount,
  type TooManyFailures,
  type Unauthorized
} from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"

const BEARER = /^Bearer +(?<key>[^\s]+) *$/iu

/** The API key of a request. It is read nowhere else. */
const keyOf = (request: HttpServerRequest.HttpServerRequest): string | undefined =>
  BEARER.exec(request.headers["authorization"] ?? "")?.groups?.["key"]

export interface Access {
  readonly authenticate: (
    request: HttpServerRequest.HttpServerRequest
  ) => Effect.Effect<Authenticated, Unauthorized | TooManyFailures | Aggregate.Failure>
  /** Counts one call of an account. */
  readonly admit: (accountId: string) => Effect.Effect<RateLimitState, RateLimited>
  /** Counts one call without a key, for the client's address. Without an address, nothing is counted. */
  readonly admitClient: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<RateLimitState | undefined, RateLimited>
}

/**
 * Missing, malformed, unknown and revoked keys get the same answer in the same way. Failures are limited for each client address. A good
 * key is never refused for failures at its address: different clients may share a proxy.
 */
export const make: Effect.Effect<Access, never, KeyRing | AuthThrottle | RateLimit> = Effect.gen(function* () {
  const keys = yield* KeyRing
  const throttle = yield* AuthThrottle
  const rates = yield* RateLimit

  const authenticate: Access["authenticate"] = (request) =>
    Effect.tapError(keys.authenticate(keyOf(request)), (error) => {
      const address = Option.getOrUndefined(request.remoteAddress)
      return error._tag !== "Unauthorized" || address === undefined
        ? Effect.void
        : Effect.andThen(throttle.check(address), throttle.failed(address))
    })

  return {
    authenticate,
    admit: (accountId) => rates.consume(rateKeyOfAccount(accountId)),
    admitClient: ({ remoteAddress }) =>
      Option.isNone(remoteAddress) ? Effect.undefined : rates.consume(`client:${clientOf(remoteAddress.value)}`)
  }
})
