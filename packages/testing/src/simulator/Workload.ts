/** What is called, how often which, and with what: a host's own operations, or a handful that show every way a call can go. */
import { Operation } from "@millrace/core"
import { Effect, Layer, Schema } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"

/** One of the operations. */
export type Offer<Op extends Operation.Any> = Op extends Operation.Any
  ? {
      readonly operation: Op
      /** What callers ask for. */
      readonly input: (random: SeededRandom.SeededRandom) => Parameters<Op["run"]>[0]
      /** Thousandths of a credit for each unit, to begin with: administrators publish others. */
      readonly price: number
    }
  : never

/**
 * Operations and what they need: fakes of their upstreams, which draw no chance and tell no time but through Effect's services, and
 * wait for nothing but those. Whether they fail, hang and lie is the simulator's doing.
 */
export interface Workload<Op extends Operation.Any> {
  readonly offers: readonly [Offer<Op>, ...ReadonlyArray<Offer<Op>>]
  /** Built at each host anew; what hosts have in common lies outside of it. */
  readonly services: Layer.Layer<Operation.Services<Op>>
}

const Result = Schema.Struct({ n: Schema.Int, serial: Schema.Int })

/** Operations without a meaning: by the piece, by the batch, one that makes something, one for nothing. New for each run. */
export const standard = () => {
  let serials = 0
  const made = new Map<string, typeof Result.Type>()
  const done = (n: number) => Effect.sync(() => ({ n, serial: ++serials }))

  const one = Operation.make("sim.one", {
    summary: "One unit",
    route: { method: "POST", path: "/one", body: { n: Schema.Int } },
    success: Result,
    run: ({ n }) => Effect.map(done(n), (data) => ({ data }))
  })
  const batch = Operation.make("sim.batch", {
    summary: "As many units as asked for, or fewer",
    route: { method: "POST", path: "/batch", body: { n: Schema.Int } },
    success: Result,
    quantity: ({ n }) => n,
    run: ({ n }) => Effect.map(done(n), (data) => ({ data, quantity: data.serial % 3 === 0 ? Math.floor(n / 2) : n })),
    timeout: "2 seconds"
  })
  const create = Operation.make("resource.create", {
    summary: "Makes a thing named after its reservation",
    route: { method: "POST", path: "/create", body: { n: Schema.Int } },
    success: Result,
    run: ({ n }, { reservationId }) =>
      Effect.map(done(n), (data) => {
        made.set(reservationId, data)
        return { data }
      }),
    recover: (reservationId) =>
      Effect.sync(() => {
        const data = made.get(reservationId)
        return data && { data }
      })
  })
  const free = Operation.make("free.one", {
    summary: "Nothing to pay",
    route: { method: "POST", path: "/free", body: { n: Schema.Int } },
    success: Result,
    run: ({ n }) => Effect.map(done(n), (data) => ({ data }))
  })

  type Any = typeof one | typeof batch | typeof create | typeof free
  const input = (random: SeededRandom.SeededRandom) => ({ n: 1 + random.below(20) })
  const workload: Workload<Any> = {
    offers: [
      { operation: one, input, price: 1_500 },
      { operation: batch, input: (random) => ({ n: 1 + random.below(random.pick([3, 20, 250])) }), price: 600 },
      { operation: create, input, price: 2_000 },
      { operation: free, input, price: 0 }
    ],
    services: Layer.empty
  }
  return workload
}
