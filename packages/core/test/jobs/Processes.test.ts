/** Real processes on one SQLite file: one is killed half way, one is stopped for longer than its lease; every job ends, once. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { EventCodec, EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import { afterEach, beforeEach, expect, test } from "vitest"
import * as Audit from "../../../audit/src/Audit.ts"
import { Charge } from "../../src/billing/Charge.ts"
import { PriceBook } from "../../src/billing/PricePlan.ts"
import * as Credits from "../../src/Credits.ts"
import * as Job from "../../src/jobs/Job.ts"
import { Jobs } from "../../src/jobs/Jobs.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { range } from "../billing/Bench.ts"
import { host, LEASE, work } from "./Worker.ts"

const JOBS = 150

let folder = ""
const workers: Array<ChildProcess> = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "millrace-processes-"))
})
afterEach(async () => {
  for (const worker of workers.splice(0)) {
    if (worker.exitCode !== null || worker.signalCode !== null) continue
    const ended = once(worker, "exit")
    worker.kill("SIGKILL")
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
})

const worker = async (): Promise<ChildProcess> => {
  const file = fileURLToPath(new URL("Worker.ts", import.meta.url))
  const child = spawn(process.execPath, ["--conditions=@millrace/source", file, folder], { stdio: ["ignore", "pipe", "inherit"] })
  workers.push(child)
  const { stdout } = child
  if (stdout === null) throw new Error("It has no output")
  await once(stdout, "data")
  return child
}

const codec = EventCodec.make(Job.Job)

const jobEvents = Effect.gen(function* () {
  const events = yield* EventStore.EventStore
  const log = yield* Stream.runCollect(events.readAll(EventStore.start))
  return log.flatMap(({ data, stream, type }) =>
    StreamName.category(stream) === Job.Job.category ? { jobId: StreamName.id(stream), event: codec.decode(type, data) } : []
  )
})

const ended = Effect.map(jobEvents, (events) => events.filter(({ event }) => event._tag === "JobSucceeded").length)

/** Failsafe: what takes longer than a minute will not come. */
const until = <E, R>(question: Effect.Effect<boolean, E, R>) =>
  Effect.gen(function* () {
    while (!(yield* question)) yield* Effect.sleep(50)
  }).pipe(Effect.timeout("1 minute"))

test("share the jobs of one log, whichever of them is killed or stopped", { timeout: 120_000 }, async () => {
  await Effect.runPromise(
    Effect.gen(function* () {
      const charge = yield* Charge
      const ledger = yield* Ledger
      const jobs = yield* Jobs
      yield* (yield* PriceBook).publish({ [work.key]: Credits.of(1_000) })
      yield* ledger.execute("acc_1", Decisions.open({ sealedEmail: "", emailHash: "" }))
      yield* ledger.execute(
        "acc_1",
        Decisions.grant({ lotId: "lot_1", amount: Credits.of(JOBS * 1_000), source: "promotion", expiresAt: null })
      )
      yield* Effect.forEach(
        range(JOBS),
        (i) => charge.run(work, { milliseconds: 50 + (i % 5) * 50 }, { accountId: "acc_1", requestId: `req_${i}` }),
        { concurrency: 16 }
      )
      const [killed, stopped] = yield* Effect.promise(() => Promise.all([worker(), worker()]))
      yield* until(Effect.map(ended, (n) => n > 20))
      killed.kill("SIGKILL")
      stopped.kill("SIGSTOP")
      yield* Effect.promise(worker)
      // The stopped one wakes with work in hand that others have taken over meanwhile
      yield* Effect.sleep(LEASE * 1.5)
      stopped.kill("SIGCONT")
      yield* until(Effect.map(jobs.board.read(), ({ state }) => state.size === 0))
      yield* until(Effect.map(ledger.balance("acc_1"), ({ held }) => held === 0))

      const results = (yield* jobEvents).flatMap(({ event, jobId }) => (event._tag === "JobSucceeded" ? jobId : []))
      expect(results).toHaveLength(JOBS)
      expect(new Set(results).size).toBe(JOBS)
      const takeovers = (yield* jobEvents).filter(({ event }) => event._tag === "JobStarted" && event.attempt > 1)
      expect(takeovers.length).toBeGreaterThan(0)
      expect(yield* ledger.balance("acc_1")).toMatchObject({ available: 0, held: 0 })
      expect((yield* Audit.run()).problems).toEqual([])
    }).pipe(Effect.provide(host(folder, false)))
  )
})
