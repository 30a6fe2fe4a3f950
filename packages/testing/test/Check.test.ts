/** Many seeds at once: a mistake is found, shrunk and shown; randomness outside the seed is noticed. */
import { Operation } from "@millrace/core"
import { Effect, Layer, Random, Schema } from "effect"
import { describe, expect, test } from "vitest"
import * as Simulator from "../src/Simulator.ts"

const Order = { order: Schema.Int }

/** An operation whose till is no part of the ledger, and another beside it. The till is that of one run. */
const workloadOf = (isIdempotent: boolean) => {
  const till = new Map<number, number>()
  const paid = (order: number) => till.get(order) ?? 0
  const pay = Operation.make("orders.pay", {
    summary: "Pays an order at the host's own till",
    route: { method: "POST", path: "/orders", body: Order },
    success: Schema.Struct(Order),
    run: ({ order }) =>
      Effect.sync(() => {
        if (!isIdempotent || paid(order) === 0) till.set(order, paid(order) + 1)
        return { data: { order } }
      })
  })
  const look = Operation.make("orders.look", {
    summary: "Looks at an order",
    route: { method: "GET", path: "/orders/:order", params: Order },
    success: Schema.Struct(Order),
    run: ({ order }) => Effect.succeed({ data: { order } })
  })
  const input = (random: { readonly below: (bound: number) => number }) => ({ order: random.below(1_000_000) })
  const workload: Simulator.Workload<typeof pay | typeof look> = {
    offers: [
      { operation: look, input, price: 10 },
      { operation: pay, input, price: 100 }
    ],
    services: Layer.empty,
    expect: {
      after(operation, { order }, _reply, { call, calls }) {
        if (operation !== "orders.pay" || call.key === undefined) return true
        // Callers of the simulator send an order under another key or for another account, too, by mistake
        const isSame = ({ accountId, key }: Simulator.ObservedCall) => accountId === call.accountId && key === call.key
        const ofOrder = calls.filter(({ input }) => (input as { readonly order: number }).order === order)
        return !ofOrder.every(isSame) || paid(order) < 2 || `order ${order} was paid ${paid(order)} times`
      }
    },
    source: { name: "orders", from: "./orders.ts" }
  }
  return workload
}

describe("an operation that pays again when a call is repeated", () => {
  const check = Simulator.check({ seed: 20, runs: 20, steps: 20, workload: () => workloadOf(false), shrink: { runs: 80 } })

  test("is found, though only with faults, and shrunk to what shows it", async () => {
    const { message, test, violations } = await Effect.runPromise(Effect.flip(check))
    expect(violations).toHaveLength(1)
    expect(violations[0]).toMatch(/^q\d+: after orders\.pay: order \d+ was paid 2 times$/u)
    expect(message).toContain(`> `)
    expect(message).toMatch(/Found by run \d+ of 20, seed \d+\. Shrunk with \d+ runs\./u)
    const options = /run\((?<options>.*)\)\)/u.exec(test)?.groups?.["options"] ?? ""
    // Some failures need a host beside the one that fails: which, depends on all that hosts do with the store, besides the seed
    expect(options).toMatch(/hosts: [12], .*operations: \["orders\.pay"\], .*workload: orders \}$/u)
    expect(Number(/steps: (?<steps>\d+)/u.exec(options)?.groups?.["steps"])).toBeLessThanOrEqual(12)
    const [, faults = ""] = /faults: \{ \.\.\.Simulator\.none, (?<faults>[^}]*) \}/u.exec(options) ?? []
    expect([1, 2]).toContain(faults.split(", ").length)
    expect(message.endsWith(test)).toBe(true)
  }, 120_000)

  test("is fine once it pays each order once, and the runs met what they should", async () => {
    const { runs, stats } = await Effect.runPromise(Simulator.check({ runs: 3, workload: () => workloadOf(true) }))
    expect(runs).toBe(3)
    expect(stats["told replayed"]).toBeGreaterThan(0)
  }, 120_000)
})

describe("randomness outside the seed is noticed", () => {
  const draw = (work: Effect.Effect<number>): Simulator.Workload<Operation.AnyCall<never, never>> => ({
    offers: [
      {
        operation: Operation.make("numbers.draw", {
          summary: "Draws a number",
          route: { method: "POST", path: "/draw", body: {} },
          success: Schema.Struct({ n: Schema.Finite }),
          run: () => Effect.map(work, (n) => ({ data: { n } }))
        }),
        input: () => ({}),
        price: 100
      }
    ],
    services: Layer.empty
  })
  const few = { runs: 1, steps: 12, seed: 3 }
  const fails = async (workload: Simulator.Workload<Operation.AnyCall<never, never>>) =>
    Effect.runPromise(Effect.flip(Simulator.check({ ...few, workload })))

  test("of an operation that uses Math.random, with the first line that differs and likely causes", async () => {
    const { message, violations } = await fails(draw(Effect.sync(() => Math.random())))
    expect(violations).toEqual(["two runs of seed 3 differ"])
    const [one = "", other = ""] = message.split("\n").flatMap((line) => /^ {4}[12] (?<line>.*)$/u.exec(line)?.groups?.["line"] ?? [])
    expect(one.replace(/done \S+/u, "")).toBe(other.replace(/done \S+/u, ""))
    expect(one).not.toBe(other)
    for (const cause of ["Math.random", "crypto.randomUUID", "Date.now", "Map"]) expect(message).toContain(cause)
  })

  test("of a workload that is one value and counts over all runs, but not of a function that makes it anew", async () => {
    let total = 0
    const counting = Effect.sync(() => total++)
    expect((await fails(draw(counting))).violations).toEqual(["two runs of seed 3 differ"])
    const anew = () => {
      let count = 0
      return draw(Effect.sync(() => count++))
    }
    await Effect.runPromise(Simulator.check({ ...few, workload: anew }))
  })

  test("not of an operation that draws by Effect's Random", async () => {
    await Effect.runPromise(Simulator.check({ ...few, workload: draw(Random.next) }))
  })
})
