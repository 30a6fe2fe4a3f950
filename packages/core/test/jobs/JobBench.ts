/**
 * A job operation whose behaviour a test sets, and hosts that accept and run its jobs. Each host stands for a process over shared stores,
 * whose access to them can fail at any moment.
 */
import { type Deadlines, EventStore, StateStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Exit, Layer, Schema, Scope, Stream } from "effect"
import { Charge } from "../../src/billing/Charge.ts"
import { PriceBook } from "../../src/billing/PricePlan.ts"
import * as Credits from "../../src/Credits.ts"
import * as Job from "../../src/jobs/Job.ts"
import { Jobs } from "../../src/jobs/Jobs.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import * as Millrace from "../../src/Millrace.ts"
import * as Operation from "../../src/Operation.ts"
import { BlobStore } from "../../src/vault/BlobStore.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import * as MemoryBlobStore from "../../src/vault/MemoryBlobStore.ts"
import { Vault } from "../../src/vault/Vault.ts"
import type { OperationError } from "../../src/work/OperationError.ts"
import { type Stores, seconds, stores, UNIT, way } from "../billing/Bench.ts"
import { MASTER } from "../vault/Vaults.ts"

// the operation

export const Data = Schema.Struct({ text: Schema.String })
export const Checkpoint = Schema.Struct({ at: Schema.Int })
export type Running = Operation.RunningJob<typeof Checkpoint.Type>
export type Outcome = Operation.JobOutcome<typeof Data.Type>

export interface Input {
  readonly text: string
  readonly units?: number
}

export interface Run {
  readonly host: string
  readonly input: Input
  readonly job: Pick<Running, "id" | "accountId" | "attempt" | "checkpoint">
}

export interface Bench {
  /** Every attempt that began, in order. */
  readonly runs: Array<Run>
  answer: (input: Input, job: Running) => Effect.Effect<Outcome, OperationError, BlobStore>
}

export const makeBench = (): Bench => ({ runs: [], answer: ({ text }) => Effect.succeed({ data: { text: text.toUpperCase() } }) })

const jobs = Operation.family("bench", { resource: "work", path: "/bench/:job", result: Data, checkpoint: Checkpoint })

export interface OperationOptions {
  readonly attempts?: number
  readonly timeout?: number
  readonly deadline?: number
  readonly limits?: { readonly atOnce?: number; readonly atOnceOfAccount?: number; readonly ofAccount?: number }
}

/** The reply that reads a job. */
const Reading = Schema.Struct({
  job_id: Schema.String,
  status: Schema.String,
  percent: Schema.Int,
  text: Schema.NullOr(Schema.String),
  failure: Schema.NullOr(Schema.String),
  message: Schema.NullOr(Schema.String),
  files: Schema.Int
})

const operationsOf = (bench: Bench, host: string, options: OperationOptions) => ({
  work: Operation.job("bench.work", {
    summary: "Work",
    route: { method: "POST", path: "/bench", body: { text: Schema.String, units: Schema.optionalKey(Schema.Int) } },
    family: jobs,
    success: Schema.Struct({ id: Schema.String, status: Schema.String }),
    created: ({ id, status }) => ({ id, status }),
    quantity: ({ units = 1 }) => units,
    run: (input, job) =>
      Effect.suspend(() => {
        const { accountId, attempt, checkpoint, id } = job
        bench.runs.push({ host, input, job: { id, accountId, attempt, checkpoint } })
        return bench.answer(input, job)
      }),
    ...options
  }),
  read: Operation.readJob("bench.read", jobs, {
    summary: "Read",
    success: Reading,
    view: ({ artifacts, details, failure, id, percent, result, status }) =>
      Effect.gen(function* () {
        const text = (yield* result)?.text ?? null
        const message = (yield* details)?.message ?? null
        return { job_id: id, status, percent, text, failure: failure ?? null, message, files: artifacts.length }
      })
  }),
  cancel: Operation.cancelJob("bench.cancel", jobs, { summary: "Cancel" }),
  download: Operation.downloadJob("bench.download", jobs, { summary: "Download", contentTypes: ["image/png"] })
})

const PRICES = { "bench.work": Credits.of(UNIT), "bench.read": Credits.zero, "bench.cancel": Credits.zero, "bench.download": Credits.zero }

// hosts

export const LEASE = seconds(30)

export interface HostOptions extends OperationOptions {
  readonly name?: string
  readonly jobs?: Millrace.JobOptions
  readonly recovery?: Deadlines.Options
}

/** Shared stores and blobs. */
export interface Shared extends Stores {
  readonly blobs: BlobStore["Service"]
}

const master = Layer.orDie(MasterKey.layer(MASTER))

export const shared = Effect.gen(function* () {
  const { events, states } = yield* stores
  const vault = Layer.provide(Vault.layer, [Layer.succeed(StateStore.StateStore, states), master])
  const context = yield* Layer.build(Layer.fresh(Layer.provide(MemoryBlobStore.layer, vault)))
  return { events, states, blobs: yield* Effect.provideContext(BlobStore, context) }
})

let hosts = 0

/** Opens a process. It ends with the scope. */
export const host = (to: Shared, bench: Bench, { name = `host${++hosts}`, jobs, recovery = {}, ...options }: HostOptions = {}) =>
  Effect.gen(function* () {
    const { events, states, ...faults } = way(to)
    const operations = operationsOf(bench, name, options)
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, events),
      Layer.succeed(StateStore.StateStore, states),
      Layer.succeed(BlobStore, to.blobs),
      master
    )
    // Otherwise every test would have to let time pass before it ends
    const layer = Millrace.layer({ operations: Object.values(operations), jobs: { drain: 0, ...jobs }, recovery })
    const context = yield* Layer.build(Layer.fresh(Layer.provideMerge(layer, base)))
    const services = Effect.all({ charge: Charge, ledger: Ledger, prices: PriceBook, jobs: Jobs })
    const { charge, ledger, prices, jobs: service } = yield* Effect.provideContext(services, context)
    yield* prices.publish(PRICES)
    let requests = 0
    const caller = (accountId: string) => ({ accountId, requestId: `req_${name}_${++requests}` })
    return {
      ...faults,
      name,
      charge,
      ledger,
      prices,
      jobs: service,
      operations,
      context,
      create: (
        accountId: string,
        { key, text = "text", units }: { readonly key?: string; readonly text?: string; readonly units?: number } = {}
      ) => {
        const input: Input = { text, ...(units === undefined ? {} : { units }) }
        return Effect.provideContext(
          charge.run(operations.work, input, {
            ...caller(accountId),
            ...(key === undefined ? {} : { idempotency: { key, request: JSON.stringify(input) } })
          }),
          context
        )
      },
      read: (accountId: string, job: string) =>
        Effect.map(Effect.provideContext(charge.run(operations.read, { job }, caller(accountId)), context), ({ data, retryAfter }) => ({
          ...decodeRead(data),
          retryAfter
        })),
      cancel: (accountId: string, job: string, key?: string) => {
        const keyed = key === undefined ? {} : { idempotency: { key, request: `cancel ${job}` } }
        const called = charge.run(operations.cancel, { job }, { ...caller(accountId), ...keyed })
        return Effect.map(Effect.provideContext(called, context), ({ data }) => decodeCancel(data))
      },
      open: (accountId: string, amount: number) =>
        Effect.gen(function* () {
          yield* ledger.execute(accountId, Decisions.open({ sealedEmail: "sealed", emailHash: accountId }))
          yield* ledger.execute(
            accountId,
            Decisions.grant({ lotId: `lot_${accountId}`, amount: Credits.of(amount), source: "promotion", expiresAt: null })
          )
          return accountId
        }),
      balance: (accountId: string) =>
        Effect.map(ledger.balance(accountId), ({ available, held }) => ({ available: Number(available), held: Number(held) }))
    }
  })
export type Host = Effect.Success<ReturnType<typeof host>>

const decodeRead = Schema.decodeUnknownSync(Schema.fromJsonString(Reading))
const decodeCancel = Schema.decodeUnknownSync(Schema.fromJsonString(Operation.Cancelled))

/** A process that can be killed, after which nothing that it writes arrives, or stopped in an orderly way. */
export const mortalHost = (to: Shared, bench: Bench, options: HostOptions = {}) =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
    const mortal = yield* Effect.provideService(host(to, bench, options), Scope.Scope, scope)
    const stop = Scope.close(scope, Exit.void)
    return { ...mortal, stop, die: Effect.andThen(mortal.cut, stop) }
  })

/** The usual setting: stores, a bench, a host that runs jobs, and an account with ten credits. */
export const setting = (options: HostOptions = {}) =>
  Effect.gen(function* () {
    const to = yield* shared
    const bench = makeBench()
    const here = yield* host(to, bench, options)
    return { to, bench, here, accountId: yield* here.open("acc_1", 10 * UNIT) }
  })

export const idOf = ({ job }: { readonly job?: { readonly id: string } }): string => {
  if (job === undefined) throw new Error("It became no job")
  return job.id
}

// the log

const { codec } = Job.Job

/** The events of all jobs, in order. */
export const jobEvents = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) =>
    log
      .filter(({ stream }) => StreamName.category(stream) === Job.Job.category)
      .map(({ data, stream, type }) => ({ jobId: StreamName.id(stream), event: codec.decode(type, data) }))
  )

/** The types of the events of jobs, without extensions of leases. */
export const story = (to: Stores) =>
  Effect.map(jobEvents(to), (events) => events.map(({ event }) => event._tag).filter((tag) => tag !== "JobLeaseExtended"))
