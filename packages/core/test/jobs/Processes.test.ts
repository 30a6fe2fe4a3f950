/** Real processes on one log. One is killed, one is stopped for longer than its lease; every job ends once. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { EventStore, StreamName } from "@millrace/event-sourcing"
import Database from "better-sqlite3"
import { Effect, Schema, type Scope, Stream } from "effect"
import { expect, test } from "vitest"
import * as Audit from "../../../audit/src/Audit.ts"
import { schema } from "../../../event-store-postgres/test/Postgres.ts"
import { start } from "../../../event-store-sqlite/test/Processes.ts"
import { PriceBook } from "../../src/billing/PricePlan.ts"
import * as Credits from "../../src/Credits.ts"
import * as Job from "../../src/jobs/Job.ts"
import { Jobs } from "../../src/jobs/Jobs.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { range } from "../billing/Bench.ts"
import { host, jobOf, LEASE, Result, type Store, work } from "./Worker.ts"

const JOBS = 1_200
/** Jobs that all processes together run at once. */
const AT_ONCE = 24
const PRICE = 1_000
const GRANTED = 2_000 * PRICE

const script = fileURLToPath(new URL("Worker.ts", import.meta.url))

/** A process and its share of the jobs; killed with the scope. */
const worker = (store: Store, from: number, to: number, concurrency: number) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      start(process.execPath, ["--conditions=@millrace/source", script, JSON.stringify(store), ...[from, to, concurrency].map(String)])
    ),
    ({ child, ended }) =>
      Effect.promise(() => {
        child.kill("SIGKILL")
        return ended
      })
  )

const { codec } = Job.Job

/** The jobs by the log, as it grows. */
class View {
  position: EventStore.Position = EventStore.start
  readonly ended = new Set<string>()
  readonly #holders = new Map<string, string>()

  take(events: ReadonlyArray<EventStore.RecordedEvent>): void {
    for (const { data, position, stream, type } of events) {
      this.position = position
      if (StreamName.category(stream) !== Job.Job.category) continue
      const jobId = StreamName.id(stream)
      const event = codec.decode(type, data)
      if (event._tag === "JobStarted") this.#holders.set(jobId, event.runner)
      else if (event._tag === "JobReleased") this.#holders.delete(jobId)
      else if (event._tag === "JobSucceeded" || event._tag === "JobFailed") {
        this.#holders.delete(jobId)
        this.ended.add(jobId)
      }
    }
  }

  /** Open jobs that a runner has. */
  inHand(runner: string): number {
    return [...this.#holders.values()].filter((holder) => holder === runner).length
  }
}

const follow = Effect.gen(function* () {
  const events = yield* EventStore.EventStore
  const view = new View()
  yield* Effect.forkScoped(
    Stream.runForEach(events.subscribe(EventStore.start), (batch) => Effect.sync(() => view.take(batch.events))).pipe(Effect.orDie)
  )
  const all = Effect.gen(function* () {
    const head = yield* events.head
    yield* until(() => view.position >= head)
  })
  return { view, all }
})

/** The most time to wait for a condition. */
const until = <E = never, R = never>(isSo: () => boolean | Effect.Effect<boolean, E, R>) =>
  Effect.gen(function* () {
    for (;;) {
      const now = isSo()
      if (typeof now === "boolean" ? now : yield* now) return
      yield* Effect.sleep(10)
    }
  }).pipe(Effect.timeout("2 minutes"))

/** Whether a process blocks the others' writes, as one that was stopped in a transaction does. */
const isLocked = (store: Store): boolean =>
  store.kind === "sqlite" &&
  ["events.db", "state.db"].some((name) => {
    const db = new Database(join(store.folder, name), { timeout: LEASE })
    try {
      db.exec("BEGIN IMMEDIATE; ROLLBACK")
      return false
    } catch {
      return true
    } finally {
      db.close()
    }
  })

const share = (store: Store, processes: number) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const jobs = yield* Jobs
    yield* (yield* PriceBook).publish({ [work.key]: Credits.of(PRICE) })
    const accounts = [...new Set(range(JOBS).map((i) => jobOf(i).accountId))]
    for (const account of accounts) {
      yield* ledger.execute(account, Decisions.open({ sealedEmail: "", emailHash: account }))
      const lot = { lotId: `lot_${account}`, amount: Credits.of(GRANTED), source: "promotion", expiresAt: null } as const
      yield* ledger.execute(account, Decisions.grant(lot))
    }
    const part = JOBS / processes
    const workers = yield* Effect.forEach(range(processes), (i) => worker(store, i * part, (i + 1) * part, AT_ONCE / processes))
    yield* Effect.promise(() => Promise.all(workers.map(({ printed }) => printed("accepted", 1))))
    const { all, view } = yield* follow
    const run = ({ child, lines, printed, send }: (typeof workers)[number]) => {
      send("run")
      return Effect.map(
        Effect.promise(() => printed("running", 1)),
        () => ({ child, id: lines.at(-1)?.replace("running ", "") ?? "" })
      )
    }
    const [one, other] = yield* Effect.forEach(workers, run, { concurrency: "unbounded" })
    if (one === undefined || other === undefined) throw new Error("There are two at least")

    /** Stops the process while it works, by the log, but not while it writes. */
    const stopped = Effect.fnUntraced(function* (runner: typeof one) {
      for (;;) {
        yield* until(() => view.inHand(runner.id) > 0)
        runner.child.kill("SIGSTOP")
        if (!isLocked(store)) {
          yield* all
          if (view.inHand(runner.id) > 0) return
        }
        runner.child.kill("SIGCONT")
      }
    })

    yield* until(() => view.ended.size >= JOBS / 2)
    yield* stopped(other)
    const left = view.inHand(other.id)
    expect(view.ended.size + left).toBeLessThan(JOBS)
    other.child.kill("SIGKILL")
    // The only process is started again
    if (processes === 2) yield* Effect.flatMap(worker(store, 0, 0, AT_ONCE / processes), run)

    yield* until(() => view.ended.size >= JOBS * 0.8)
    yield* stopped(one)
    yield* until(() => view.inHand(one.id) === 0)
    // It resumes with jobs that others have by now
    one.child.kill("SIGCONT")

    yield* until(() => view.ended.size === JOBS)
    const balances = Effect.forEach(accounts, (account) => ledger.balance(account))
    yield* until(() => Effect.map(balances, (all) => all.every(({ held }) => held === 0)))
    yield* all

    const log = yield* Effect.flatMap(EventStore.EventStore, ({ readAll }) => Stream.runCollect(readAll(EventStore.start)))
    const accepted = new Map<string, string>()
    const results = new Map<string, Array<Job.EventOf<"JobSucceeded">>>()
    const charges = new Map<string, number>()
    let overtakings = 0
    for (const { data, stream, type } of log) {
      if (type === "OperationSucceeded") charges.set(StreamName.id(stream), (charges.get(StreamName.id(stream)) ?? 0) + 1)
      if (StreamName.category(stream) !== Job.Job.category) continue
      const jobId = StreamName.id(stream)
      const event = codec.decode(type, data)
      expect(["JobFailed", "JobCancelled", "JobRefused"]).not.toContain(event._tag)
      if (event._tag === "JobAccepted") accepted.set(jobId, event.accountId)
      if (event._tag === "JobStarted" && event.attempt > 1) overtakings++
      if (event._tag === "JobSucceeded") results.set(jobId, [...(results.get(jobId) ?? []), event])
    }
    expect(accepted.size).toBe(JOBS)
    expect(overtakings).toBeGreaterThanOrEqual(left)
    // Each job has one result, that of its input
    const found = yield* Effect.forEach(
      accepted,
      ([jobId, accountId]) => {
        const [only, ...more] = results.get(jobId) ?? []
        if (only === undefined || more.length > 0) throw new Error(`${jobId} has ${more.length + (only === undefined ? 0 : 1)} results`)
        return Effect.map(jobs.documents.open({ jobId, accountId }, "result", only.result), (text) => ({
          accountId,
          quantity: only.quantity,
          of: Schema.decodeUnknownSync(Schema.fromJsonString(Result))(text).of
        }))
      },
      { concurrency: 16 }
    )
    expect(found.map(({ of }) => of).sort((a, b) => a - b)).toEqual(range(JOBS))
    for (const { accountId, of, quantity } of found) expect([of, accountId, quantity]).toEqual([of, jobOf(of).accountId, jobOf(of).done])

    for (const account of accounts) {
      const own = range(JOBS)
        .map(jobOf)
        .filter(({ accountId }) => accountId === account)
      const spent = own.reduce((sum, { done }) => sum + done * PRICE, 0)
      expect(yield* ledger.balance(account)).toMatchObject({ available: GRANTED - spent, held: 0 })
      expect(charges.get(account)).toBe(own.length)
    }
    const { events, problems } = yield* Audit.run()
    expect(problems).toEqual([])
    expect(events).toBe(log.length)
  }).pipe(Effect.provide(host(store)))

const run = (body: Effect.Effect<void, unknown, Scope.Scope>, signal: AbortSignal) => Effect.runPromise(Effect.scoped(body), { signal })

test(
  "two processes share the jobs of one SQLite file, while one is killed and started again, and one is stopped",
  { timeout: 240_000 },
  ({ signal }) =>
    run(
      Effect.gen(function* () {
        const folder = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-processes-"))),
          (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
        )
        yield* share({ kind: "sqlite", folder }, 2)
      }),
      signal
    )
)

test("four processes share the jobs of one PostgreSQL, while one is killed and one is stopped", { timeout: 240_000 }, ({ signal }) =>
  run(
    Effect.flatMap(schema, ({ schema, url }) => share({ kind: "postgres", url, schema }, 4)),
    signal
  )
)
