/** A process may stop between any two appends, and any append may fail: every job and its hold still end once. */
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Clock, Deferred, Effect, Exit, Fiber } from "effect"
import { describe, expect } from "vitest"
import * as Audit from "../../../audit/src/Audit.ts"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import * as Credits from "../../src/Credits.ts"
import { elapse, minutes, patiently, quiet, range, seconds, testing, told, UNIT, until } from "../billing/Bench.ts"
import { type Bench, host, idOf, jobEvents, LEASE, makeBench, mortalHost, type Shared, setting, shared } from "./JobBench.ts"

/** Work in two steps that does one of two units. */
const inSteps = (bench: Bench) => {
  bench.answer = ({ text }, job) =>
    Effect.gen(function* () {
      if (job.checkpoint === undefined) yield* job.progress(50, { at: 1 })
      return { data: { text }, quantity: 1 }
    })
}

/** After the n-th append nothing arrives any more. That one arrives or not, without a confirmation. */
const stopping = (n: number, arrives: boolean) => {
  let appends = 0
  let stopped = false
  const away = new EventStore.StoreUnavailable({ reason: "stopped" })
  return {
    reached: () => stopped,
    way: (to: Pick<Shared, "events" | "states">) => ({
      events: {
        ...to.events,
        append: (...of: Parameters<Shared["events"]["append"]>) =>
          Effect.suspend((): ReturnType<Shared["events"]["append"]> => {
            if (stopped) return Effect.fail(away)
            if (++appends < n) return to.events.append(...of)
            stopped = true
            const doubt = Effect.fail(new EventStore.AppendInDoubt({ stream: of[0], reason: "stopped" }))
            return arrives ? Effect.andThen(Effect.ignore(to.events.append(...of)), doubt) : doubt
          }),
        lastRevision: (...of: Parameters<Shared["events"]["lastRevision"]>) =>
          Effect.suspend(() => (stopped ? Effect.fail(away) : to.events.lastRevision(...of)))
      },
      states: {
        ...to.states,
        write: (...of: Parameters<Shared["states"]["write"]>) =>
          Effect.suspend(() => (stopped ? Effect.fail(new StateStore.StateUnavailable({ reason: "stopped" })) : to.states.write(...of)))
      }
    })
  }
}

const sound = (to: Shared) =>
  Effect.gen(function* () {
    const at = yield* Clock.currentTimeMillis
    const { problems } = yield* Audit.run({ at: at + minutes(10) }).pipe(Effect.provideService(EventStore.EventStore, to.events))
    expect(problems).toEqual([])
  })

/** How often each job succeeded. */
const results = (to: Shared) =>
  Effect.map(jobEvents(to), (events) => {
    const counts = new Map<string, number>()
    for (const { event, jobId } of events) if (event._tag === "JobSucceeded") counts.set(jobId, (counts.get(jobId) ?? 0) + 1)
    return [...counts.values()]
  })

describe("a process that stops at an append", () => {
  for (const arrives of [true, false])
    for (const isApart of [true, false]) {
      const documents = arrives ? "events" : "state"
      const where = isApart ? "another process runs" : "it runs"
      testing(
        `that ${arrives ? "was" : "was not"} written leaves the jobs that ${where} to a third, which ends them after the lease`,
        Effect.gen(function* () {
          let reached = 0
          for (const n of range(10)) {
            const to = yield* shared
            const bench = makeBench()
            inSteps(bench)
            const mortal = yield* mortalHost(to, bench, { name: "mortal", jobs: { runner: !isApart, documents } })
            const accountId = yield* mortal.open("acc_1", 10 * UNIT)
            const runner = isApart ? yield* mortalHost(to, bench, { name: "runner", jobs: { documents } }) : mortal
            const stop = stopping(n + 1, arrives)
            for (const one of new Set([mortal, runner])) yield* one.through((ways) => stop.way({ ...to, ...ways }))
            const call = yield* Effect.forkChild(told(mortal.create(accountId, { key: "key", units: 2 })))
            for (const _ of range(20)) yield* quiet
            if (stop.reached()) reached++
            const heir = yield* host(to, bench, { name: "heir" })
            yield* patiently(Fiber.join(call))
            for (const one of new Set([mortal, runner])) yield* patiently(one.die)
            yield* elapse(LEASE + seconds(35))
            yield* elapse(seconds(35))
            expect(yield* heir.balance(accountId)).toMatchObject({ held: 0 })
            yield* sound(to)

            // A retry under the key returns that job, or a new one if it was not accepted: one is done and charged
            const reply = yield* heir.create(accountId, { key: "key", units: 2 })
            yield* until(
              Effect.map(heir.read(accountId, idOf(reply)), ({ status }) => status === "succeeded"),
              seconds(10)
            )
            expect(yield* heir.balance(accountId)).toEqual({ available: 9 * UNIT, held: 0 })
            expect(yield* results(to)).toEqual([1])
            yield* sound(to)
          }
          // At least hold, accept, start (in the append of the acceptance where it runs), progress, succeed and settle
          expect(reached).toBeGreaterThanOrEqual(isApart ? 6 : 5)
        })
      )
    }

  testing(
    "of a cancellation leaves neither a job nor a hold",
    Effect.gen(function* () {
      for (const n of range(4)) {
        const to = yield* shared
        const bench = makeBench()
        bench.answer = () => Effect.never
        const mortal = yield* mortalHost(to, bench, { name: "mortal" })
        const accountId = yield* mortal.open("acc_1", 10 * UNIT)
        const id = idOf(yield* mortal.create(accountId))
        yield* quiet
        const stop = stopping(n + 1, n % 2 === 0)
        yield* mortal.through((ways) => stop.way({ ...to, ...ways }))
        const cancelling = yield* Effect.forkChild(Effect.exit(mortal.cancel(accountId, id)))
        yield* quiet
        const heir = yield* host(to, bench, { name: "heir" })
        yield* patiently(Fiber.join(cancelling))
        yield* patiently(mortal.die)
        yield* elapse(LEASE + seconds(35))
        yield* Effect.ignore(heir.cancel(accountId, id))
        yield* elapse(seconds(35))
        expect(yield* heir.balance(accountId)).toEqual({ available: 10 * UNIT, held: 0 })
        expect(yield* to.states.list("jobs")).toEqual([])
        yield* sound(to)
      }
    })
  )
})

testing(
  "a call that is not accepted in time becomes no job and is free",
  Effect.gen(function* () {
    const to = yield* shared
    const bench = makeBench()
    const here = yield* host(to, bench)
    const accountId = yield* here.open("acc_1", 10 * UNIT)
    const proceed = yield* Deferred.make<void>()
    yield* here.through(({ states }) => ({
      states: {
        ...states,
        write: (changes) =>
          Effect.andThen(changes.some(({ space }) => space === "jobs") ? Deferred.await(proceed) : Effect.void, states.write(changes))
      }
    }))
    const call = yield* Effect.forkChild(told(here.create(accountId)))
    yield* elapse(seconds(29))
    expect(yield* here.balance(accountId)).toEqual({ available: 9 * UNIT, held: UNIT })
    yield* elapse(seconds(2))
    expect(yield* here.balance(accountId)).toEqual({ available: 10 * UNIT, held: 0 })
    yield* Deferred.succeed(proceed, undefined)
    expect(yield* patiently(Fiber.join(call))).toBe("ResultWithheld")
    yield* elapse(LEASE)
    expect(bench.runs).toEqual([])
    expect((yield* jobEvents(to)).map(({ event }) => event._tag)).toEqual(["JobRefused"])
    expect(yield* to.states.list("jobs")).toEqual([])
    yield* sound(to)
  })
)

testing(
  "a job is held at the price that another host has just published, or becomes free by it",
  Effect.gen(function* () {
    const { accountId, bench, here, to } = yield* setting()
    const there = yield* host(to, bench)
    for (const [price, key] of [
      [3 * UNIT, undefined],
      [0, undefined],
      [2 * UNIT, "key"]
    ] as const) {
      const { available } = yield* here.balance(accountId)
      yield* there.prices.publish({ "bench.work": Credits.of(price) })
      yield* patiently(here.create(accountId, key === undefined ? {} : { key }))
      yield* elapse(LEASE)
      expect(yield* here.balance(accountId)).toEqual({ available: available - price, held: 0 })
    }
    yield* sound(to)
  })
)

testing(
  "a free job whose call hangs has its key for a minute at most, and does not run beside the next one under that key",
  Effect.gen(function* () {
    const to = yield* shared
    const bench = makeBench()
    const there = yield* host(to, bench)
    const slow = yield* host(to, bench)
    const accountId = yield* there.open("acc_1", 0)
    yield* there.prices.publish({ "bench.work": Credits.zero })
    const proceed = yield* Deferred.make<void>()
    yield* slow.through(({ states }) => ({
      states: {
        ...states,
        write: (changes) =>
          Effect.andThen(changes.some(({ space }) => space === "jobs") ? Deferred.await(proceed) : Effect.void, states.write(changes))
      }
    }))
    const first = yield* Effect.forkChild(Effect.exit(slow.create(accountId, { key: "key" })))
    yield* elapse(seconds(59))
    expect(yield* told(there.create(accountId, { key: "key" }))).toBe("InFlight")
    yield* elapse(seconds(2))
    const second = yield* there.create(accountId, { key: "key" })
    expect(second).toMatchObject({ replayed: false })
    yield* Deferred.succeed(proceed, undefined)
    expect(yield* patiently(Fiber.join(first))).toEqual(Exit.succeed({ ...second, replayed: true, billed: expect.anything() }))
    yield* elapse(LEASE)
    expect(bench.runs.map(({ job }) => job.id)).toEqual([idOf(second)])
    yield* sound(to)
  })
)

describe("a caller without an idempotency key whose outcome is unknown", () => {
  for (const survives of [true, false]) {
    testing(
      `pays nothing, whether or not the job was accepted, ${survives ? "while the process lives" : "after the process died"}`,
      Effect.gen(function* () {
        for (const fault of ["after", "lost", "unanswered"] as const) {
          const to = yield* shared
          const bench = makeBench()
          const mortal = yield* mortalHost(to, bench, { name: "mortal" })
          const heir = yield* host(to, bench, { name: "heir" })
          const accountId = yield* heir.open("acc_1", 10 * UNIT)
          // No access to streams of jobs is confirmed any more, whether or not it was written
          const faulty = FaultyEventStore.make(to.events, { rates: { [fault]: 1 }, unavailable: 1, lateBy: 100 })
          const isJob = (stream: string) => stream.startsWith("job-")
          let asked = 0
          yield* mortal.through(({ events }) => ({
            events: {
              ...events,
              append: (stream, ...of) => (isJob(stream) ? faulty : events).append(stream, ...of),
              // The first one reads a stream that does not exist yet
              readStream: (stream, ...of) => (isJob(stream) && asked++ > 0 ? faulty : events).readStream(stream, ...of),
              lastRevision: (stream) => (isJob(stream) ? faulty : events).lastRevision(stream)
            }
          }))
          expect(yield* patiently(told(mortal.create(accountId)))).toBe("OutcomeUnknown")
          if (survives) yield* mortal.heal
          else yield* patiently(mortal.die)
          for (const _ of range(4)) yield* elapse(LEASE)
          expect(yield* heir.balance(accountId)).toEqual({ available: 10 * UNIT, held: 0 })
          expect(yield* to.states.list("unanswered")).toEqual([])
          yield* sound(to)
        }
      })
    )
  }
})

describe("if every n-th append fails", () => {
  for (const fault of ["before", "after", "lost"] as const) {
    testing(
      `(${fault}): all jobs end once, and every account is settled`,
      Effect.gen(function* () {
        for (const n of range(8)) {
          const to = yield* shared
          const bench = makeBench()
          inSteps(bench)
          const here = yield* host(to, bench)
          const there = yield* host(to, bench)
          const accounts = [yield* here.open("acc_1", 10 * UNIT), yield* here.open("acc_2", 10 * UNIT)]
          const plan = { appends: Object.fromEntries(range(200).map((i) => [(i + 1) * (n + 2), fault])) }
          yield* here.fail({ plan })
          yield* there.fail({ plan })
          for (const accountId of accounts) {
            yield* patiently(told(here.create(accountId, { units: 2 })))
            yield* patiently(told(there.create(accountId, { units: 2, key: "key" })))
          }
          yield* elapse(LEASE)
          yield* here.heal
          yield* there.heal
          for (const _ of range(4)) yield* elapse(LEASE)
          for (const accountId of accounts) expect(yield* here.balance(accountId)).toMatchObject({ held: 0 })
          for (const count of yield* results(to)) expect(count).toBe(1)
          yield* sound(to)
        }
      })
    )
  }
})
