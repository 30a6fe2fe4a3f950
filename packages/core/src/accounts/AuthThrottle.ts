/**
 * Limits failed authentications of each client address: a number at once, and the same number again spread over each minute. It keeps one
 * instant for each address that failed lately, and a bounded number of addresses.
 */
import { isIPv6 } from "node:net"
import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"

/** The address may try again in `retryAfter` milliseconds. */
export class TooManyFailures extends Schema.TaggedError<TooManyFailures>()("TooManyFailures", { retryAfter: Schema.Finite }) {
  override get message(): string {
    return `Too many requests with a missing or invalid API key; try again in ${Math.ceil(this.retryAfter / 1000)} seconds`
  }
}

export interface Options {
  /** Failures at once, and in each period: 20 by default. */
  readonly failures?: number
  /** A minute by default. */
  readonly per?: Duration.Input
  /** Addresses kept, 10,000 by default. Beyond that, the address that failed longest ago is dropped. */
  readonly addresses?: number
}

export class AuthThrottle extends Context.Service<
  AuthThrottle,
  {
    /** Fails for an address with too many recent failures. */
    readonly check: (address: string) => Effect.Effect<void, TooManyFailures>
    /** Counts a failure. */
    readonly failed: (address: string) => Effect.Effect<void>
  }
>()("@millrace/core/accounts/AuthThrottle") {
  static readonly layer = (options: Options = {}): Layer.Layer<AuthThrottle> => Layer.effect(AuthThrottle, make(options))
}

/**
 * What counts as one client: an IPv4 address in any notation, or the 64-bit network of an IPv6 address, because a subscriber is given a
 * whole network.
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

// Generic cell rate algorithm (https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm): one instant, at which all failures are forgiven
const make = Effect.fnUntraced(function* ({ failures = 20, per = "1 minute", addresses = 10_000 }: Options) {
  const clock = yield* Clock.Clock
  const interval = Duration.toMillis(per) / failures
  const tolerance = interval * (failures - 1)
  /** By client: when its failures are forgiven. The client that failed longest ago comes first. */
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
        // A client that tried many times at once, before the first had failed, is kept out for one period at most
        forgivenAt.set(client, Math.min(from + interval, now + tolerance + interval))
        for (const [oldest, instant] of forgivenAt) {
          if (instant > now && forgivenAt.size <= addresses) break
          forgivenAt.delete(oldest)
        }
      })
  })
})
