/** The sweep removes files that no job needs. Files that a job may still name, and other blobs, stay. */
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { StateStore } from "@millrace/event-sourcing"
import { FileBlobStore, S3BlobStore } from "@millrace/upstreams"
import { Clock, Deferred, Effect, Layer, Option, Redacted, type Scope, Stream } from "effect"
import { describe, expect } from "vitest"
import * as Bucket from "../../../upstreams/test/blobs/Bucket.ts"
import { JobUpkeep } from "../../src/jobs/JobUpkeep.ts"
import { BlobStore, type BlobUnavailable } from "../../src/vault/BlobStore.ts"
import { ofAccount, ofJob, Vault } from "../../src/vault/Vault.ts"
import { UpstreamUnavailable } from "../../src/work/OperationError.ts"
import { elapse, hours, minutes, range, START, type Stores, seconds, stores, testing, UNIT } from "../billing/Bench.ts"
import { open as openVault } from "../vault/Vaults.ts"
import { type Host, host, idOf, makeBench, mortalHost, type Shared } from "./JobBench.ts"

const EVERY = hours(6)
const DAY = hours(24)
/** Leases long enough, and purges slow enough, for a clock that moves by hours. */
const recovery = { ttl: "12 hours", sweepEvery: "2 hours", timeout: "2 days" } as const

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "millrace-files-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

const bucket = Layer.unwrap(
  Effect.map(Bucket.open(), ({ url }) =>
    S3BlobStore.layer({
      bucketUrl: url,
      region: "us-east-1",
      accessKeyId: "S3RVER",
      secretAccessKey: Redacted.make("S3RVER"),
      prefix: "mill/",
      // Days pass while a request is on its way
      timeLimit: "1000 days"
    })
  )
)

/** Stores of one test, with blobs on disk or in S3. */
const sharedWith = (blobs: Layer.Layer<BlobStore, BlobUnavailable, Vault>) =>
  Effect.gen(function* () {
    const to: Stores = yield* stores
    const vault = yield* openVault(to.states)
    const context = yield* Layer.build(Layer.fresh(Layer.provide(blobs, Layer.succeed(Vault, vault))))
    return { ...to, blobs: yield* Effect.provideContext(BlobStore, context) } satisfies Shared
  })

/** Waits for real writes while the test clock stands still. */
const eventually = <E, R>(what: string, question: Effect.Effect<boolean, E, R>) =>
  Effect.gen(function* () {
    const failsafe = performance.now() + 20_000
    while (!(yield* question)) {
      if (performance.now() > failsafe) throw new Error(`It never came to this: ${what}`)
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
  })

const upkeepOf = (here: Host) =>
  Effect.gen(function* () {
    const upkeep = yield* Effect.provideContext(Effect.serviceOption(JobUpkeep), here.context)
    if (Option.isNone(upkeep)) throw new Error("There are jobs")
    return (yield* upkeep.value.status).files
  })

const SPACE = "jobFiles"
const notes = ({ states }: Stores) => Effect.map(states.list(SPACE), (entries) => entries.map(({ key }) => key))

/** A file of an unknown job, without a blob. */
const STRAY = `job_01KDVDQ4K0N0R5PQX9S6MJSWZ3/${"0".repeat(64)}`

const noteStray = ({ states }: Stores, key = STRAY) =>
  states.write([{ _tag: "put", space: SPACE, key, value: Buffer.from(String(START - 2 * DAY)) }])

/** Waits for the end of a sweep that is due now. */
const swept = (here: Host) =>
  eventually(
    "a sweep",
    Effect.zipWith(upkeepOf(here), Clock.currentTimeMillis, ({ sweptAt }, now) => sweptAt === now)
  )

/** Lets time pass to the end of the next sweep, in steps that keep leases. */
const round = (here: Host) =>
  Effect.gen(function* () {
    for (const _ of range(3)) yield* elapse(EVERY / 3)
    yield* swept(here)
  })

const listed = ({ blobs }: Shared) => Effect.map(Stream.runCollect(blobs.list), (all) => all.map(({ id }) => id).sort())

const store = { files: Layer.unwrap(Effect.map(directory, FileBlobStore.layer)), S3: bucket } satisfies Record<
  string,
  Layer.Layer<BlobStore, BlobUnavailable, Vault | Scope.Scope>
>

describe.each(["files", "S3"] as const)("files of jobs, kept in %s", (kind) => {
  testing(
    "of dead attempts are removed a day later; artifacts, files of running jobs and other blobs stay",
    Effect.gen(function* () {
      const to = yield* sharedWith(Layer.provide(store[kind], Layer.effectContext(Effect.context<Scope.Scope>())))
      const bench = makeBench()
      const go = yield* Deferred.make<void>()
      const stored: Record<string, string> = {}
      bench.answer = ({ text }, job) =>
        Effect.gen(function* () {
          const file = yield* job.store(Buffer.from(`${text} ${job.attempt}`), { contentType: "image/png" })
          stored[`${text} ${job.attempt}`] = file.id
          if (text === "again" && job.attempt === 1)
            return yield* new UpstreamUnavailable({ upstream: "bench", reason: "drawn", isolated: true })
          if (text === "long") yield* Deferred.await(go)
          if (text === "cancelled") yield* Effect.never
          return { data: { text }, artifacts: [file] }
        })
      const here = yield* host(to, bench, {
        timeout: 5 * DAY,
        deadline: 6 * DAY,
        jobs: { lease: "12 hours", retention: "40 hours", sweepFilesEvery: EVERY },
        recovery
      })
      const accountId = yield* here.open("acc_1", 10 * UNIT)
      const isStored = (name: string) =>
        eventually(
          `${name} is stored`,
          Effect.sync(() => stored[name] !== undefined)
        )
      const comesTo = (id: string, to: string) =>
        eventually(
          `${id} ${to}`,
          Effect.map(here.read(accountId, id), ({ status }) => status === to)
        )

      yield* swept(here)
      yield* elapse(hours(1))
      const again = idOf(yield* here.create(accountId, { text: "again" }))
      const long = idOf(yield* here.create(accountId, { text: "long" }))
      const cancelled = idOf(yield* here.create(accountId, { text: "cancelled" }))
      for (const name of ["again 1", "long 1", "cancelled 1"]) yield* isStored(name)
      yield* here.cancel(accountId, cancelled)
      yield* comesTo(again, "queued")
      yield* elapse(seconds(2))
      yield* comesTo(again, "succeeded")
      const own = yield* to.blobs.put(ofAccount(accountId), Buffer.from("the host's"))
      const all = [...Object.values(stored), own.id].sort()
      expect(all).toHaveLength(5)

      yield* elapse(EVERY - hours(1) - seconds(2))
      yield* swept(here)
      // The last time they are 23 hours old
      for (const _ of range(3)) {
        yield* round(here)
        expect(yield* listed(to)).toEqual(all)
      }
      yield* round(here)
      const kept = [stored["again 2"], stored["long 1"], own.id].sort()
      expect(yield* listed(to)).toEqual(kept)

      // It ends after the sweep has read which files are needed
      yield* here.through(({ states }) => ({
        states: StateStore.StateStore.of({
          ...states,
          list: (space, options) => {
            const ended = Effect.andThen(Deferred.succeed(go, undefined), Effect.orDie(comesTo(long, "succeeded")))
            return space === SPACE ? Effect.andThen(ended, states.list(space, options)) : states.list(space, options)
          }
        })
      }))
      yield* round(here)
      yield* here.heal
      expect(yield* listed(to)).toEqual(kept)
      const { bytes } = yield* to.blobs.get(ofJob(long, accountId), stored["long 1"] ?? "")
      expect(Buffer.concat(yield* Stream.runCollect(bytes)).toString()).toBe("long 1")
      expect((yield* upkeepOf(here)).removed.files).toBe(2)

      // After the purge none of them is left
      for (const _ of range(8)) yield* round(here)
      yield* eventually(
        "one file",
        Effect.map(listed(to), (ids) => ids.length === 1)
      )
      expect(yield* listed(to)).toEqual([own.id])
      yield* eventually(
        "no notes",
        Effect.map(notes(to), (keys) => keys.length === 0)
      )
      expect((yield* upkeepOf(here)).removed.files).toBe(2)
    })
  )
})

describe("the sweep", () => {
  testing(
    "runs at one host at a time, and removes only unneeded files of jobs and leftovers of puts",
    Effect.gen(function* () {
      const path = yield* directory
      const to = yield* sharedWith(FileBlobStore.layer(path))
      const part = join(path, `${"ab".repeat(16)}.part`)
      yield* Effect.promise(() => writeFile(part, "left"))
      const old = new Date(START - 2 * DAY)
      yield* Effect.promise(() => utimes(part, old, old))
      const own = yield* to.blobs.put("account:acc_1", Buffer.from("the host's"))
      yield* Effect.promise(() => utimes(join(path, own.id), old, old))
      yield* noteStray(to)
      const first = yield* mortalHost(to, makeBench(), { jobs: { sweepFilesEvery: EVERY }, recovery })
      yield* swept(first)
      expect(yield* Effect.promise(() => readdir(path))).toEqual([own.id])
      expect(yield* notes(to)).toEqual([])
      const second = yield* host(to, makeBench(), { jobs: { sweepFilesEvery: EVERY }, recovery })
      yield* noteStray(to)
      yield* round(first)
      expect(yield* upkeepOf(first)).toMatchObject({ leader: true, removed: { files: 2, leftovers: 1 } })
      expect(yield* upkeepOf(second)).toMatchObject({ leader: false, sweptAt: undefined })
      yield* noteStray(to)
      yield* first.die
      // Time passes until it is so: a host that has not finished its turn when the time is there sleeps from then on
      yield* eventually(
        "a takeover",
        Effect.andThen(
          elapse(EVERY / 3),
          Effect.map(upkeepOf(second), ({ leader, removed }) => leader && removed.files === 1)
        )
      )
    })
  )

  testing(
    "stops at its next removal if another host has taken the lease",
    Effect.gen(function* () {
      const to = yield* sharedWith(Layer.unwrap(Effect.map(directory, FileBlobStore.layer)))
      const here = yield* host(to, makeBench(), { jobs: { sweepFilesEvery: EVERY }, recovery })
      yield* swept(here)
      for (const last of range(3)) yield* noteStray(to, `${STRAY.slice(0, -1)}${last}`)
      const before = yield* notes(to)
      const another = { _tag: "put", space: "leases", key: "jobFiles", value: Buffer.from('{"holder":"another","ttl":1000}') } as const
      yield* here.through(({ states }) => ({
        states: StateStore.StateStore.of({
          ...states,
          list: (space, options) =>
            space === SPACE
              ? Effect.andThen(Effect.orDie(states.write([another])), states.list(space, options))
              : states.list(space, options)
        })
      }))
      for (const _ of range(3)) yield* elapse(EVERY / 3)
      yield* eventually(
        "an end",
        Effect.map(upkeepOf(here), ({ leader }) => !leader)
      )
      expect(yield* upkeepOf(here)).toMatchObject({ removed: { files: 0 }, trouble: undefined })
      expect(yield* notes(to)).toEqual(before)
      yield* here.heal
      yield* elapse(minutes(1))
      yield* eventually(
        "another tenure",
        Effect.map(upkeepOf(here), ({ leader, removed }) => leader && removed.files === 3)
      )
      expect(yield* notes(to)).toEqual([])
    })
  )

  testing(
    "continues after a failure of a store",
    Effect.gen(function* () {
      const to = yield* sharedWith(Layer.unwrap(Effect.map(directory, FileBlobStore.layer)))
      const here = yield* host(to, makeBench(), { jobs: { sweepFilesEvery: EVERY }, recovery })
      yield* swept(here)
      yield* noteStray(to)
      yield* here.through(({ states }) => ({
        states: StateStore.StateStore.of({
          ...states,
          list: (space, options) =>
            space === SPACE ? Effect.fail(new StateStore.StateUnavailable({ reason: "away" })) : states.list(space, options)
        })
      }))
      yield* elapse(EVERY)
      yield* eventually(
        "trouble",
        Effect.map(upkeepOf(here), ({ trouble }) => trouble?.reason === "away")
      )
      expect(yield* notes(to)).toEqual([STRAY])
      yield* here.heal
      yield* elapse(seconds(60))
      yield* eventually(
        "no trouble",
        Effect.map(upkeepOf(here), ({ removed, trouble }) => trouble === undefined && removed.files === 1)
      )
      expect(yield* notes(to)).toEqual([])
    })
  )
})
