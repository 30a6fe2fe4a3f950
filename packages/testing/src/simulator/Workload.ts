/** What is called, how often which, and with what: a host's own operations, or a handful that show every way a call can go. */
import { type BlobStore, type Jobs, Operation } from "@millrace/core"
import { Effect, Layer, Schema } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"

/** What every simulated host has: operations may use it, and a workload does not provide it. */
export type OfHost = Jobs | BlobStore.BlobStore

/** One of the operations. */
export type Offer<Op extends Operation.Any> = Op extends Operation.Any
  ? {
      readonly operation: Op
      /** What callers ask for. `jobs`: ids of jobs that were made, the oldest first, by whomever: for operations that are about one. */
      readonly input: (random: SeededRandom.SeededRandom, jobs: ReadonlyArray<string>) => Operation.InputOf<Op>
      /** Thousandths of a credit for each unit, to begin with: administrators publish others. */
      readonly price: number
    }
  : never

/**
 * Operations and what they need: fakes of their upstreams, which draw no chance and tell no time but through Effect's services, and
 * wait for nothing but those. Whether they fail, hang and lie is the simulator's doing. Jobs are run by the hosts, and their callers
 * wait for them, read, cancel and download them without operations for that among the offers.
 */
export interface Workload<Op extends Operation.Any> {
  readonly offers: readonly [Offer<Op>, ...ReadonlyArray<Offer<Op>>]
  /** Built at each host anew; what hosts have in common lies outside of it. */
  readonly services: Layer.Layer<Exclude<Operation.Services<Op>, OfHost>>
}

const Result = Schema.Struct({ n: Schema.Int, serial: Schema.Int })

/** Steps of the job that records them. */
const STEPS = 3

/**
 * Operations without a meaning: by the piece, by the batch, one that makes something, one for nothing; and unless `jobs` is false, jobs:
 * one in steps, one that is longer than a lease, one that makes a file. New for each run.
 */
export const standard = ({ jobs = true }: { readonly jobs?: boolean } = {}) => {
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

  // The upstream knows a job by its id, and does the same work once, however often it is asked
  const once = (id: string, n: number) =>
    Effect.sync(() => {
      const data = made.get(id) ?? { n, serial: ++serials }
      made.set(id, data)
      return data
    })
  const created = Schema.Struct({ id: Schema.String, status: Schema.String })
  const works = Operation.family("work", {
    resource: "work",
    path: "/work/:job",
    result: Result,
    checkpoint: Schema.Struct({ step: Schema.Int, by: Schema.String })
  })
  const steps = Operation.job("work.steps", {
    summary: "As many units as asked for, or fewer, in steps that are recorded",
    route: { method: "POST", path: "/work", body: { n: Schema.Int } },
    family: works,
    success: created,
    created: ({ id, status }) => ({ id, status }),
    quantity: ({ n }) => n,
    run: ({ n }, { attempt, checkpoint, id, progress }) =>
      Effect.gen(function* () {
        for (let step = checkpoint?.step ?? 0; step < STEPS; step++) {
          yield* Effect.sleep(200 * (n % 7))
          yield* progress((100 * (step + 1)) / STEPS, { step: step + 1, by: `${attempt}` })
        }
        const data = yield* once(id, n)
        return { data, quantity: data.serial % 3 === 0 ? Math.floor(n / 2) : n }
      }),
    timeout: "20 seconds",
    attempts: 3,
    deadline: "8 minutes",
    retention: "20 minutes"
  })
  const long = Operation.job("work.long", {
    summary: "Takes longer than a lease, and tells only how far it is",
    route: { method: "POST", path: "/work/long", body: { n: Schema.Int } },
    family: works,
    success: created,
    created: ({ id, status }) => ({ id, status }),
    run: ({ n }, { id, progress }) =>
      Effect.gen(function* () {
        yield* progress(10)
        yield* Effect.sleep(1_500 * n)
        yield* progress(50)
        yield* Effect.sleep(1_500 * n)
        return { data: yield* once(id, n) }
      }),
    timeout: "70 seconds",
    attempts: 2,
    deadline: "100 seconds",
    retention: "2 minutes",
    limits: { atOnce: 4, atOnceOfAccount: 2, ofAccount: 20 }
  })
  const pictures = Operation.family("picture", { resource: "picture", path: "/pictures/:job", result: Result })
  const picture = Operation.job("picture.make", {
    summary: "Makes files",
    route: { method: "POST", path: "/pictures", body: { n: Schema.Int } },
    family: pictures,
    success: created,
    created: ({ id, status }) => ({ id, status }),
    run: ({ n }, { id, store }) =>
      Effect.gen(function* () {
        const data = yield* once(id, n)
        const files = [yield* store(Buffer.from(`${id} ${n}`), { contentType: "image/png" })]
        if (n % 2 === 0) files.push(yield* store(Buffer.from(`${id} ${n} again`), { contentType: "image/png" }))
        return { data, artifacts: files }
      }),
    timeout: "10 seconds",
    deadline: "10 minutes"
  })

  type Any = typeof one | typeof batch | typeof create | typeof free | typeof steps | typeof long | typeof picture
  const input = (random: SeededRandom.SeededRandom) => ({ n: 1 + random.below(20) })
  const workload: Workload<Any> = {
    offers: [
      { operation: one, input, price: 1_500 },
      { operation: batch, input: (random) => ({ n: 1 + random.below(random.pick([3, 20, 250])) }), price: 600 },
      { operation: create, input, price: 2_000 },
      { operation: free, input, price: 0 },
      ...(jobs
        ? ([
            { operation: steps, input, price: 400 },
            { operation: long, input, price: 1_200 },
            { operation: picture, input, price: 2_500 }
          ] as const)
        : [])
    ],
    services: Layer.empty
  }
  return workload
}
