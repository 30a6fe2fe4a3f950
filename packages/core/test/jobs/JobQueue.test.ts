/** Properties of the queue for any sequence of events of jobs. */
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type ConcurrencyLimits, Counts, type Entry, JobQueue } from "../../src/jobs/JobQueue.ts"

/** This runner has taken nothing. */
const NONE = { taken: { has: () => false }, starting: new Counts() }
const counted = (jobs: Iterable<Entry>): Counts => {
  const counts = new Counts()
  for (const job of jobs) counts.add(job, 1)
  return counts
}
const WIDE: ConcurrencyLimits = { atOnce: 1_000, atOnceOfAccount: 1_000 }

const waiting = (accountId: string, n: number, fields: Partial<Entry> = {}): Entry => ({
  jobId: `${accountId}/${String(n).padStart(5, "0")}`,
  accountId,
  operation: "work",
  attempt: 0,
  runner: null,
  acceptedAt: 0,
  startFrom: 0,
  ...fields
})

const scheduled = (entries: Iterable<Entry>): JobQueue => {
  const queue = new JobQueue()
  for (const entry of entries) queue.set(entry)
  return queue
}

/** Starts the next job at `now`, with a lease of 100. */
const startNext = (queue: JobQueue, now: number, limits: ConcurrencyLimits = WIDE): Entry | undefined => {
  const entry = queue.next({ now, limits: () => limits, ...NONE })
  if (entry !== undefined) queue.set({ ...entry, attempt: entry.attempt + 1, runner: "runner", startFrom: now + 100 })
  return entry
}

const accounts = fc.constantFrom("a", "b", "c", "d")

type Step =
  | { readonly _tag: "accept"; readonly accountId: string; readonly operation: string }
  | { readonly _tag: "start" }
  | { readonly _tag: "end" | "release" | "extend"; readonly which: number }
  | { readonly _tag: "pass"; readonly time: number }

const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    fc.record({ _tag: fc.constant("accept" as const), accountId: accounts, operation: fc.constantFrom("work", "other") }),
    fc.record({ _tag: fc.constant("start" as const) }),
    fc.record({ _tag: fc.constantFrom("end" as const, "release" as const, "extend" as const), which: fc.nat(20) }),
    fc.record({ _tag: fc.constant("pass" as const), time: fc.nat(80) })
  ),
  { maxLength: 80 }
)

describe("the queue", () => {
  test("returns a job if and only if one may start now within its limits", () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 3 }), (steps, atOnce, atOnceOfAccount) => {
        const limits = { atOnce, atOnceOfAccount }
        const queue = new JobQueue()
        const jobs = new Map<string, Entry>()
        const put = (entry: Entry) => {
          jobs.set(entry.jobId, entry)
          queue.set(entry)
        }
        let now = 1
        let count = 0
        const isRunning = ({ runner, startFrom }: Entry) => runner !== null && startFrom > now
        const mayStart = (entry: Entry) => {
          const running = [...jobs.values()].filter((other) => other.operation === entry.operation && isRunning(other))
          const own = running.filter(({ accountId }) => accountId === entry.accountId)
          return entry.startFrom <= now && running.length < atOnce && own.length < atOnceOfAccount
        }
        for (const step of steps) {
          const some = [...jobs.values()]
          switch (step._tag) {
            case "accept":
              put(waiting(step.accountId, count++, { operation: step.operation }))
              break
            case "start": {
              const entry = queue.next({ now, limits: () => limits, ...NONE })
              if (entry === undefined) expect(some.filter(mayStart)).toEqual([])
              else {
                expect(jobs.get(entry.jobId)).toEqual(entry)
                expect(mayStart(entry)).toBe(true)
                put({ ...entry, attempt: entry.attempt + 1, runner: "runner", startFrom: now + 100 })
              }
              break
            }
            case "pass":
              now += step.time
              break
            default: {
              const running = some.filter(({ runner }) => runner !== null)
              const entry = running[step.which % Math.max(1, running.length)]
              if (entry === undefined) break
              if (step._tag === "extend") put({ ...entry, startFrom: now + 100 })
              else if (step._tag === "release") put({ ...entry, runner: null, startFrom: now + (step.which % 2) * 50 })
              else {
                jobs.delete(entry.jobId)
                queue.remove(entry.jobId)
              }
            }
          }
          for (const operation of ["work", "other"])
            for (const accountId of ["a", "b"]) {
              const isWaiting = [...jobs.values()].some(({ startFrom }) => startFrom <= now)
              const job = { jobId: "new", accountId, operation }
              const mayStartAtOnce = !isWaiting && mayStart(waiting(accountId, count, job))
              expect(queue.mayStartAtOnce(job, { now, limits: () => limits, ...NONE })).toBe(mayStartAtOnce)
            }
          expect(queue.size).toBe(jobs.size)
          for (const accountId of ["a", "b", "c", "d"])
            expect(queue.sizeOf(accountId)).toBe([...jobs.values()].filter((entry) => entry.accountId === accountId).length)
          const later = [...jobs.values()].filter(({ startFrom }) => startFrom > now).map(({ startFrom }) => startFrom)
          expect(queue.nextTime(now)).toBe(Math.min(...later))
        }
      })
    )
  })

  test("returns the jobs of an account in the order of their acceptance", () => {
    const queue = scheduled(Array.from({ length: 50 }, (_, n) => waiting("a", n)))
    for (let n = 0; n < 50; n++) expect(startNext(queue, 1)?.jobId).toBe(waiting("a", n).jobId)
    expect(startNext(queue, 1)).toBeUndefined()
  })

  test("takes turns: between two jobs of an account, every other waiting account starts one", () => {
    fc.assert(
      fc.property(fc.array(accounts, { minLength: 1, maxLength: 60 }), (owners) => {
        const queue = scheduled(owners.map((accountId, n) => waiting(accountId, n)))
        const left = new Map<string, number>()
        for (const owner of owners) left.set(owner, (left.get(owner) ?? 0) + 1)
        const since = new Map<string, Set<string>>()
        for (let entry = startNext(queue, 1); entry !== undefined; entry = startNext(queue, 1)) {
          const { accountId } = entry
          const others = since.get(accountId)
          // All accounts with ready jobs since its last turn
          if (others !== undefined) for (const [other, n] of left) if (other !== accountId && n > 0) expect([...others]).toContain(other)
          left.set(accountId, (left.get(accountId) ?? 0) - 1)
          since.set(accountId, new Set())
          for (const [other, served] of since) if (other !== accountId) served.add(accountId)
        }
        expect([...left.values()].every((n) => n === 0)).toBe(true)
      })
    )
  })

  test("lets an account with one job wait only for running jobs, however many another account has queued", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 0, max: 40 }), (workers, before) => {
        const queue = scheduled(Array.from({ length: 200 }, (_, n) => waiting("many", n)))
        const running: Array<Entry> = []
        const fill = () => {
          while (running.length < workers) {
            const entry = startNext(queue, 1)
            if (entry === undefined) return
            running.push(entry)
          }
        }
        const finishOne = () => {
          const entry = running.shift()
          if (entry !== undefined) queue.remove(entry.jobId)
        }
        fill()
        for (let i = 0; i < before; i++) {
          finishOne()
          fill()
        }
        queue.set(waiting("few", 0))
        // The first worker that is free takes it
        finishOne()
        fill()
        expect(running.map(({ accountId }) => accountId)).toContain("few")
      })
    )
  })

  test("does not let an account that keeps adding jobs overtake one that waits", () => {
    const queue = scheduled(Array.from({ length: 10 }, (_, n) => waiting("patient", n)))
    const order: Array<string> = []
    for (let n = 0; n < 10; n++) {
      queue.set(waiting("eager", n))
      const entry = startNext(queue, 1)
      if (entry === undefined) throw new Error("There is something")
      order.push(entry.accountId)
      queue.remove(entry.jobId)
    }
    expect(order.filter((accountId) => accountId === "patient").length).toBeGreaterThanOrEqual(5)
  })

  test("does not let new accounts starve an old one", () => {
    const queue = scheduled([waiting("old", 0), waiting("old", 1)])
    startNext(queue, 1)
    let turns = 0
    for (let entry: Entry | undefined; entry?.accountId !== "old"; turns++) {
      queue.set(waiting(`new${turns}`, turns))
      entry = startNext(queue, 1)
      if (entry !== undefined) queue.remove(entry.jobId)
    }
    expect(turns).toBeLessThanOrEqual(1_001)
  })

  test("counts taken jobs before the log has them, and does not return them again", () => {
    const queue = scheduled(Array.from({ length: 10 }, (_, n) => waiting("a", n)))
    const taken = new Set<string>()
    const starting = new Counts()
    const limits = () => ({ atOnce: 3, atOnceOfAccount: 2 })
    queue.set(waiting("b", 0))
    for (;;) {
      const entry = queue.next({ now: 1, limits, taken, starting })
      if (entry === undefined) break
      expect(taken.has(entry.jobId)).toBe(false)
      taken.add(entry.jobId)
      starting.add(entry, 1)
    }
    expect([...taken].filter((jobId) => jobId.startsWith("a"))).toHaveLength(2)
    expect(taken.size).toBe(3)
  })

  test("lets no job start at once beyond the limits, whatever is starting, and overtakes only jobs that are taken", () => {
    const limits = () => ({ atOnce: 3, atOnceOfAccount: 2 })
    const job = waiting("a", 10)
    const mayStart = (queue: JobQueue, starting: ReadonlyArray<Entry>) =>
      queue.mayStartAtOnce(job, { now: 1, limits, taken: new Set(starting.map(({ jobId }) => jobId)), starting: counted(starting) })
    expect(mayStart(new JobQueue(), [])).toBe(true)
    expect(mayStart(new JobQueue(), [waiting("a", 0)])).toBe(true)
    expect(mayStart(new JobQueue(), [waiting("a", 0), waiting("a", 1)])).toBe(false)
    expect(mayStart(new JobQueue(), [waiting("b", 0), waiting("c", 0), waiting("d", 0)])).toBe(false)
    expect(mayStart(new JobQueue(), [waiting("b", 0, { operation: "other" }), waiting("c", 0), waiting("d", 0)])).toBe(true)
    expect(mayStart(scheduled([waiting("b", 0)]), [waiting("b", 0)])).toBe(true)
    expect(mayStart(scheduled([waiting("b", 0), waiting("b", 1)]), [waiting("b", 0)])).toBe(false)
    const elsewhere = scheduled([waiting("b", 0, { operation: "of another runner" })])
    const known = (operation: string) => (operation === "work" ? limits() : undefined)
    expect(elsewhere.mayStartAtOnce(job, { now: 1, limits: known, ...NONE })).toBe(true)
    expect(elsewhere.mayStartAtOnce({ ...job, operation: "unknown" }, { now: 1, limits: known, ...NONE })).toBe(false)
  })

  test("picks among the oldest jobs of an account if asked to", () => {
    const queue = scheduled(Array.from({ length: 10 }, (_, n) => waiting("a", n)))
    const chosen = queue.next({ now: 1, limits: () => WIDE, ...NONE, among: 4, pick: (choices) => choices - 1 })
    expect(chosen?.jobId).toBe(waiting("a", 3).jobId)
  })
})
