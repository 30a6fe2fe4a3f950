/** Limits how often links are mailed: to an address, whoever asks, and for a client, whatever the address. Shared by all hosts of a store. */
import { clientOf, RateLimit, type RateLimited, type RateLimitPolicy, type Vault } from "@millrace/core"
import type { StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Option, type Scope } from "effect"
import type { HttpServerRequest } from "effect/http"

export interface Options {
  /** 5 links to one address in 15 minutes by default. */
  readonly address?: RateLimitPolicy
  /** 30 links for one client in an hour by default. */
  readonly client?: RateLimitPolicy
}

const limiter = (policy: RateLimitPolicy) => Effect.map(Layer.build(Layer.fresh(RateLimit.shared(policy))), Context.get(RateLimit))

export interface SignInLimits {
  /** Counts a link to an address in its normal form. */
  readonly mailed: (address: string) => Effect.Effect<void, RateLimited>
  /** Counts a link for a client, if the host knows its address. */
  readonly asked: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<void, RateLimited>
}

export const make = Effect.fnUntraced(function* ({
  address = { limit: 5, window: 15 * 60 },
  client = { limit: 30, window: 3_600 }
}: Options = {}): Effect.fn.Return<SignInLimits, never, Vault.Vault | StateStore.StateStore | Scope.Scope> {
  const byAddress = yield* limiter(address)
  const byClient = yield* limiter(client)
  return {
    mailed: (address) => Effect.asVoid(byAddress.consume(`sign-in:address:${address}`)),
    asked: ({ remoteAddress }) =>
      Option.isNone(remoteAddress) ? Effect.void : Effect.asVoid(byClient.consume(`sign-in:client:${clientOf(remoteAddress.value)}`))
  }
})
