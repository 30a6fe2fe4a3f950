/**
 * Jobs that do nothing, from the call that accepts each to its last write, durable: by Millrace, where that is the charge on its account, on
 * SQLite and on PostgreSQL; by pg-boss on that same PostgreSQL, where it is the job's completion and nobody pays.
 */
import { setTimeout } from "node:timers/promises"
import { Charge, Ledger, Millrace, newRequestId, Operation } from "@millrace/core"
import { Effect, Layer, ManagedRuntime, References, Schema } from "effect"
import pg from "pg"
import { PgBoss } from "pg-boss"
import { openAccounts, postgresStores, stores } from "./host.ts"
import { compare, median, type Options, withFolder } from "./measure.ts"
import { withPostgres } from "./postgres.ts"

/** Those who ask for jobs, each for one after another. */
const CLIENTS = 64
const ACCOUNTS = 10
/** A round is so many jobs for each second of it, the same for all. */
const JOBS_A_SECOND = 1_000
const SAMPLES = 21
const QUEUED = 10_000
/** How often it is looked whether all is done, in milliseconds. */
const LOOK = 5
/** Nothing happens for so long before a job that meets an idle host, in milliseconds. */
const REST = 30

const CONNECTIONS = 16
/** Batches of this size, one worker and no delay after a full batch were the fastest of pg-boss's settings here. */
const WORK = { batchSize: 100, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 }

interface Contestant {
  /** Accepts so many jobs and waits until nothing is left to do for them. */
  readonly work: (count: number) => Promise<void>
  /** Accepts one job; answers when it was accepted and when it was started, in milliseconds. */
  readonly one: () => Promise<{ readonly accepted: number; readonly started: number }>
}

/** When the newest job of all was started. */
let started = 0

const start = () => {
  started = performance.now()
}

// Millrace

const family = Operation.family("bench", { resource: "work", path: "/bench/work/:job", result: Schema.Struct({ ok: Schema.Boolean }) })

const work = Operation.job("bench.work", {
  summary: "Does nothing",
  route: { method: "POST", path: "/bench/work" },
  family,
  success: Schema.Struct({ id: Schema.String }),
  created: ({ id }) => ({ id }),
  limits: { atOnce: CLIENTS, atOnceOfAccount: CLIENTS, ofAccount: 1_000_000 },
  run: () =>
    Effect.sync(() => {
      start()
      return { data: { ok: true } }
    })
})

const host = (place: ReturnType<typeof stores> | ReturnType<typeof postgresStores>, jobs: Millrace.JobOptions) =>
  Millrace.layer({ operations: [work], jobs: { concurrency: CLIENTS, ...jobs } }).pipe(
    Layer.provideMerge(place),
    Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "Warn"))
  )

const accept = Effect.fnUntraced(function* (accounts: ReadonlyArray<string>, n: number) {
  const charges = yield* Charge.Charge
  yield* charges.run(work, {}, { accountId: accounts[n % accounts.length] ?? "", requestId: yield* newRequestId })
})

const acceptAll = (accounts: ReadonlyArray<string>, count: number) =>
  Effect.forEach(Array.from({ length: count }).keys(), (n) => accept(accounts, n), { concurrency: CLIENTS, discard: true })

/** All that were accepted are charged: a job's price is held until then. */
const settled = Effect.fnUntraced(function* (accounts: ReadonlyArray<string>) {
  const ledger = yield* Ledger
  for (const account of accounts) while ((yield* ledger.balance(account)).held > 0) yield* Effect.sleep(LOOK)
})

/** What `use` does with a host that is stopped after it. */
const withMillrace = async <A>(
  layer: ReturnType<typeof host>,
  use: (runtime: ManagedRuntime.ManagedRuntime<Layer.Success<typeof layer>, Layer.Error<typeof layer>>) => Promise<A>
): Promise<A> => {
  const runtime = ManagedRuntime.make(layer)
  try {
    return await use(runtime)
  } finally {
    await runtime.dispose()
  }
}

const withJobs = <A>(
  place: Parameters<typeof host>[0],
  documents: NonNullable<Millrace.JobOptions["documents"]>,
  use: (contestant: Contestant) => Promise<A>
) =>
  withMillrace(host(place, { documents }), async (runtime) => {
    const accounts = await runtime.runPromise(openAccounts(ACCOUNTS, work.key))
    return use({
      work: (count) => runtime.runPromise(Effect.andThen(acceptAll(accounts, count), settled(accounts))),
      one: async () => {
        await runtime.runPromise(accept(accounts, 0))
        const accepted = performance.now()
        await runtime.runPromise(settled(accounts))
        return { accepted, started }
      }
    })
  })

const heap = () => {
  for (let i = 0; i < 3; i++) globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

/** Megabytes of heap that queued jobs take at a host, after a tenth of them that pays for what any number needs. */
const queuedMegabytes = () =>
  withFolder((folder) =>
    withMillrace(host(stores(folder), { runner: false }), async (runtime) => {
      const accounts = await runtime.runPromise(openAccounts(ACCOUNTS, work.key))
      await runtime.runPromise(acceptAll(accounts, QUEUED / 10))
      const before = heap()
      await runtime.runPromise(acceptAll(accounts, QUEUED))
      return Number(((heap() - before) / 1e6).toFixed(1))
    })
  )

// pg-boss

/** As its documentation has it for many small jobs. `notify`: the server wakes the worker, which costs every job that is sent. */
const queue = async (boss: PgBoss, client: pg.Client, name: string, notify: boolean): Promise<Contestant> => {
  let handled = 0
  let sent = 0
  const send = async () => {
    await boss.send(name, { n: sent++ })
  }
  const completed = async () => {
    while (handled < sent) await setTimeout(LOOK)
    const open = "select 1 from pgboss.job where name = $1 and state < 'completed' limit 1"
    while ((await client.query(open, [name])).rows.length > 0) await setTimeout(LOOK)
  }
  await boss.createQueue(name, { notify })
  await boss.work(name, WORK, async (jobs) => {
    start()
    handled += jobs.length
  })
  return {
    work: async (count) => {
      let left = count
      const one = async () => {
        while (left-- > 0) await send()
      }
      await Promise.all(Array.from({ length: CLIENTS }, one))
      await completed()
    },
    one: async () => {
      await send()
      const accepted = performance.now()
      await completed()
      return { accepted, started }
    }
  }
}

const withPgBoss = async <A>(url: string, use: (polled: Contestant, notified: Contestant) => Promise<A>): Promise<A> => {
  const boss = new PgBoss({ connectionString: url, max: CONNECTIONS, useListenNotify: true })
  const client = new pg.Client({ connectionString: url })
  boss.on("error", (error) => console.error(error))
  try {
    await client.connect()
    await boss.start()
    return await use(await queue(boss, client, "polled", false), await queue(boss, client, "notified", true))
  } finally {
    await boss.stop({ graceful: false })
    await client.end()
  }
}

// the comparison

const rate = (contestant: Contestant) => async (millis: number) => {
  const count = Math.ceil((JOBS_A_SECOND * millis) / 1000)
  const began = performance.now()
  await contestant.work(count)
  return (count / (performance.now() - began)) * 1000
}

const acceptToStart = async (contestant: Contestant): Promise<number> => {
  const waits: Array<number> = []
  for (let i = 0; i < SAMPLES; i++) {
    await setTimeout(REST)
    const { accepted, started } = await contestant.one()
    waits.push(started - accepted)
  }
  return Number(median(waits).toFixed(1))
}

/** A worker that polls starts a job when it next looks, half a second later at the most. */
const POLLED = "pg-boss, polling"

const compared = async (contestants: Readonly<Record<string, Contestant>>, options: Options) => {
  const rates = await compare(Object.fromEntries(Object.entries(contestants).map(([name, one]) => [name, rate(one)])), options)
  const rows = []
  for (const [name, contestant] of Object.entries(contestants)) {
    const { rate, ratio } = rates[name] ?? {}
    const idle = name === POLLED ? {} : { "accepted to started, idle, ms": await acceptToStart(contestant) }
    rows.push({ name, "jobs/s": rate, ratio, ...idle })
  }
  return rows
}

/** Millrace on both stores, with the documents of jobs in the state store and in their events. */
const withAll = <A>(url: string, use: (contestants: Readonly<Record<string, Contestant>>) => Promise<A>) =>
  withFolder((one) =>
    withFolder((other) =>
      withJobs(postgresStores(url), "state", (onPostgres) =>
        withJobs(postgresStores(url, "in_events"), "events", (inPostgresEvents) =>
          withJobs(stores(one), "state", (onSqlite) =>
            withJobs(stores(other), "events", (inSqliteEvents) =>
              use({
                "Millrace, PostgreSQL": onPostgres,
                "Millrace, PostgreSQL, documents in events": inPostgresEvents,
                "Millrace, SQLite": onSqlite,
                "Millrace, SQLite, documents in events": inSqliteEvents
              })
            )
          )
        )
      )
    )
  )

export const run = async (options: Options) => {
  const memory = await queuedMegabytes()
  const rows = await withPostgres((url) =>
    withPgBoss(url, (polled, notified) =>
      withAll(url, (millrace) => compared({ [POLLED]: polled, "pg-boss, notified": notified, ...millrace }, options))
    )
  )
  return rows.map((row) => (row.name === "Millrace, SQLite" ? { ...row, [`MB of heap for ${QUEUED} queued`]: memory } : row))
}
