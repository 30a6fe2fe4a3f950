/** Who calls, and how often they may: a good key first, then the rate of its account. */

import { AuthThrottle, KeyRing, RateLimit } from "@millrace/core"
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"

const BEARER = /^Bearer +(?<key>[^\s]+) *$/iu

/** The credential of a request: the one place where it is read. */
const keyOf = (request: HttpServerRequest.HttpServerRequest): string | undefined =>
  BEARER.exec(request.headers["authorization"] ?? "")?.groups?.["key"]

/**
 * Missing, malformed, unknown and revoked keys take one path to one answer. Failures are limited for each client address; a good key is
 * never refused for what others at its address did, since they may share no more than a proxy.
 */
export const make = Effect.gen(function* () {
  const keys = yield* KeyRing
  const throttle = yield* AuthThrottle
  const rates = yield* RateLimit

  const authenticate = (request: HttpServerRequest.HttpServerRequest) =>
    Effect.tapError(keys.authenticate(keyOf(request)), (error) => {
      const address = Option.getOrUndefined(request.remoteAddress)
      return error._tag !== "Unauthorized" || address === undefined
        ? Effect.void
        : Effect.andThen(throttle.check(address), throttle.failed(address))
    })

  /** Counts one call of an account. */
  const admit = (accountId: string) => rates.consume(`account:${accountId}`)

  return { authenticate, admit }
})
