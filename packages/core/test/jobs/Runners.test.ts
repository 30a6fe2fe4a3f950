/** Several runners on one log: for any interleaving and any faults, every job ends once. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Layer, Logger, type Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Audit from "../../../audit/src/Audit.ts"
import * as SeededRandom from "../../../testing/src/SeededRandom.ts"
import { BlobStore } from "../../src/vault/BlobStore.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import * as MemoryBlobStore from "../../src/vault/MemoryBlobStore.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { UpstreamUnavailable } from "../../src/work/OperationError.ts"
import { elapse, minutes, patiently, range, START, seconds, UNIT, Watched } from "../billing/Bench.ts"
import { MASTER } from "../vault/Vaults.ts"
import { type Bench, host, jobEvents, LEASE, makeBench, mortalHost, type Shared, shared } from "./JobBench.ts"

const run = (body: Effect.Effect<unknown, unknown, Scope.Scope | Watched>): Promise<void> =>
  Effect.runPromise(
    Effect.asVoid(Effect.andThen(TestClock.setTime(START), Effect.scoped(body))).pipe(
      Effect.provideService(Watched, []),
      Effect.provide(TestClock.layer()),
      Effect.provide(Logger.layer([]))
    )
  )

/** Work that takes time, fails sometimes, and records its progress half way. */
const unsteady = (bench: Bench, random: SeededRandom.SeededRandom) => {
  bench.answer = ({ text }, job) =>
    Effect.gen(function* () {
      yield* Effect.sleep(random.below(LEASE))
      if (random.chance(0.2)) return yield* new UpstreamUnavailable({ upstream: "bench", reason: "drawn", isolated: true })
      yield* job.progress(50, { at: job.attempt })
      yield* Effect.sleep(random.below(LEASE))
      return { data: { text } }
    })
}

/** Checks that every job has ended once and every account is settled. Returns the number of ended jobs. */
const settled = (
  to: Shared,
  accounts: ReadonlyArray<string>,
  balance: (accountId: string) => Effect.Effect<{ readonly held: number }, unknown>
) =>
  Effect.gen(function* () {
    const ends = new Map<string, Array<string>>()
    const open = new Set<string>()
    for (const { event, jobId } of yield* jobEvents(to)) {
      if (event._tag === "JobAccepted") open.add(jobId)
      if (!["JobSucceeded", "JobFailed", "JobCancelled"].includes(event._tag)) continue
      ends.set(jobId, [...(ends.get(jobId) ?? []), event._tag])
      open.delete(jobId)
    }
    expect([...open]).toEqual([])
    for (const [jobId, tags] of ends) expect([jobId, tags]).toEqual([jobId, [expect.any(String)]])
    for (const accountId of accounts) expect(yield* balance(accountId)).toMatchObject({ held: 0 })
    const at = (yield* Clock.currentTimeMillis) + minutes(10)
    const { problems } = yield* Audit.run({ at }).pipe(Effect.provideService(EventStore.EventStore, to.events))
    expect(problems).toEqual([])
    return ends.size
  })

/** Jobs of three accounts, with callers who cancel, at runners that fail, are killed, stopped and replaced. */
const chaos = (to: Shared, seed: number, runners: number, rounds: number) =>
  Effect.gen(function* () {
    const random = SeededRandom.make(seed)
    const bench = makeBench()
    unsteady(bench, random)
    const idle = yield* host(to, makeBench(), { jobs: { runner: false } })
    const accounts: Array<string> = []
    for (const i of range(3)) accounts.push(yield* idle.open(`acc_${i}`, 100 * UNIT))
    const some = <A>(items: ReadonlyArray<A>): A | undefined => items[random.below(items.length)]
    const hosts: Array<Effect.Success<ReturnType<typeof mortalHost>>> = []
    const ids: Array<{ readonly accountId: string; readonly id: string }> = []
    for (const _ of range(rounds)) {
      while (hosts.length < runners) hosts.push(yield* mortalHost(to, bench, { jobs: { concurrency: 2, drain: seconds(5) } }))
      const one = some(hosts)
      const accountId = some(accounts)
      const job = some(ids)
      switch (random.below(8)) {
        case 0:
          if (one === undefined) break
          hosts.splice(hosts.indexOf(one), 1)
          yield* patiently(random.chance(0.5) ? one.die : one.stop)
          break
        case 1:
          if (one !== undefined) yield* one.fail({ rates: { before: 0.1, after: 0.1, lost: 0.1 }, unavailable: 0.05, random })
          break
        case 2:
          if (one !== undefined) yield* one.heal
          break
        case 3:
          if (job !== undefined) yield* patiently(Effect.ignore((one ?? idle).cancel(job.accountId, job.id)))
          break
        case 4:
          yield* elapse(random.below(LEASE))
          break
        default: {
          if (accountId === undefined) break
          const reply = yield* patiently(Effect.option((random.chance(0.5) ? (one ?? idle) : idle).create(accountId)))
          if (reply._tag === "Some" && reply.value.job !== undefined) ids.push({ accountId, id: reply.value.job.id })
        }
      }
      yield* elapse(random.below(seconds(5)))
    }
    for (const one of hosts) yield* one.heal
    for (const _ of range(60)) yield* elapse(LEASE / 2)
    const ended = yield* settled(to, accounts, (accountId) => idle.balance(accountId))
    expect(ended).toBeGreaterThanOrEqual(ids.length)
  })

describe.each([2, 4])("%i runners on one log in memory", (runners) => {
  test("end every job exactly once, whatever faults occur", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 1_000_000 }), (seed) => run(Effect.flatMap(shared, (to) => chaos(to, seed, runners, 40)))),
      { numRuns: 8 }
    )
  })
})

describe("two runners on one SQLite file", () => {
  /** Stores with their own connection, as another process has. */
  const opened = (folder: string) =>
    Effect.gen(function* () {
      const events = yield* SqliteEventStore.make({ filename: join(folder, "events.db") })
      const states = yield* SqliteStateStore.make({ filename: join(folder, "state.db") })
      const vault = Layer.provide(Vault.layer, [Layer.succeed(StateStore.StateStore, states), Layer.orDie(MasterKey.layer(MASTER))])
      const context = yield* Layer.build(Layer.fresh(Layer.provide(MemoryBlobStore.layer, vault)))
      return { events, states, blobs: yield* Effect.provideContext(BlobStore, context) }
    })

  test("share jobs, and one ends the jobs of the other after it was killed", async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-jobs-"))
    try {
      await run(
        Effect.gen(function* () {
          const one = yield* opened(folder)
          const other = yield* opened(folder)
          const bench = makeBench()
          bench.answer = ({ text }) => Effect.as(Effect.sleep("2 seconds"), { data: { text } })
          const mortal = yield* mortalHost(one, bench, { name: "mortal", jobs: { concurrency: 4 } })
          const heir = yield* host(other, bench, { name: "heir", jobs: { concurrency: 4 } })
          const accounts = [yield* patiently(mortal.open("acc_1", 100 * UNIT)), yield* patiently(heir.open("acc_2", 100 * UNIT))]
          for (const i of range(40)) yield* patiently((i % 2 === 0 ? mortal : heir).create(accounts[i % 2] ?? "", { text: `${i}` }))
          for (const _ of range(5)) yield* elapse(500)
          yield* patiently(mortal.die)
          for (const _ of range(200)) yield* elapse(500)
          const ended = yield* settled(other, accounts, (accountId) => patiently(heir.balance(accountId)))
          expect(ended).toBe(40)
          const hosts = bench.runs.map(({ host }) => host)
          expect(new Set(hosts)).toEqual(new Set(["mortal", "heir"]))
          for (const accountId of accounts) expect(yield* heir.balance(accountId)).toEqual({ available: 80 * UNIT, held: 0 })
        })
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
