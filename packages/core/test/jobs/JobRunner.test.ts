/** Jobs from the call to the end. */
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Deferred, Effect, Fiber, Option, Result, Stream } from "effect"
import { describe, expect } from "vitest"
import { JobUpkeep } from "../../src/jobs/JobUpkeep.ts"
import { ofAccount, ofJob, Vault } from "../../src/vault/Vault.ts"
import { InvalidInput, UpstreamUnavailable } from "../../src/work/OperationError.ts"
import {
  CHARGED,
  elapse,
  endsIn,
  FULL,
  HELD,
  hours,
  logText,
  minutes,
  patiently,
  quiet,
  range,
  seconds,
  testing,
  UNIT,
  until
} from "../billing/Bench.ts"
import {
  type Bench,
  type Host,
  host,
  idOf,
  jobEvents,
  LEASE,
  makeBench,
  mortalHost,
  type Running,
  type Shared,
  setting,
  shared,
  story
} from "./JobBench.ts"

const ends = (here: Host, accountId: string, id: string, status: string, within = seconds(5)) =>
  until(
    Effect.map(here.read(accountId, id), (read) => read.status === status),
    within
  )

const missing = <A, E extends { readonly _tag: string }>(call: Effect.Effect<A, E>) =>
  Effect.map(Effect.result(call), (result) => (Result.isFailure(result) ? result.failure._tag : "there"))

/** From now on work waits until it is released or interrupted. */
const holding = (bench: Bench) =>
  Effect.gen(function* () {
    const { answer } = bench
    const go = yield* Deferred.make<void>()
    const interrupted: Array<string> = []
    const started: Array<Running> = []
    bench.answer = (input, job) =>
      Effect.gen(function* () {
        started.push(job)
        yield* Effect.onInterrupt(Deferred.await(go), () => Effect.sync(() => interrupted.push(`${job.id} ${job.attempt}`)))
        return yield* answer(input, job)
      })
    return { started, interrupted, go: Effect.andThen(Deferred.succeed(go, undefined), quiet) }
  })

describe("a job", () => {
  testing(
    "is paid by a hold, accepted, run and charged",
    Effect.gen(function* () {
      const { to, bench, here, accountId } = yield* setting()
      const { go } = yield* holding(bench)
      const reply = yield* here.create(accountId)
      const id = idOf(reply)
      expect(JSON.parse(reply.data)).toEqual({ id, status: "queued" })
      expect(reply.billed).toEqual({ charged: 0, balance: 9 * UNIT })
      yield* quiet
      expect(yield* here.read(accountId, id)).toMatchObject({ status: "running", percent: 0, text: null, retryAfter: 1 })
      expect(yield* here.balance(accountId)).toEqual(HELD)
      yield* go
      expect(yield* here.read(accountId, id)).toMatchObject({ status: "succeeded", percent: 100, text: "TEXT", retryAfter: undefined })
      expect(bench.runs).toMatchObject([{ input: { text: "text" }, job: { id, accountId, attempt: 1 } }])
      expect(yield* story(to)).toEqual(["JobAccepted", "JobStarted", "JobSucceeded"])
      expect(yield* endsIn(to)).toEqual(["CreditReserved", "OperationSucceeded"])
      expect(yield* here.balance(accountId)).toEqual(CHARGED)
    })
  )

  testing(
    "is written to the state store twice, and asks for nothing at the host that accepted it",
    Effect.gen(function* () {
      const { to, here, accountId } = yield* setting()
      yield* ends(here, accountId, idOf(yield* here.create(accountId)), "succeeded")
      yield* quiet
      const asked: Array<string> = []
      const keys: Array<string> = []
      let writes = 0
      yield* here.through(({ events, states }) => ({
        events: {
          ...events,
          readStream: (stream, options) =>
            Stream.suspend(() => {
              asked.push(`read ${stream}`)
              return events.readStream(stream, options)
            }),
          lastRevision: (stream) => {
            asked.push(`end of ${stream}`)
            return events.lastRevision(stream)
          }
        },
        states: {
          ...states,
          get: (space, key) => {
            if (space === "vaultKeys") keys.push(key)
            return states.get(space, key)
          },
          write: (changes) => {
            // The input with the job's key, and the result
            if (changes.some(({ space }) => space === "jobs")) writes++
            return states.write(changes)
          }
        }
      }))
      const id = idOf(yield* here.create(accountId))
      yield* until(
        Effect.map(here.balance(accountId), ({ held }) => held === 0),
        seconds(5)
      )
      yield* quiet
      expect(asked.filter((question) => question.includes(id))).toEqual([])
      expect(keys).toEqual([])
      expect(writes).toBe(2)
      expect(yield* endsIn(to)).toEqual(["CreditReserved", "OperationSucceeded", "CreditReserved", "OperationSucceeded"])
    })
  )

  testing(
    "is charged for the units done",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      bench.answer = ({ text }) => Effect.succeed({ data: { text }, quantity: 2 })
      const id = idOf(yield* here.create(accountId, { units: 5 }))
      yield* ends(here, accountId, id, "succeeded")
      expect(yield* here.balance(accountId)).toEqual({ available: 8 * UNIT, held: 0 })
    })
  )

  testing(
    "that returns more units than held fails and is free",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      bench.answer = ({ text }) => Effect.succeed({ data: { text }, quantity: 2 })
      const id = idOf(yield* here.create(accountId))
      yield* ends(here, accountId, id, "failed")
      expect(yield* here.read(accountId, id)).toMatchObject({ failure: "Defect" })
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "is attempted again after growing pauses if its failure may be temporary, at most five times",
    Effect.gen(function* () {
      const { to, bench, here, accountId } = yield* setting()
      bench.answer = () => Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "away", isolated: true }))
      const id = idOf(yield* here.create(accountId))
      const startedAfter: Array<number> = []
      for (let waited = 0; bench.runs.length < 5; waited += 100) {
        if (bench.runs.length > startedAfter.length) startedAfter.push(waited)
        yield* elapse(100)
      }
      yield* quiet
      const pauses = startedAfter.slice(1).map((at, i) => at - (startedAfter[i] ?? 0))
      pauses.forEach((pause, i) => {
        expect(pause).toBeGreaterThanOrEqual(500 * 2 ** i - 100)
        expect(pause).toBeLessThanOrEqual(1_000 * 2 ** i + 100)
      })
      expect(yield* here.read(accountId, id)).toMatchObject({ status: "failed", failure: "UpstreamUnavailable" })
      expect(yield* story(to)).toEqual(["JobAccepted", ...range(4).flatMap(() => ["JobStarted", "JobReleased"]), "JobStarted", "JobFailed"])
      expect(bench.runs.map(({ job }) => job.attempt)).toEqual([1, 2, 3, 4, 5])
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "is not attempted again after a permanent failure, and returns the reason",
    Effect.gen(function* () {
      const { to, bench, here, accountId } = yield* setting()
      bench.answer = () => Effect.fail(new InvalidInput({ field: "text", message: "too secret to draw" }))
      const id = idOf(yield* here.create(accountId))
      yield* ends(here, accountId, id, "failed")
      expect(yield* here.read(accountId, id)).toMatchObject({ failure: "InvalidInput", message: "too secret to draw" })
      expect(bench.runs).toHaveLength(1)
      expect(yield* endsIn(to)).toEqual(["CreditReserved", "Refunded service_error"])
      expect(yield* logText(to)).not.toContain("too secret")
    })
  )

  testing(
    "that exceeds its operation's time limit is attempted again",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting({ timeout: minutes(4) })
      const { interrupted } = yield* holding(bench)
      const id = idOf(yield* here.create(accountId))
      yield* ends(here, accountId, id, "failed", hours(1))
      expect(interrupted).toEqual(range(5).map((i) => `${id} ${i + 1}`))
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "past its deadline fails, waiting or running, and is refunded as expired",
    Effect.gen(function* () {
      const { to, bench, here, accountId } = yield* setting({ timeout: hours(1), deadline: minutes(10), limits: { atOnce: 1 } })
      const { interrupted } = yield* holding(bench)
      const running = idOf(yield* here.create(accountId))
      yield* quiet
      const waiting = idOf(yield* here.create(accountId))
      yield* elapse(minutes(10) - 1)
      expect(yield* here.read(accountId, waiting)).toMatchObject({ status: "queued" })
      yield* elapse(1)
      for (const id of [running, waiting]) yield* ends(here, accountId, id, "failed")
      expect(yield* here.read(accountId, waiting)).toMatchObject({ failure: "TooLate" })
      expect(interrupted).toEqual([`${running} 1`])
      expect((yield* endsIn(to)).slice(2)).toEqual(["Refunded expired", "Refunded expired"])
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "writes neither its input nor its result to the log",
    Effect.gen(function* () {
      const { to, here, accountId } = yield* setting()
      const id = idOf(yield* here.create(accountId, { text: "canary" }))
      yield* ends(here, accountId, id, "succeeded")
      const written = (yield* logText(to)).toLowerCase()
      expect(written).toContain(id.toLowerCase())
      expect(written).not.toContain("canary")
      const kept = yield* to.states.list("jobs")
      expect(kept).toHaveLength(2)
      for (const { value } of kept) expect(Buffer.from(value).toString().toLowerCase()).not.toContain("canary")
    })
  )

  testing(
    "is answered as not found, always alike, for others, before its acceptance and after its retention",
    Effect.gen(function* () {
      const { to, here, accountId } = yield* setting()
      const other = yield* here.open("acc_2", UNIT)
      const id = idOf(yield* here.create(accountId))
      yield* ends(here, accountId, id, "succeeded")
      for (const name of ["", "x", "job_01ARZ3NDEKTSV4RRFFQ69G5FAV"]) expect(yield* missing(here.read(accountId, name))).toBe("NotFound")
      expect(yield* missing(here.read(other, id))).toBe("NotFound")
      expect(yield* missing(here.cancel(other, id))).toBe("NotFound")
      yield* elapse(hours(24) - seconds(10))
      expect(yield* missing(here.read(accountId, id))).toBe("there")
      yield* elapse(seconds(20))
      expect(yield* missing(here.read(accountId, id))).toBe("NotFound")
      expect(yield* story(to)).toEqual(["JobAccepted", "JobStarted", "JobSucceeded", "JobPurged"])
      expect(yield* to.states.list("jobs")).toEqual([])
    })
  )

  testing(
    "whose account was erased fails and returns nothing",
    Effect.gen(function* () {
      const { to, here, accountId } = yield* setting({ jobs: { runner: false } })
      const id = idOf(yield* here.create(accountId))
      yield* Effect.provideContext(
        Effect.flatMap(Vault, (vault) => vault.destroy(ofAccount(accountId))),
        here.context
      )
      const bench = makeBench()
      const there = yield* host(to, bench)
      yield* ends(there, accountId, id, "failed")
      expect(yield* there.read(accountId, id)).toMatchObject({ failure: "Unreadable" })
      expect(bench.runs).toEqual([])
      expect(yield* there.balance(accountId)).toEqual(FULL)
    })
  )
})

describe("an idempotency key", () => {
  testing(
    "returns the same job while it runs, after its success and after its failure",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const { go } = yield* holding(bench)
      const first = yield* here.create(accountId, { key: "key" })
      yield* quiet
      const again = yield* here.create(accountId, { key: "key" })
      expect(again).toMatchObject({ data: first.data, requestId: first.requestId, replayed: true, job: first.job })
      expect(yield* missing(here.create(accountId, { key: "key", text: "other" }))).toBe("KeyReused")
      yield* go
      expect(yield* here.create(accountId, { key: "key" })).toMatchObject({ data: first.data, replayed: true, billed: { charged: UNIT } })

      bench.answer = () => Effect.fail(new InvalidInput({ field: "text", message: "no" }))
      const failing = yield* here.create(accountId, { key: "another" })
      yield* ends(here, accountId, idOf(failing), "failed")
      yield* elapse(hours(1))
      expect(yield* here.create(accountId, { key: "another" })).toMatchObject({ data: failing.data, replayed: true, job: failing.job })
      expect(bench.runs).toHaveLength(2)
      expect(yield* here.balance(accountId)).toEqual(CHARGED)
    })
  )
})

describe("a key of which a job has failed between another call's lookup and its hold", () => {
  for (const text of ["text", "other"])
    testing(
      `stays with the job: ${text === "other" ? "another request is refused" : "the same request gets its reply"}, and its hold is released`,
      Effect.gen(function* () {
        const { to, bench, here, accountId } = yield* setting()
        const there = yield* mortalHost(to, makeBench(), { name: "there", jobs: { runner: false } })
        const gate = yield* Deferred.make<void>()
        yield* there.through((ways) => ({
          ...ways,
          events: { ...ways.events, append: (...of) => Effect.andThen(Deferred.await(gate), ways.events.append(...of)) }
        }))
        const late = yield* Effect.forkChild(
          Effect.catch(there.create(accountId, { key: "key", text }), (error) => Effect.succeed(error._tag))
        )
        yield* quiet
        bench.answer = () => Effect.fail(new InvalidInput({ field: "text", message: "no" }))
        const failed = yield* here.create(accountId, { key: "key" })
        yield* ends(here, accountId, idOf(failed), "failed")
        expect(late.pollUnsafe()).toBeUndefined()
        yield* Deferred.succeed(gate, undefined)
        const answer = yield* patiently(Fiber.join(late))
        if (text === "other") expect(answer).toBe("KeyReused")
        else expect(answer).toMatchObject({ data: failed.data, requestId: failed.requestId, replayed: true, job: failed.job })
        yield* until(Effect.map(here.balance(accountId), ({ held }) => held === 0))
        expect(yield* here.balance(accountId)).toEqual(FULL)
        const accepted = (yield* jobEvents(to)).filter(({ event }) => event._tag === "JobAccepted")
        expect(accepted.map(({ jobId }) => jobId)).toEqual([idOf(failed)])
        expect(yield* here.create(accountId, { key: "key" })).toMatchObject({ data: failed.data, replayed: true, job: failed.job })
      })
    )
})

describe("waiting", () => {
  testing(
    "ends with the job or after the given time",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const { go } = yield* holding(bench)
      const id = idOf(yield* here.create(accountId))
      const reply = { requestId: "req", data: "", replayed: false, job: { id } }
      const ask = (within: number) =>
        Effect.map(here.charge.awaitJob(here.operations.work, accountId, reply, within), ({ ended, reply: { data } }) => ({ data, ended }))
      const early = yield* Effect.forkChild(ask(seconds(20)))
      yield* elapse(seconds(19))
      expect(early.pollUnsafe()).toBeUndefined()
      yield* elapse(seconds(1))
      expect(yield* Fiber.join(early)).toEqual({ data: JSON.stringify({ id, status: "running" }), ended: false })
      const late = yield* Effect.forkChild(ask(seconds(20)))
      yield* quiet
      yield* go
      expect(yield* Fiber.join(late)).toEqual({ data: JSON.stringify({ id, status: "succeeded" }), ended: true })
      expect(yield* ask(seconds(20))).toMatchObject({ ended: true })
    })
  )

  testing(
    "returns the job's charge, so that the replies add up to the balance",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const answers = [{ data: { text: "all" } }, { data: { text: "some" }, quantity: 1 }, { data: { text: "none" }, quantity: 0 }]
      let charged = 0
      for (const outcome of answers) {
        bench.answer = () => Effect.succeed(outcome)
        const created = yield* here.create(accountId, { units: 2 })
        const waited = here.charge.awaitJob(here.operations.work, accountId, { ...created, job: { id: idOf(created) } }, seconds(20))
        const { ended, reply } = yield* waited
        expect(ended).toBe(true)
        charged += (created.billed?.charged ?? 0) + (reply.billed?.charged ?? 0)
        expect(reply.billed?.balance).toBe(10 * UNIT - charged)
      }
      expect(charged).toBe(3 * UNIT)
      bench.answer = () => Effect.fail(new InvalidInput({ field: "text", message: "no" }))
      const failed = yield* here.create(accountId)
      const waited = yield* here.charge.awaitJob(here.operations.work, accountId, { ...failed, job: { id: idOf(failed) } }, seconds(20))
      expect(waited.reply.billed).toEqual({ charged: 0, balance: 7 * UNIT })
    })
  )
})

describe("cancelling", () => {
  testing(
    "succeeds for one of six concurrent calls at two hosts: the others fail with NotFound",
    Effect.gen(function* () {
      for (const status of ["running", "succeeded"] as const) {
        const { to, bench, here, accountId } = yield* setting()
        const { go } = yield* holding(bench)
        const there = yield* host(to, makeBench(), { jobs: { runner: false } })
        const id = idOf(yield* here.create(accountId))
        yield* quiet
        if (status === "succeeded") yield* go
        const six = range(6).map((i) => missing((i % 2 === 0 ? here : there).cancel(accountId, id)))
        const told = yield* Effect.all(six, { concurrency: "unbounded" })
        expect(told.toSorted()).toEqual([...range(5).map(() => "NotFound"), "there"])
        yield* quiet
        expect(yield* here.balance(accountId)).toEqual(status === "succeeded" ? CHARGED : FULL)
      }
    })
  )

  testing(
    "under a key is replayed",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      yield* holding(bench)
      const id = idOf(yield* here.create(accountId))
      yield* quiet
      expect(yield* here.cancel(accountId, id, "key")).toEqual({ cancelled: true, job_id: id })
      expect(yield* here.cancel(accountId, id, "key")).toEqual({ cancelled: true, job_id: id })
      expect(yield* missing(here.cancel(accountId, id, "another"))).toBe("NotFound")
    })
  )

  testing(
    "interrupts a running job, purges it and makes it free",
    Effect.gen(function* () {
      const { to, bench, here, accountId } = yield* setting()
      const { interrupted } = yield* holding(bench)
      const id = idOf(yield* here.create(accountId))
      yield* quiet
      expect(yield* here.cancel(accountId, id)).toEqual({ cancelled: true, job_id: id })
      yield* quiet
      expect(interrupted).toEqual([`${id} 1`])
      expect(yield* here.balance(accountId)).toEqual(FULL)
      expect(yield* endsIn(to)).toEqual(["CreditReserved", "Refunded cancelled"])
      expect(yield* to.states.list("jobs")).toEqual([])
      expect(yield* missing(here.read(accountId, id))).toBe("NotFound")
      expect(yield* missing(here.cancel(accountId, id))).toBe("NotFound")
      yield* elapse(hours(1))
      expect(yield* story(to)).toEqual(["JobAccepted", "JobStarted", "JobCancelled", "JobPurged"])
    })
  )

  testing(
    "interrupts a job that runs at another host",
    Effect.gen(function* () {
      const { to, bench, here, accountId } = yield* setting()
      const { interrupted } = yield* holding(bench)
      const there = yield* host(to, makeBench(), { jobs: { runner: false } })
      const id = idOf(yield* there.create(accountId))
      yield* quiet
      expect(bench.runs).toMatchObject([{ host: here.name }])
      expect(yield* there.cancel(accountId, id)).toEqual({ cancelled: true, job_id: id })
      yield* quiet
      expect(interrupted).toEqual([`${id} 1`])
    })
  )

  testing(
    "ends a queued job",
    Effect.gen(function* () {
      const { to, bench, here, accountId } = yield* setting({ jobs: { runner: false } })
      const id = idOf(yield* here.create(accountId))
      expect(yield* here.cancel(accountId, id)).toEqual({ cancelled: true, job_id: id })
      yield* host(to, bench)
      yield* elapse(seconds(60))
      expect(bench.runs).toEqual([])
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "purges a job that has succeeded, which stays charged",
    Effect.gen(function* () {
      const { to, here, accountId } = yield* setting()
      const id = idOf(yield* here.create(accountId))
      yield* ends(here, accountId, id, "succeeded")
      expect(yield* here.cancel(accountId, id)).toEqual({ cancelled: false, job_id: id })
      expect(yield* missing(here.read(accountId, id))).toBe("NotFound")
      expect(yield* missing(here.cancel(accountId, id))).toBe("NotFound")
      expect(yield* here.balance(accountId)).toEqual(CHARGED)
      expect(yield* to.states.list("jobs")).toEqual([])
    })
  )
})

describe("files", () => {
  testing(
    "are stored in pieces, read in ranges, and removed with the job",
    Effect.gen(function* () {
      const { to, bench, here, accountId } = yield* setting()
      const bytes = Buffer.from(range(200_000).map((i) => i % 251))
      bench.answer = ({ text }, job) =>
        Effect.gen(function* () {
          const pieces = Stream.fromIterable(range(20).map((i) => bytes.subarray(i * 10_000, (i + 1) * 10_000)))
          const artifact = yield* job.store(pieces, { contentType: "image/png" })
          return { data: { text }, artifacts: [artifact] }
        })
      const id = idOf(yield* here.create(accountId))
      yield* ends(here, accountId, id, "succeeded")
      expect(yield* here.read(accountId, id)).toMatchObject({ files: 1 })
      const { download } = here.operations
      const caller = { accountId, requestId: "req" }
      const called = yield* Effect.provideContext(here.charge.run(download, { job: id }, caller), here.context)
      expect(JSON.parse(called.data)).toMatchObject({ content_type: "image/png", size: 200_000 })
      const { file } = called
      if (file === undefined) throw new Error("It gives a file")
      expect(file).toMatchObject({ contentType: "image/png", size: 200_000, filename: `${id}.png` })
      const read = (part?: { readonly offset: number; readonly length?: number }) =>
        Effect.map(Effect.flatMap(file.read(part), Stream.runCollect), (parts) => Buffer.concat(parts))
      expect((yield* read()).equals(bytes)).toBe(true)
      expect((yield* read({ offset: 150_000, length: 7 })).equals(bytes.subarray(150_000, 150_007))).toBe(true)
      expect(yield* missing(Effect.provideContext(here.charge.run(download, { job: id, part: 2 }, caller), here.context))).toBe("NotFound")

      // No job returns the files of an attempt that died
      const orphan = yield* to.blobs.put(ofJob(id, accountId), bytes)
      const upkeep = yield* Effect.provideContext(Effect.serviceOption(JobUpkeep), here.context)
      if (Option.isNone(upkeep)) throw new Error("There are jobs")
      const { artifacts } = upkeep.value
      const needed = yield* artifacts
      yield* elapse(hours(23))
      yield* to.blobs.sweep((blob) => Effect.succeed(needed.has(blob)), "1 hour")
      expect((yield* Stream.runCollect(to.blobs.list)).map((blob) => blob.id)).toEqual([...needed])
      expect(needed.has(orphan.id)).toBe(false)

      expect(yield* here.cancel(accountId, id)).toEqual({ cancelled: false, job_id: id })
      expect(yield* Stream.runCollect(to.blobs.list)).toEqual([])
      expect(yield* missing(file.read())).toBe("NotFound")
    })
  )
})

describe("the stored queue", () => {
  testing(
    "is restored by the next process, with its start times",
    Effect.gen(function* () {
      const to = yield* shared
      const first = yield* mortalHost(to, makeBench(), { jobs: { runner: false } })
      const accountId = yield* first.open("acc_1", 10 * UNIT)
      for (const text of ["one", "two"]) yield* first.create(accountId, { text })
      yield* quiet
      yield* patiently(first.stop)
      const kept = (yield* to.states.list("projections")).map(({ key }) => key)
      expect(kept).toEqual(expect.arrayContaining(["jobs", "jobDeadlines"]))
      const bench = makeBench()
      const readAfter: Array<string> = []
      const subscribe: Shared["events"]["subscribe"] = (after) => {
        readAfter.push(after)
        return to.events.subscribe(after)
      }
      const next = yield* host({ ...to, events: { ...to.events, subscribe } }, bench)
      yield* elapse(seconds(1))
      expect(bench.runs.map(({ input }) => input.text)).toEqual(["one", "two"])
      expect(yield* next.balance(accountId)).toEqual({ available: 8 * UNIT, held: 0 })
      // They do not read the log from the beginning
      expect(readAfter.filter((after) => after !== "").length).toBeGreaterThanOrEqual(2)
    })
  )
})

describe("a runner", () => {
  testing(
    "starts a job in the append that accepts it while no job waits, and overtakes none that does",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting({ jobs: { concurrency: 1 } })
      const appended: Array<string> = []
      yield* here.through(({ events }) => ({
        events: {
          ...events,
          append: (stream, expected, all) => {
            if (StreamName.category(stream) === "job") appended.push(all.map(({ type }) => type).join(" and "))
            return events.append(stream, expected, all)
          }
        }
      }))
      const { go } = yield* holding(bench)
      for (const text of ["first", "second", "third"]) {
        yield* here.create(accountId, { text })
        yield* quiet
      }
      expect(appended).toEqual(["JobAccepted and JobStarted", "JobAccepted", "JobAccepted"])
      yield* go
      for (const _ of range(3)) yield* quiet
      expect(bench.runs.map(({ input }) => input.text)).toEqual(["first", "second", "third"])
      expect(yield* here.balance(accountId)).toEqual({ available: 7 * UNIT, held: 0 })
    })
  )

  testing(
    "opens the input of a job that waited while its claim is written, and runs it only then",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting({ jobs: { concurrency: 1 } })
      const gate = yield* Deferred.make<void>()
      const asked: Array<string> = []
      const { go, started } = yield* holding(bench)
      yield* here.create(accountId, { text: "first" })
      const waits = idOf(yield* here.create(accountId, { text: "second" }))
      yield* here.through(({ events, states }) => ({
        events: {
          ...events,
          append: (stream, expected, all) => {
            const append = events.append(stream, expected, all)
            return all[0].type === "JobStarted" ? Effect.andThen(Deferred.await(gate), append) : append
          }
        },
        states: {
          ...states,
          get: (space, key) =>
            Effect.andThen(
              Effect.sync(() => asked.push(key)),
              states.get(space, key)
            )
        }
      }))
      yield* go
      yield* quiet
      expect(asked).toContain(`job:${waits}`)
      expect(started).toHaveLength(1)
      asked.length = 0
      yield* Deferred.succeed(gate, undefined)
      for (const _ of range(2)) yield* quiet
      expect(bench.runs.map(({ input }) => input.text)).toEqual(["first", "second"])
      expect(asked).not.toContain(`job:${waits}`)
    })
  )

  testing(
    "keeps the place of a job whose acceptance is not written free for others",
    Effect.gen(function* () {
      const { bench, here, to, accountId } = yield* setting({ jobs: { concurrency: 1 } })
      yield* here.through(({ events }) => ({
        events: {
          ...events,
          append: (stream, ...of) =>
            StreamName.category(stream) === "job"
              ? Effect.fail(new EventStore.StoreUnavailable({ reason: "away" }))
              : events.append(stream, ...of)
        }
      }))
      expect(yield* patiently(missing(here.create(accountId, { text: "lost" })))).toBe("OutcomeUnknown")
      yield* here.heal
      yield* here.create(accountId, { text: "next" })
      yield* quiet
      expect(bench.runs.map(({ input }) => input.text)).toEqual(["next"])
      yield* elapse(minutes(1))
      expect(yield* here.balance(accountId)).toEqual(CHARGED)
      expect(yield* story(to)).toContain("JobSucceeded")
    })
  )

  testing(
    "has a place free once the end of its job is recorded, and settles the job before it stops",
    Effect.gen(function* () {
      const to = yield* shared
      const bench = makeBench()
      const mortal = yield* mortalHost(to, bench, { name: "mortal", jobs: { concurrency: 1, drain: "10 seconds" } })
      const [first, second] = [yield* mortal.open("acc_1", 10 * UNIT), yield* mortal.open("acc_2", 10 * UNIT)]
      const gate = yield* Deferred.make<void>()
      yield* mortal.through(({ events }) => ({
        events: {
          ...events,
          append: (stream, expected, all) => {
            const isSettlement = stream.endsWith(first) && all.every(({ type }) => type !== "CreditReserved")
            const append = events.append(stream, expected, all)
            return isSettlement ? Effect.andThen(Deferred.await(gate), append) : append
          }
        }
      }))
      yield* mortal.create(first, { text: "first" })
      yield* quiet
      yield* mortal.create(second, { text: "second" })
      yield* quiet
      expect(bench.runs.map(({ input }) => input.text)).toEqual(["first", "second"])
      expect(yield* mortal.balance(first)).toEqual(HELD)
      expect(yield* mortal.balance(second)).toEqual(CHARGED)
      const stopping = yield* Effect.forkChild(mortal.stop)
      yield* elapse(seconds(5))
      expect(stopping.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(stopping)
      const heir = yield* host(to, bench, { name: "heir", jobs: { runner: false } })
      expect(yield* heir.balance(first)).toEqual(CHARGED)
    })
  )

  testing(
    "extends its lease while it works, and stops in time when it cannot",
    Effect.gen(function* () {
      const { to, bench, accountId } = yield* setting({ jobs: { runner: false } })
      const { interrupted, started } = yield* holding(bench)
      const here = yield* host(to, bench)
      const id = idOf(yield* here.create(accountId))
      yield* elapse(LEASE * 4)
      expect(started).toHaveLength(1)
      const leases = (yield* jobEvents(to)).filter(({ event }) => event._tag === "JobLeaseExtended")
      expect(leases.length).toBeGreaterThanOrEqual(11)
      yield* here.cut
      // Since the last extension, less than a third of the lease ago
      yield* elapse((LEASE * 2) / 3)
      expect(interrupted).toEqual([`${id} 1`])
    })
  )

  testing(
    "extends each lease a third of it after its claim began, however long the claim took",
    Effect.gen(function* () {
      const to = yield* shared
      const bench = makeBench()
      const { started } = yield* holding(bench)
      const mortal = yield* mortalHost(to, bench, { name: "mortal" })
      const accountId = yield* mortal.open("acc_1", 10 * UNIT)
      const gate = yield* Deferred.make<void>()
      let claims = 0
      yield* mortal.through(({ events }) => ({
        events: {
          ...events,
          append: (stream, expected, all) => {
            const append = events.append(stream, expected, all)
            const isFirstClaim = all.some(({ type }) => type === "JobStarted") && ++claims === 1
            return isFirstClaim ? Effect.andThen(Deferred.await(gate), append) : append
          }
        }
      }))
      const extended = Effect.map(jobEvents(to), (all) =>
        all.filter(({ event }) => event._tag === "JobLeaseExtended").map(({ jobId }) => jobId)
      )
      const creating = yield* Effect.forkChild(mortal.create(accountId))
      yield* elapse(LEASE / 6)
      const fast = idOf(yield* mortal.create(accountId))
      yield* quiet
      expect(started.map(({ id }) => id)).toEqual([fast])
      yield* Deferred.succeed(gate, undefined)
      const slow = idOf(yield* patiently(Fiber.join(creating)))
      yield* elapse(LEASE / 4)
      expect(yield* extended).toEqual([slow])
      yield* elapse(LEASE / 6)
      expect(yield* extended).toEqual([slow, fast])
    })
  )

  for (const [claim, claims] of [
    ["the claim that came with its acceptance", 1],
    ["a claim", 2]
  ] as const)
    testing(
      `does not begin the work if ${claim} is answered too late, but once the lease has expired`,
      Effect.gen(function* () {
        const to = yield* shared
        const bench = makeBench()
        const { started } = yield* holding(bench)
        const mortal = yield* mortalHost(to, bench, { name: "mortal", jobs: { concurrency: 1 } })
        const accountId = yield* mortal.open("acc_1", 10 * UNIT)
        // A job that waits is claimed by itself
        const first = claims === 2 ? idOf(yield* mortal.create(accountId)) : undefined
        const gate = yield* Deferred.make<void>()
        let left = 1
        yield* mortal.through(({ events }) => ({
          events: {
            ...events,
            append: (stream, expected, all) => {
              const append = events.append(stream, expected, all)
              const isLate = all.some(({ type }) => type === "JobStarted") && left-- > 0
              return isLate ? Effect.tap(append, () => Deferred.await(gate)) : append
            }
          }
        }))
        const creating = yield* Effect.forkChild(mortal.create(accountId))
        yield* quiet
        if (first !== undefined) yield* mortal.cancel(accountId, first)
        yield* elapse((LEASE * 2) / 3)
        yield* Deferred.succeed(gate, undefined)
        const id = idOf(yield* patiently(Fiber.join(creating)))
        yield* quiet
        expect(started.filter((one) => one.id === id)).toEqual([])
        yield* elapse(LEASE)
        expect(started.filter((one) => one.id === id)).toMatchObject([{ attempt: 2 }])
      })
    )

  testing(
    "that died loses its jobs to another once its lease has expired, which resumes them",
    Effect.gen(function* () {
      const to = yield* shared
      const bench = makeBench()
      const mortal = yield* mortalHost(to, bench, { name: "mortal" })
      const accountId = yield* mortal.open("acc_1", 10 * UNIT)
      bench.answer = (_, job) => Effect.andThen(job.progress(40, { at: 7 }), Effect.never)
      const id = idOf(yield* mortal.create(accountId))
      yield* quiet
      yield* patiently(mortal.die)
      const { answer } = makeBench()
      bench.answer = answer
      const heir = yield* host(to, bench, { name: "heir" })
      expect(yield* heir.read(accountId, id)).toMatchObject({ status: "running", percent: 40 })
      yield* elapse(LEASE - 1)
      expect(bench.runs).toHaveLength(1)
      yield* elapse(1)
      yield* ends(heir, accountId, id, "succeeded")
      expect(bench.runs.map(({ host, job }) => [host, job.attempt, job.checkpoint])).toEqual([
        ["mortal", 1, undefined],
        ["heir", 2, { at: 7 }]
      ])
      expect(yield* heir.balance(accountId)).toEqual(CHARGED)
    })
  )

  testing(
    "that is stopped finishes jobs for a while and then hands back the rest",
    Effect.gen(function* () {
      const to = yield* shared
      const bench = makeBench()
      const { started, interrupted } = yield* holding(bench)
      const mortal = yield* mortalHost(to, bench, { name: "mortal", jobs: { drain: "10 seconds" } })
      const accountId = yield* mortal.open("acc_1", 10 * UNIT)
      const long = idOf(yield* mortal.create(accountId, { text: "long" }))
      yield* quiet
      bench.answer = ({ text }) => Effect.as(Effect.sleep("5 seconds"), { data: { text } })
      const short = idOf(yield* mortal.create(accountId, { text: "short" }))
      yield* quiet
      const stopping = yield* Effect.forkChild(mortal.stop)
      yield* elapse(seconds(5))
      expect(stopping.pollUnsafe()).toBeUndefined()
      yield* elapse(seconds(5))
      yield* Fiber.join(stopping)
      expect(started).toHaveLength(1)
      expect(interrupted).toEqual([`${long} 1`])
      const heir = yield* host(to, bench, { name: "heir" })
      expect(yield* heir.read(accountId, short)).toMatchObject({ status: "succeeded" })
      yield* elapse(seconds(6))
      expect(yield* heir.read(accountId, long)).toMatchObject({ status: "succeeded" })
      expect(bench.runs.map(({ host, job }) => [host, job.id, job.attempt])).toEqual([
        ["mortal", long, 1],
        ["mortal", short, 1],
        ["heir", long, 2]
      ])
      expect(yield* heir.balance(accountId)).toEqual({ available: 8 * UNIT, held: 0 })
    })
  )

  testing(
    "whose jobs kill its process does not run them for ever",
    Effect.gen(function* () {
      const to = yield* shared
      const bench = makeBench()
      bench.answer = () => Effect.never
      const first = yield* host(to, bench, { jobs: { runner: false } })
      const accountId = yield* first.open("acc_1", 10 * UNIT)
      const id = idOf(yield* first.create(accountId))
      for (const _ of range(5)) {
        const mortal = yield* mortalHost(to, bench)
        yield* elapse(seconds(1))
        yield* patiently(mortal.die)
        yield* elapse(LEASE)
      }
      yield* host(to, bench)
      yield* ends(first, accountId, id, "failed")
      expect(yield* first.read(accountId, id)).toMatchObject({ failure: "Abandoned" })
      expect(bench.runs).toHaveLength(5)
      expect(yield* first.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "keeps the limits of an operation and of an account",
    Effect.gen(function* () {
      const { bench, here } = yield* setting({ limits: { atOnce: 3, atOnceOfAccount: 2 } })
      const { started, go } = yield* holding(bench)
      const one = yield* here.open("acc_2", 10 * UNIT)
      const two = yield* here.open("acc_3", 10 * UNIT)
      for (const _ of range(5)) yield* here.create(one)
      yield* quiet
      expect(started.map(({ accountId }) => accountId)).toEqual([one, one])
      for (const _ of range(5)) yield* here.create(two)
      yield* quiet
      expect(started.map(({ accountId }) => accountId)).toEqual([one, one, two])
      yield* go
      yield* elapse(seconds(1))
      expect(bench.runs).toHaveLength(10)
    })
  )

  testing(
    "takes turns between accounts: many jobs of one delay another's only by the running jobs",
    Effect.gen(function* () {
      const { bench, here } = yield* setting({ jobs: { concurrency: 2 }, limits: { atOnce: 100, atOnceOfAccount: 100 } })
      const order: Array<string> = []
      bench.answer = ({ text }) =>
        Effect.andThen(
          Effect.sleep("1 second"),
          Effect.sync(() => void order.push(text))
        ).pipe(Effect.as({ data: { text } }))
      const many = yield* here.open("acc_2", 100 * UNIT)
      const few = yield* here.open("acc_3", 10 * UNIT)
      for (const i of range(40)) yield* here.create(many, { text: `many ${i}` })
      yield* elapse(seconds(5))
      const before = bench.runs.length
      yield* here.create(few, { text: "few" })
      yield* elapse(seconds(2))
      expect(bench.runs.findIndex(({ input }) => input.text === "few")).toBeLessThanOrEqual(before + 1)
      expect(order).toContain("few")
    })
  )

  testing(
    "refuses calls beyond the limits of open jobs, before a hold",
    Effect.gen(function* () {
      const { to, here, accountId } = yield* setting({ jobs: { runner: false, queueLimit: 5 }, limits: { ofAccount: 3 } })
      const other = yield* here.open("acc_2", 10 * UNIT)
      for (const _ of range(3)) yield* here.create(accountId)
      yield* quiet
      expect(yield* Effect.flip(here.create(accountId))).toMatchObject({ _tag: "TooManyJobs", scope: "account", limit: 3 })
      for (const _ of range(2)) yield* here.create(other)
      yield* quiet
      expect(yield* Effect.flip(here.create(other))).toMatchObject({ _tag: "TooManyJobs", scope: "host", limit: 5 })
      expect(yield* endsIn(to)).toHaveLength(5)
    })
  )
})
