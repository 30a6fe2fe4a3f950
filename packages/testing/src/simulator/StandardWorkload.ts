/**
 * The standard workload: one operation for each way in which a call can be billed. A fixed price, a price by quantity with partial work, a
 * resource that recovery can find again, a free call, and jobs: one with checkpoints, one that outlasts its lease, one that stores files.
 */
import { type BlobStore, Operation, type UpstreamUnavailable } from "@millrace/core"
import { Effect, Layer, Schema } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Offer, Workload } from "./Workload.ts"

const Result = Schema.Struct({ n: Schema.Int, serial: Schema.Int })
type Result = typeof Result.Type
const Created = Schema.Struct({ id: Schema.String, status: Schema.String })
const body = { n: Schema.Int }

/** The upstream that all hosts of one simulation share. Results carry a serial number, so that no two are alike. */
class Upstream {
  #serial = 0
  readonly #made = new Map<string, Result>()

  make(n: number): Effect.Effect<Result> {
    return Effect.sync(() => ({ n, serial: ++this.#serial }))
  }

  /** Does the work of one id once; later calls get the first result. */
  makeOnce(id: string, n: number): Effect.Effect<Result> {
    return Effect.sync(() => {
      const made = this.#made.get(id) ?? { n, serial: ++this.#serial }
      this.#made.set(id, made)
      return made
    })
  }

  find(id: string): Effect.Effect<Result | undefined> {
    return Effect.sync(() => this.#made.get(id))
  }
}

/** Every third piece of work is done by half, so that holds are settled for less than they hold. */
const quantityOf = ({ n, serial }: Result): number => (serial % 3 === 0 ? Math.floor(n / 2) : n)

const callsOf = (upstream: Upstream) => {
  const single = (key: string, path: `/${string}`) =>
    Operation.make(key, {
      summary: "One unit",
      route: { method: "POST", path, body },
      success: Result,
      run: ({ n }) => Effect.map(upstream.make(n), (data) => ({ data }))
    })
  const batch = Operation.make("sim.batch", {
    summary: "Up to as many units as requested",
    route: { method: "POST", path: "/batch", body },
    success: Result,
    quantity: ({ n }) => n,
    run: ({ n }) => Effect.map(upstream.make(n), (data) => ({ data, quantity: quantityOf(data) })),
    timeout: "2 seconds"
  })
  const create = Operation.make("resource.create", {
    summary: "Creates a resource named after its reservation",
    route: { method: "POST", path: "/create", body },
    success: Result,
    run: ({ n }, { reservationId }) => Effect.map(upstream.makeOnce(reservationId, n), (data) => ({ data })),
    recover: (reservationId) => Effect.map(upstream.find(reservationId), (data) => data && { data })
  })
  return { one: single("sim.one", "/one"), batch, create, free: single("free.one", "/free") }
}

/** Stores one file, or two if `n` is even. */
const makePictures = (
  upstream: Upstream,
  n: number,
  { id, store }: Operation.RunningJob<null>
): Effect.Effect<Operation.JobOutcome<Result>, UpstreamUnavailable, BlobStore.BlobStore> =>
  Effect.gen(function* () {
    const data = yield* upstream.makeOnce(id, n)
    const artifacts = [yield* store(Buffer.from(`${id} ${n}`), { contentType: "image/png" })]
    if (n % 2 === 0) artifacts.push(yield* store(Buffer.from(`${id} ${n} again`), { contentType: "image/png" }))
    return { data, artifacts }
  })

/** Steps of the job that records checkpoints. */
const STEPS = 3

const jobsOf = (upstream: Upstream) => {
  const works = Operation.family("work", {
    resource: "work",
    path: "/work/:job",
    result: Result,
    checkpoint: Schema.Struct({ step: Schema.Int, by: Schema.String })
  })
  const created = { success: Created, created: ({ id, status }: typeof Created.Type) => ({ id, status }) }
  const steps = Operation.job("work.steps", {
    summary: "Up to as many units as requested, in steps with checkpoints",
    route: { method: "POST", path: "/work", body },
    family: works,
    ...created,
    quantity: ({ n }) => n,
    run: ({ n }, { attempt, checkpoint, id, progress }) =>
      Effect.gen(function* () {
        for (let step = checkpoint?.step ?? 0; step < STEPS; step++) {
          yield* Effect.sleep(200 * (n % 7))
          yield* progress((100 * (step + 1)) / STEPS, { step: step + 1, by: `${attempt}` })
        }
        const data = yield* upstream.makeOnce(id, n)
        return { data, quantity: quantityOf(data) }
      }),
    timeout: "20 seconds",
    attempts: 3,
    deadline: "8 minutes",
    retention: "20 minutes"
  })
  const long = Operation.job("work.long", {
    summary: "Takes longer than a lease, and records its progress without a checkpoint",
    route: { method: "POST", path: "/work/long", body },
    family: works,
    ...created,
    run: ({ n }, { id, progress }) =>
      Effect.gen(function* () {
        yield* progress(10)
        yield* Effect.sleep(1_500 * n)
        yield* progress(50)
        yield* Effect.sleep(1_500 * n)
        return { data: yield* upstream.makeOnce(id, n) }
      }),
    timeout: "70 seconds",
    attempts: 2,
    deadline: "100 seconds",
    retention: "2 minutes",
    limits: { atOnce: 4, atOnceOfAccount: 2, ofAccount: 20 }
  })
  const pictures = Operation.family("picture", { resource: "picture", path: "/pictures/:job", result: Result })
  const picture = Operation.job("picture.make", {
    summary: "Stores one or two files",
    route: { method: "POST", path: "/pictures", body },
    family: pictures,
    ...created,
    run: ({ n }, job) => makePictures(upstream, n, job),
    timeout: "10 seconds",
    deadline: "10 minutes"
  })
  return { steps, long, picture }
}

type Calls = ReturnType<typeof callsOf>
type JobOperations = ReturnType<typeof jobsOf>
export type StandardOperation = Calls[keyof Calls] | JobOperations[keyof JobOperations]

const input = (random: SeededRandom) => ({ n: 1 + random.below(20) })

const jobOffers = ({ long, picture, steps }: JobOperations): ReadonlyArray<Offer<StandardOperation>> => [
  { operation: steps, input, price: 400 },
  { operation: long, input, price: 1_200 },
  { operation: picture, input, price: 2_500 }
]

/** The standard workload for one simulation, without its jobs if `jobs` is false. */
export const standard = ({ jobs = true }: { readonly jobs?: boolean } = {}): Workload<StandardOperation> => {
  const upstream = new Upstream()
  const { batch, create, free, one } = callsOf(upstream)
  return {
    offers: [
      { operation: one, input, price: 1_500 },
      { operation: batch, input: (random) => ({ n: 1 + random.below(random.pick([3, 20, 250])) }), price: 600 },
      { operation: create, input, price: 2_000 },
      { operation: free, input, price: 0 },
      ...(jobs ? jobOffers(jobsOf(upstream)) : [])
    ],
    services: Layer.empty
  }
}
