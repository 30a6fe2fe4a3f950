/** Authenticates callers and limits their rates: first the API key, then the rate of its account. */

import {
  type Authenticated,
  AuthThrottle,
  clientOf,
  KeyRing,
  RateLimit,
  rateKeyOfAccount,
  type TooManyFailures,
  type Unauthorized
} from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"

const BEARER = /^Bearer +(?<key>[^\s]+) *$/iu

type Request = HttpServerRequest.HttpServerRequest

/** The API key of a request. Nothing else reads the header. */
const keyOf = (request: Request): string | undefined => BEARER.exec(request.headers["authorization"] ?? "")?.groups?.["key"]

/**
 * Missing, malformed, unknown and revoked keys get the same answer. Failed requests are limited for each client address. A valid key is
 * never refused for failures of others at its address, since the address may be that of a proxy.
 */
export const make = Effect.gen(function* () {
  const keys = yield* KeyRing
  const throttle = yield* AuthThrottle
  const rates = yield* RateLimit

  const authenticate = (request: Request): Effect.Effect<Authenticated, Unauthorized | TooManyFailures | Aggregate.Failure> =>
    Effect.tapError(keys.authenticate(keyOf(request)), (error) => {
      const address = Option.getOrUndefined(request.remoteAddress)
      return error._tag !== "Unauthorized" || address === undefined
        ? Effect.void
        : Effect.andThen(throttle.check(address), throttle.failed(address))
    })

  return {
    authenticate,
    /** Counts one call against the rate of an account. */
    admit: (accountId: string) => rates.consume(rateKeyOfAccount(accountId)),
    /** Counts one call without a key against the rate of the client's address, if the host knows the address. */
    admitClient: ({ remoteAddress }: Request) =>
      Option.isNone(remoteAddress) ? Effect.undefined : rates.consume(`client:${clientOf(remoteAddress.value)}`)
  }
})
export type Access = Effect.Success<typeof make>
