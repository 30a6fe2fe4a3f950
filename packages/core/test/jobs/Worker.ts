/**
 * A process that accepts its share of the jobs of one log and prints `accepted`. After a line on its input it prints its runner id and runs
 * jobs until it is killed: `node Worker.ts <store as JSON> <from> <to> <concurrency>`.
 */
import { once } from "node:events"
import { join } from "node:path"
import { PostgresStores } from "@millrace/event-store-postgres"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer, Logger, Schema } from "effect"
import { Charge } from "../../src/billing/Charge.ts"
import { JobRunner } from "../../src/jobs/JobRunner.ts"
import * as Millrace from "../../src/Millrace.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import * as Operation from "../../src/work/Operation.ts"

/** Milliseconds. */
export const LEASE = 1_500

export type Store =
  | { readonly kind: "sqlite"; readonly folder: string }
  | { readonly kind: "postgres"; readonly url: string; readonly schema: string }

/** Job `i` and its expected result. */
export const jobOf = (i: number) => {
  const units = 1 + (i % 3)
  return {
    accountId: `acc_${i % 10}`,
    requestId: `req_${i}`,
    units,
    done: i % 2 === 0 ? units : units - 1,
    milliseconds: 30 + (i % 7) * 10
  }
}

export const Result = Schema.Struct({ of: Schema.Int })

const family = Operation.family("work", { resource: "work", path: "/work/:job", result: Result })

export const work = Operation.job("bench.work", {
  summary: "Work",
  route: { method: "POST", path: "/work", body: { of: Schema.Int } },
  family,
  success: Schema.Struct({ id: Schema.String }),
  created: ({ id }) => ({ id }),
  quantity: ({ of }) => jobOf(of).units,
  limits: { atOnce: 100, atOnceOfAccount: 100 },
  // A crash of a process also counts as an attempt of its jobs
  attempts: 20,
  run: ({ of }) => Effect.as(Effect.sleep(jobOf(of).milliseconds), { data: { of }, quantity: jobOf(of).done })
})

export const host = (store: Store) =>
  Millrace.layer({ operations: [work], jobs: { runner: false }, recovery: { ttl: 3_000, sweepEvery: 3_000 } }).pipe(
    Layer.provideMerge([
      store.kind === "postgres"
        ? PostgresStores.layer(store)
        : Layer.mergeAll(
            SqliteEventStore.layer({ filename: join(store.folder, "events.db") }),
            SqliteStateStore.layer({ filename: join(store.folder, "state.db") })
          ),
      MasterKey.layer(new Uint8Array(32))
    ]),
    Layer.provide(Logger.layer([]))
  )

const main = (from: number, to: number, concurrency: number) =>
  Effect.gen(function* () {
    const charge = yield* Charge
    const share = Array.from({ length: to - from }, (_, i) => from + i)
    yield* Effect.forEach(share, (i) => charge.run(work, { of: i }, jobOf(i)), { concurrency: 64, discard: true })
    console.log("accepted")
    yield* Effect.promise(() => once(process.stdin, "data"))
    const context = yield* Layer.build(JobRunner.layer([work], { concurrency, lease: LEASE }))
    const { status } = yield* Effect.provideContext(JobRunner, context)
    console.log(`running ${(yield* status).id}`)
    return yield* Effect.never
  })

const [store, ...numbers] = process.argv.slice(2)
if (import.meta.main && store !== undefined) {
  const [from = 0, to = 0, concurrency = 1] = numbers.map(Number)
  await Effect.runPromise(main(from, to, concurrency).pipe(Effect.provide(host(JSON.parse(store))), Effect.scoped))
}
