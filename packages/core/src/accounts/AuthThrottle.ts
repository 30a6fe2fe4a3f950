/**
 * Failed authentications, limited for each client address: so many at once, and then as many again in the course of a minute. What is
 * kept is one instant for each address that failed lately, and a bounded number of those.
 */
import { isIPv6 } from "node:net"
import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"

/** `retryAfter` milliseconds from now it may try again. */
export class TooManyFailures extends Schema.TaggedError<TooManyFailures>()("TooManyFailures", { retryAfter: Schema.Number }) {}

export interface Options {
  /** Failures at once, and in each period after that: 20 by default. */
  readonly failures?: number
  /** A minute by default. */
  readonly per?: Duration.Input
  /** Addresses kept, 10,000 by default: beyond that, the one that failed longest ago is forgotten. */
  readonly addresses?: number
}

export class AuthThrottle extends Context.Service<
  AuthThrottle,
  {
    /** Refuses an address that failed too often lately. */
    readonly check: (address: string) => Effect.Effect<void, TooManyFailures>
    /** Counts a failure. */
    readonly failed: (address: string) => Effect.Effect<void>
  }
>()("@millrace/core/accounts/AuthThrottle") {
  static readonly layer = (options: Options = {}): Layer.Layer<AuthThrottle> => Layer.effect(AuthThrottle, make(options))
}

/**
 * Who counts as one client: an IPv4 address, however it is written, or the 64-bit network of an IPv6 address, for each subscriber has
 * all of it.
 */
export const clientOf = (address: string): string => {
  if (!isIPv6(address)) return address
  const [text = ""] = address.toLowerCase().split("%")
  const [, ipv4] = /:(?<ipv4>\d+\.\d+\.\d+\.\d+)$/u.exec(text) ?? []
  if (ipv4 !== undefined && /^[0:]*:ffff:\d/u.test(text)) return ipv4
  const [front = "", back] = text.split("::")
  const head = front === "" ? [] : front.split(":")
  const tail = back === undefined || back === "" ? [] : back.split(":")
  const length = head.length + tail.length + (ipv4 === undefined ? 0 : 1)
  const groups = back === undefined ? head : [...head, ...Array.from({ length: 8 - length }, () => "0"), ...tail]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`
}

// https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm: the instant at which all failures so far will be forgotten says it all
const make = Effect.fnUntraced(function* ({ failures = 20, per = "1 minute", addresses = 10_000 }: Options) {
  const clock = yield* Clock.Clock
  const interval = Duration.toMillis(per) / failures
  const tolerance = interval * (failures - 1)
  /** Least lately failed first. */
  const forgivenAt = new Map<string, number>()

  return AuthThrottle.of({
    check: (address) =>
      Effect.suspend(() => {
        const retryAfter = (forgivenAt.get(clientOf(address)) ?? 0) - tolerance - clock.currentTimeMillisUnsafe()
        return retryAfter > 0 ? Effect.fail(new TooManyFailures({ retryAfter })) : Effect.void
      }),
    failed: (address) =>
      Effect.sync(() => {
        const client = clientOf(address)
        const now = clock.currentTimeMillisUnsafe()
        const from = Math.max(forgivenAt.get(client) ?? 0, now)
        forgivenAt.delete(client)
        // Those who tried all at once before any had failed are not kept out for longer than one period
        forgivenAt.set(client, Math.min(from + interval, now + tolerance + interval))
        for (const [oldest, instant] of forgivenAt) {
          if (instant > now && forgivenAt.size <= addresses) break
          forgivenAt.delete(oldest)
        }
      })
  })
})
