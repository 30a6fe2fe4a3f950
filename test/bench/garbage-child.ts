/** Measures what one charge, or one billed request, allocates, and sends the kilobytes of each round to the parent process. */
import "effect/schema/SchemaJITCompiler/enable"
import { PerformanceObserver } from "node:perf_hooks"
import { Effect, ManagedRuntime } from "effect"
import { ROUNDS } from "./figures.ts"
import { charge, host, openAccounts } from "./host.ts"
import { billed, load } from "./http.ts"
import { withFolder } from "./measure.ts"

const CLIENTS = 64
/** Long enough that the optimized code runs, so that its allocations are counted. */
const WARM_UP = 20_000
const CALLS = 3_200

let collections = 0
new PerformanceObserver(() => collections++).observe({ entryTypes: ["gc"] })

/** `run` makes about this many calls and answers how many. Rounds in which memory was collected do not count. */
const kilobytesOf = async (run: (calls: number) => Promise<number>): Promise<ReadonlyArray<number>> => {
  await run(WARM_UP)
  const rounds: Array<number> = []
  while (rounds.length < ROUNDS) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 20))
    const before = { collections, heap: process.memoryUsage().heapUsed }
    const calls = await run(CALLS)
    const heap = process.memoryUsage().heapUsed
    await new Promise((resolve) => setTimeout(resolve, 20))
    if (collections === before.collections) rounds.push((heap - before.heap) / calls / 1_000)
  }
  return rounds
}

const charges = (folder: string): Promise<ReadonlyArray<number>> => {
  const millrace = ManagedRuntime.make(host(folder))
  const client = (ids: ReadonlyArray<string>, calls: number, first: number) =>
    Effect.gen(function* () {
      for (let i = 0; i < calls; i++) yield* charge(ids[(first * 7_919 + i * 104_729) % ids.length] ?? "")
    })
  return millrace
    .runPromise(openAccounts(1_000))
    .then((ids) =>
      kilobytesOf(async (calls) => {
        const each = Math.ceil(calls / CLIENTS)
        const clients = Array.from({ length: CLIENTS }, (_, first) => client(ids, each, first))
        await millrace.runPromise(Effect.all(clients, { concurrency: "unbounded", discard: true }))
        return each * CLIENTS
      })
    )
    .finally(() => millrace.dispose())
}

const requests = (folder: string): Promise<ReadonlyArray<number>> =>
  Effect.runPromise(
    billed(folder, ({ key, path, port }) =>
      kilobytesOf((calls) => load(port, path, key, { requests: Math.ceil(calls / CLIENTS) * CLIENTS }))
    )
  )

const kilobytes = await withFolder(process.argv[2] === "charge" ? charges : requests)
process.send?.(kilobytes, () => process.exit())
