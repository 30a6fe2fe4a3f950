/** What a workload expects of its operations: when it is asked, what it is shown, and how it says no. */
import {
  type BlobStore,
  type Jobs,
  type KeyRing,
  Ledger,
  Operation,
  type Payments,
  type PricePlan,
  type Registration,
  UpstreamUnavailable,
  type Vault
} from "@millrace/core"
import { Context, Effect, Layer, Schema } from "effect"
import { describe, expect, expectTypeOf, test } from "vitest"
import * as Simulator from "../src/Simulator.ts"

const Count = Schema.Struct({ n: Schema.Int })
const body = { n: Schema.Int }

const count = Operation.make("numbers.count", {
  summary: "Counts",
  route: { method: "POST", path: "/count", body },
  success: Count,
  quantity: ({ n }) => n,
  run: ({ n }) => Effect.succeed({ data: { n } })
})

/** It uses what a host provides to every operation. */
const afford = Operation.make("numbers.afford", {
  summary: "How many calls the account can pay for",
  route: { method: "POST", path: "/afford", body: {} },
  success: Schema.Struct({ calls: Schema.Int }),
  run: (_, { accountId }) =>
    Effect.gen(function* () {
      const { balance } = yield* Ledger
      const { available } = yield* Effect.mapError(
        balance(accountId),
        ({ message }) => new UpstreamUnavailable({ upstream: "ledger", reason: message })
      )
      return { data: { calls: Math.floor(available / 100) } }
    })
})

type Op = typeof count | typeof afford

const workload = (expectations: Simulator.Expectations<Op>): Simulator.Workload<Op> => ({
  offers: [
    { operation: count, input: (random) => ({ n: random.below(4) }), price: 100 },
    { operation: afford, input: () => ({}), price: 50 }
  ],
  services: Layer.empty,
  expect: expectations
})

const run = (expectations: Simulator.Expectations<Op>, options: Partial<Simulator.Options<Op>> = {}) =>
  Effect.runPromise(Simulator.run({ seed: 3, ...options, workload: workload(expectations) }))

const fails = async (expectations: Simulator.Expectations<Op>) => {
  const settings = { seed: 3, steps: 6, faults: Simulator.none }
  return Effect.runPromise(Effect.flip(Simulator.run({ ...settings, workload: workload(expectations) })))
}

test("operations may use the services of a host, and no others but those of the workload", () => {
  type Of<R> = Simulator.Workload<Operation.AnyCall<never, R>>["services"]
  expectTypeOf<Of<Ledger | Registration | KeyRing | Payments | PricePlan.PriceBook | Vault.Vault>>().toEqualTypeOf<Layer.Layer<never>>()
  expectTypeOf<Of<Jobs | BlobStore.BlobStore>>().toEqualTypeOf<Layer.Layer<never>>()
  class Post extends Context.Service<Post, { readonly send: Effect.Effect<void> }>()("Post") {}
  expectTypeOf<Of<Ledger | Post>>().toEqualTypeOf<Layer.Layer<Post>>()
})

test("the key of the operation gives the types of input and reply", () => {
  workload({
    after(operation, input, reply, _world) {
      if (operation === "numbers.count") {
        expectTypeOf(input).toEqualTypeOf<{ readonly n: number }>()
        if (reply._tag === "Success") expectTypeOf(reply.data).toEqualTypeOf<{ readonly n: number }>()
      } else {
        expectTypeOf(operation).toEqualTypeOf<"numbers.afford">()
        if (reply._tag === "Success") expectTypeOf(reply.data).toEqualTypeOf<{ readonly calls: number }>()
      }
    }
  })
})

test("`after` is called once for each call that was answered, replays included, and for no other", async () => {
  const met = new Set<string>()
  for (let seed = 1; seed <= 3; seed++) {
    const told: Array<string> = []
    const { calls } = await run(
      {
        after(_, __, reply, { call }) {
          told.push(call.requestId)
          if (reply._tag === "Success") met.add(reply.replayed ? "replayed" : "fresh")
          else met.add(reply.error._tag)
        }
      },
      { seed, faults: { hangUps: 0.3, hosts: 0.2, upstreams: 0.3 } }
    )
    for (const { answer } of calls) if (answer === "hung up") met.add(answer)
    const answered = calls.filter(({ answer }) => answer !== "hung up" && answer !== "nothing").map(({ requestId }) => requestId)
    expect(told.toSorted()).toEqual(answered.toSorted())
  }
  expect([...met]).toEqual(expect.arrayContaining(["fresh", "replayed", "hung up", "Disconnected", "UpstreamUnavailable"]))
})

test("the world has the truth of the log at that moment", async () => {
  let charged = 0
  let paid = 0
  await run(
    {
      after(operation, input, reply, { balance, call, calls, charge, events, now }) {
        expect(calls.find(({ requestId }) => requestId === call.requestId)?.answer?.reply).toEqual(reply)
        expect(call).toMatchObject({ operation, input, hungUp: false, answer: { at: now } })
        if (reply._tag === "Failure") return
        charged += reply.charged
        if (!reply.replayed && reply.charged > 0) expect(charge(call.requestId)?.charged).toBe(reply.charged)
        expect(balance(call.accountId).available).toBeGreaterThanOrEqual(0)
        expect(events(call.accountId).at(0)?.event._tag).toBe("AccountOpened")
      },
      finally({ accounts, events }) {
        for (const { event } of accounts.flatMap(events)) if (event._tag === "OperationSucceeded") paid += event.charged
      }
    },
    { faults: Simulator.none }
  )
  expect(charged).toBeGreaterThan(0)
  expect(charged).toBe(paid)
})

describe("an expectation is violated", () => {
  class Wrong extends Schema.TaggedError<Wrong>()("Wrong", {}) {
    override get message(): string {
      return "that is wrong"
    }
  }

  test.each<readonly [string, () => Simulator.Verdict]>([
    [
      "by an exception",
      () => {
        throw new Error("that is wrong")
      }
    ],
    ["by a sentence", () => "that is wrong"],
    ["by an Effect that fails", () => Effect.fail(new Wrong())],
    ["by an Effect that dies later", () => Effect.delay(Effect.die("that is wrong"), "2 seconds")],
    ["by an Effect of a sentence", () => Effect.succeed("that is wrong")]
  ])("%s", async (_, verdict) => {
    const { message, violations } = await fails({ after: verdict })
    expect(violations[0]).toMatch(/^q\d+: after numbers\.\w+: that is wrong$/u)
    expect(message).toContain(`checker: ${violations[0]}`)
    expect((await fails({ finally: verdict })).violations).toEqual(["finally: that is wrong"])
  })

  test("by false, and by a promise, which would settle in real time", async () => {
    expect((await fails({ finally: () => false })).violations).toEqual(["finally: the expectation does not hold"])
    const promise = (async () => {}) as unknown as () => void
    expect((await fails({ finally: promise })).violations[0]).toContain("return an Effect")
  })

  test.each<readonly [string, () => Simulator.Verdict]>([
    ["nothing", () => {}],
    ["true", () => true],
    ["an Effect that succeeds", () => Effect.sleep("1 minute")]
  ])("not by %s", async (_, verdict) => {
    await run({ after: verdict, finally: verdict }, { steps: 6, faults: Simulator.none })
  })
})
