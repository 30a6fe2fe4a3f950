/** Which job is next: properties of the schedule, for any sequence of what may happen to jobs. */
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type Entry, type Limits, Schedule } from "../../src/jobs/Schedule.ts"

const NONE = { has: () => false, [Symbol.iterator]: () => [][Symbol.iterator]() }
const WIDE: Limits = { atOnce: 1_000, atOnceOfAccount: 1_000 }

const waiting = (accountId: string, n: number, fields: Partial<Entry> = {}): Entry => ({
  jobId: `${accountId}/${String(n).padStart(5, "0")}`,
  accountId,
  operation: "work",
  attempt: 0,
  runner: null,
  startFrom: 0,
  ...fields
})

const scheduled = (entries: Iterable<Entry>): Schedule => {
  const schedule = new Schedule()
  for (const entry of entries) schedule.set(entry)
  return schedule
}

/** Starts the next job at `now`, with a lease of 100. */
const startNext = (schedule: Schedule, now: number, limits: Limits = WIDE): Entry | undefined => {
  const entry = schedule.next({ now, limits: () => limits, taken: NONE })
  if (entry !== undefined) schedule.set({ ...entry, attempt: entry.attempt + 1, runner: "runner", startFrom: now + 100 })
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

describe("the schedule", () => {
  test("gives out only what may run now, within its limits, and whenever there is anything", () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 3 }), (steps, atOnce, atOnceOfAccount) => {
        const limits = { atOnce, atOnceOfAccount }
        const schedule = new Schedule()
        const jobs = new Map<string, Entry>()
        const put = (entry: Entry) => {
          jobs.set(entry.jobId, entry)
          schedule.set(entry)
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
              const entry = schedule.next({ now, limits: () => limits, taken: NONE })
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
                schedule.remove(entry.jobId)
              }
            }
          }
          expect(schedule.size).toBe(jobs.size)
          for (const accountId of ["a", "b", "c", "d"])
            expect(schedule.sizeOf(accountId)).toBe([...jobs.values()].filter((entry) => entry.accountId === accountId).length)
          const later = [...jobs.values()].filter(({ startFrom }) => startFrom > now).map(({ startFrom }) => startFrom)
          expect(schedule.nextTime(now)).toBe(Math.min(...later))
        }
      })
    )
  })

  test("gives an account's jobs out in the order in which they came", () => {
    const schedule = scheduled(Array.from({ length: 50 }, (_, n) => waiting("a", n)))
    for (let n = 0; n < 50; n++) expect(startNext(schedule, 1)?.jobId).toBe(waiting("a", n).jobId)
    expect(startNext(schedule, 1)).toBeUndefined()
  })

  test("takes turns: between two jobs of an account that waits, every other that waits has one", () => {
    fc.assert(
      fc.property(fc.array(accounts, { minLength: 1, maxLength: 60 }), (owners) => {
        const schedule = scheduled(owners.map((accountId, n) => waiting(accountId, n)))
        const left = new Map<string, number>()
        for (const owner of owners) left.set(owner, (left.get(owner) ?? 0) + 1)
        const since = new Map<string, Set<string>>()
        for (let entry = startNext(schedule, 1); entry !== undefined; entry = startNext(schedule, 1)) {
          const { accountId } = entry
          const others = since.get(accountId)
          // All who had something left since its last turn
          if (others !== undefined) for (const [other, n] of left) if (other !== accountId && n > 0) expect([...others]).toContain(other)
          left.set(accountId, (left.get(accountId) ?? 0) - 1)
          since.set(accountId, new Set())
          for (const [other, served] of since) if (other !== accountId) served.add(accountId)
        }
        expect([...left.values()].every((n) => n === 0)).toBe(true)
      })
    )
  })

  test("lets a single job wait for no more than what runs, whatever another account has waiting", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 0, max: 40 }), (workers, before) => {
        const schedule = scheduled(Array.from({ length: 200 }, (_, n) => waiting("many", n)))
        const running: Array<Entry> = []
        const fill = () => {
          while (running.length < workers) {
            const entry = startNext(schedule, 1)
            if (entry === undefined) return
            running.push(entry)
          }
        }
        const finishOne = () => {
          const entry = running.shift()
          if (entry !== undefined) schedule.remove(entry.jobId)
        }
        fill()
        for (let i = 0; i < before; i++) {
          finishOne()
          fill()
        }
        schedule.set(waiting("few", 0))
        // The first worker that is free takes it
        finishOne()
        fill()
        expect(running.map(({ accountId }) => accountId)).toContain("few")
      })
    )
  })

  test("does not let one that comes again and again go before one that waits", () => {
    const schedule = scheduled(Array.from({ length: 10 }, (_, n) => waiting("patient", n)))
    const order: Array<string> = []
    for (let n = 0; n < 10; n++) {
      schedule.set(waiting("eager", n))
      const entry = startNext(schedule, 1)
      if (entry === undefined) throw new Error("There is something")
      order.push(entry.accountId)
      schedule.remove(entry.jobId)
    }
    expect(order.filter((accountId) => accountId === "patient").length).toBeGreaterThanOrEqual(5)
  })

  test("lets no crowd of new accounts keep one waiting for ever", () => {
    const schedule = scheduled([waiting("old", 0), waiting("old", 1)])
    startNext(schedule, 1)
    let turns = 0
    for (let entry: Entry | undefined; entry?.accountId !== "old"; turns++) {
      schedule.set(waiting(`new${turns}`, turns))
      entry = startNext(schedule, 1)
      if (entry !== undefined) schedule.remove(entry.jobId)
    }
    expect(turns).toBeLessThanOrEqual(1_001)
  })

  test("counts what was taken before the log says so, and gives none of it out again", () => {
    const schedule = scheduled(Array.from({ length: 10 }, (_, n) => waiting("a", n)))
    const taken = new Set<string>()
    const limits = () => ({ atOnce: 3, atOnceOfAccount: 2 })
    schedule.set(waiting("b", 0))
    for (;;) {
      const entry = schedule.next({ now: 1, limits, taken })
      if (entry === undefined) break
      expect(taken.has(entry.jobId)).toBe(false)
      taken.add(entry.jobId)
    }
    expect([...taken].filter((jobId) => jobId.startsWith("a"))).toHaveLength(2)
    expect(taken.size).toBe(3)
  })

  test("chooses among an account's oldest where it is told to", () => {
    const schedule = scheduled(Array.from({ length: 10 }, (_, n) => waiting("a", n)))
    const chosen = schedule.next({ now: 1, limits: () => WIDE, taken: NONE, among: 4, pick: (choices) => choices - 1 })
    expect(chosen?.jobId).toBe(waiting("a", 3).jobId)
  })
})
