import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { AuthThrottle, clientOf, type Options } from "../../src/accounts/AuthThrottle.ts"
import { check } from "../vault/Property.ts"
import { outcome } from "../vault/Vaults.ts"

const testing = (name: string, options: Options, body: (throttle: AuthThrottle["Service"]) => Effect.Effect<unknown, unknown>) =>
  test(name, () =>
    Effect.runPromise(
      Effect.asVoid(AuthThrottle.use(body)).pipe(Effect.provide(AuthThrottle.layer(options)), Effect.provide(TestClock.layer()))
    )
  )

const times = (n: number, effect: Effect.Effect<unknown>) => Effect.repeat(effect, { times: n - 1 })

describe("a client address that fails to authenticate", () => {
  testing(
    "is refused after the allowed failures, and admitted again as time passes",
    { failures: 5, per: "10 seconds" },
    ({ check, failed }) =>
      Effect.gen(function* () {
        for (let i = 0; i < 5; i++) {
          yield* check("192.0.2.1")
          yield* failed("192.0.2.1")
        }
        expect(yield* Effect.flip(check("192.0.2.1"))).toMatchObject({ _tag: "TooManyFailures", retryAfter: 2_000 })
        yield* TestClock.adjust(1_999)
        expect(yield* Effect.flip(check("192.0.2.1"))).toMatchObject({ retryAfter: 1 })
        yield* TestClock.adjust(1)
        yield* check("192.0.2.1")
        yield* failed("192.0.2.1")
        expect(yield* outcome(check("192.0.2.1"))).toBe("TooManyFailures")
        yield* TestClock.adjust(10_000)
        yield* times(5, failed("192.0.2.1"))
        expect(yield* outcome(check("192.0.2.1"))).toBe("TooManyFailures")
      })
  )

  testing("does not affect other addresses", { failures: 2 }, ({ check, failed }) =>
    Effect.gen(function* () {
      yield* times(2, failed("192.0.2.1"))
      yield* check("192.0.2.2")
      expect(yield* outcome(check("192.0.2.1"))).toBe("TooManyFailures")
    })
  )

  testing(
    "is refused for at most one period after any number of concurrent failures",
    { failures: 2, per: "10 seconds" },
    ({ check, failed }) =>
      Effect.gen(function* () {
        yield* times(1_000, failed("192.0.2.1"))
        expect(yield* Effect.flip(check("192.0.2.1"))).toMatchObject({ retryAfter: 5_000 })
        yield* TestClock.adjust(5_000)
        yield* check("192.0.2.1")
      })
  )

  testing(
    "is dropped when too many addresses fail, the one that failed longest ago first",
    { failures: 1, addresses: 3 },
    ({ check, failed }) =>
      Effect.gen(function* () {
        for (const address of ["a", "b", "c", "a", "d"]) yield* failed(address)
        const outcomes = yield* Effect.forEach(["a", "b", "c", "d"], (address) => outcome(check(address)))
        expect(outcomes).toEqual(["TooManyFailures", undefined, "TooManyFailures", "TooManyFailures"])
      })
  )
})

describe("a client", () => {
  test.for([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["0:0:0:0:0:FFFF:192.0.2.1", "192.0.2.1"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:0DB8:0:0:ffff:1:2:3", "2001:db8:0:0::/64"],
    ["2001:db8:0:1::", "2001:db8:0:1::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
    ["unix:", "unix:"]
  ] as const)("%s is %s", ([address, client]) => expect(clientOf(address)).toBe(client))

  test("is one 64-bit network, in any notation of its addresses", () => {
    const group = fc.nat(0xffff)
    const groups = fc.array(group, { minLength: 8, maxLength: 8 })
    check(
      fc.property(groups, group, (all, other) => {
        const [first = 0, ...others] = all
        const write = (groups: ReadonlyArray<number>) => groups.map((part) => part.toString(16)).join(":")
        const client = clientOf(write(all))
        expect(clientOf(write([...all.slice(0, 7), other]).toUpperCase())).toBe(client)
        expect(clientOf(`${write(all.slice(0, 4))}::`)).toBe(client)
        if (other !== first) expect(clientOf(write([other, ...others]))).not.toBe(client)
      })
    )
  })
})
