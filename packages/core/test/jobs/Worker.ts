/** A process that runs jobs on the SQLite files of a folder, until it is killed: `node Worker.ts <folder>`. Says `ready`, then nothing. */
import { join } from "node:path"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer, Logger, Schema } from "effect"
import * as Millrace from "../../src/Millrace.ts"
import * as Operation from "../../src/operations/Operation.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"

export const LEASE = 1_500

const family = Operation.family("work", { resource: "work", path: "/work/:job", result: Schema.Struct({ pid: Schema.Int }) })

export const work = Operation.job("bench.work", {
  summary: "Work",
  route: { method: "POST", path: "/work", body: { milliseconds: Schema.Int } },
  family,
  success: Schema.Struct({ id: Schema.String }),
  created: ({ id }) => ({ id }),
  limits: { atOnce: 100, atOnceOfAccount: 100 },
  // A process that crashes with many jobs in hand is no fault of theirs
  attempts: 20,
  run: ({ milliseconds }) => Effect.as(Effect.sleep(milliseconds), { data: { pid: process.pid } })
})

export const host = (folder: string, runner: boolean) =>
  Millrace.layer({
    operations: [work],
    jobs: { runner, concurrency: 8, lease: LEASE },
    recovery: { ttl: 1_000, sweepEvery: 1_000 }
  }).pipe(
    Layer.provideMerge([
      SqliteEventStore.layer({ filename: join(folder, "events.db") }),
      SqliteStateStore.layer({ filename: join(folder, "state.db") }),
      MasterKey.layer(new Uint8Array(32))
    ]),
    Layer.provide(Logger.layer([]))
  )

const [folder] = process.argv.slice(2)
if (import.meta.main && folder !== undefined)
  await Effect.runPromise(
    Layer.build(host(folder, true)).pipe(
      Effect.andThen(Effect.sync(() => console.log("ready"))),
      Effect.andThen(Effect.never),
      Effect.scoped
    )
  )
