/** The decisions and the fold of a job, for any commands of any runners at any time. */
import { Result, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Job from "../../src/jobs/Job.ts"

const LEASE = 30_000
const DEADLINE = 600_000
const RETENTION = 3_600_000
const ATTEMPTS = 3
const document = { size: 1, hash: "hash" }

const accepted: Job.Accept = {
  ...{ accountId: "acc_1", operation: "work", family: "work", requestId: "req", reservationId: "res_1", quantity: 3, input: document },
  ...{ attempts: ATTEMPTS, within: DEADLINE, retention: RETENTION }
}

type Command = (job: Job.Job, now: number) => Result.Result<ReadonlyArray<Job.JobEvent>, { readonly _tag: string }>

interface Step {
  /** Milliseconds since the previous step. */
  readonly after: number
  readonly name: string
  readonly command: Command
}

const runner = fc.constantFrom("one", "two", "three")
/** An attempt by the knowledge of some runner. */
const attempt = fc.integer({ min: 1, max: 6 })
const time = fc.oneof(fc.nat(1_000), fc.nat(2 * LEASE), fc.nat(DEADLINE))

const named = (name: string, command: Command): readonly [name: string, Command] => [name, command]

const commands: fc.Arbitrary<readonly [name: string, Command]> = fc.oneof(
  fc.constant(named("accept", Job.accept(accepted))),
  fc.constant(named("refuse", Job.refuse("acc_1", "res_1"))),
  runner.map((runner) => named("start", Job.start({ runner, lease: LEASE }))),
  runner.map((runner) => named("start", Job.start({ runner, lease: LEASE }))),
  attempt.map((attempt) => named("extend", Job.extendLease(attempt, LEASE))),
  fc
    .tuple(attempt, fc.integer({ min: -10, max: 120 }))
    .map(([attempt, percent]) => named("progress", Job.progress(attempt, percent, document))),
  attempt.map((attempt) => named("release", Job.release(attempt))),
  fc
    .tuple(attempt, fc.nat(3))
    .map(([attempt, quantity]) => named("succeed", Job.succeed(attempt, { quantity, result: document, artifacts: [] }))),
  fc
    .tuple(attempt, fc.boolean(), fc.nat(5_000))
    .map(([attempt, mayPass, after]) => named("fail", Job.fail(attempt, { failure: "UpstreamUnavailable", mayPass, after }))),
  fc.constant(named("cancel", Job.cancel)),
  fc.constant(named("expire", Job.expire)),
  fc.constant(named("purge", Job.purge))
)

const stepOf = ([after, [name, command]]: readonly [number, readonly [string, Command]]): Step => ({ after, name, command })

/** Most histories begin with the acceptance. */
const histories = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(time, commands), { maxLength: 40 }))
  .map(([isAccepted, steps]) => [
    ...(isAccepted ? [{ after: 0, ...{ name: "accept", command: Job.accept(accepted) } }] : []),
    ...steps.map(stepOf)
  ])

const isTerminal = ({ _tag }: Job.JobEvent) => ["JobRefused", "JobSucceeded", "JobFailed", "JobCancelled"].includes(_tag)

describe("for any commands", () => {
  test("a job begins once, ends at most once, and accepts only events of its newest attempt", () => {
    fc.assert(
      fc.property(histories, (steps) => {
        let job: Job.Job = Job.Job.initial
        let now = 1_000
        const log: Array<Job.JobEvent> = []
        let newest = 0
        let handedBack = 0
        for (const { after, command, name } of steps) {
          now += after
          const before = job
          const decided = command(before, now)
          if (Result.isFailure(decided)) {
            expect(["JobWasRefused", "AttemptOver"]).toContain(decided.failure._tag)
            continue
          }
          for (const event of decided.success) {
            job = Job.Job.evolve(job, event, now)
            if ("attempt" in event && event._tag !== "JobFailed") {
              if (event._tag === "JobStarted") {
                expect(event.attempt).toBe(newest + 1)
                newest = event.attempt
                // No other runner had it, or that lease had expired
                if (before.status === "running") expect(now).toBeGreaterThanOrEqual(before.leaseUntil)
                if (before.status === "queued") expect(now).toBeGreaterThanOrEqual(before.startFrom)
              } else {
                expect(event.attempt).toBe(newest)
                expect(before.status).toBe("running")
              }
            }
            if (event._tag === "JobReleased" && event.failure === undefined) handedBack++
            log.push(event)
          }
          // A repeated command decides nothing
          if (["accept", "refuse", "cancel", "expire", "purge", "start"].includes(name)) {
            const again = command(job, now)
            if (Result.isSuccess(again) && decided.success.length > 0) expect(again.success).toEqual([])
          }
          const percents = log.flatMap((event) => (event._tag === "JobProgressed" ? event.percent : []))
          expect(percents).toEqual(percents.toSorted((a, b) => a - b))
          expect(percents.every((percent) => percent >= 0 && percent <= 100)).toBe(true)
        }
        expect(log.filter(isTerminal).length).toBeLessThanOrEqual(1)
        expect(log.filter(({ _tag }) => _tag === "JobAccepted" || _tag === "JobRefused").length).toBeLessThanOrEqual(1)
        expect(log.filter(({ _tag }) => _tag === "JobPurged").length).toBeLessThanOrEqual(1)
        expect(log.filter(({ _tag }) => _tag === "JobStarted").length - handedBack).toBeLessThanOrEqual(ATTEMPTS)
        const end = log.findIndex(isTerminal)
        if (end >= 0) expect(log.slice(end + 1).every(({ _tag }) => _tag === "JobPurged")).toBe(true)
        expect(Job.isReadable(job, now)).toBe(
          Job.isOpen(job) || (Job.isEnded(job) && job.status !== "cancelled" && !job.purged && now < job.retainUntil)
        )
      }),
      { numRuns: 1_000 }
    )
  })

  test("an open job can be failed by any host once its deadline has passed", () => {
    fc.assert(
      fc.property(histories, (steps) => {
        let job: Job.Job = Job.Job.initial
        let now = 1_000
        for (const { after, command } of steps) {
          now += after
          const decided = command(job, now)
          if (Result.isSuccess(decided)) for (const event of decided.success) job = Job.Job.evolve(job, event, now)
        }
        if (!Job.isOpen(job)) return
        const late = Math.max(now, job.accepted.deadline)
        for (const decided of [Job.expire(job, late), Job.start({ runner: "any", lease: LEASE })(job, late)])
          expect(decided).toEqual(Result.succeed([expect.objectContaining({ _tag: "JobFailed", failure: "TooLate" })]))
      })
    )
  })
})

describe("an attempt that was overtaken", () => {
  test("cannot record anything", () => {
    const events: ReadonlyArray<Job.JobEvent> = [
      { _tag: "JobAccepted", ...(({ within: _, ...fields }) => fields)(accepted), deadline: DEADLINE },
      { _tag: "JobStarted", runner: "one", attempt: 1, leaseUntil: LEASE },
      { _tag: "JobStarted", runner: "two", attempt: 2, leaseUntil: 2 * LEASE }
    ]
    const job = events.reduce<Job.Job>((job, event) => Job.Job.evolve(job, event, 0), Job.Job.initial)
    const stale: ReadonlyArray<Command> = [
      Job.extendLease(1, LEASE),
      Job.progress(1, 50),
      Job.release(1),
      Job.succeed(1, { result: document, artifacts: [] }),
      Job.fail(1, { failure: "Defect", mayPass: false, after: 0 })
    ]
    for (const command of stale) expect(command(job, LEASE)).toEqual(Result.fail(new Job.AttemptOver({ attempt: 1 })))
    for (const event of [
      { _tag: "JobSucceeded", attempt: 1, quantity: 1, result: document, artifacts: [], retainUntil: 1 },
      { _tag: "JobReleased", attempt: 1, startFrom: 1 }
    ] as const)
      expect(() => Job.Job.evolve(job, event, LEASE)).toThrow("Attempt 1 is over")
  })

  test("more units than held are not recorded as done", () => {
    const job = [
      { _tag: "JobAccepted", ...(({ within: _, ...fields }) => fields)(accepted), deadline: DEADLINE } as const,
      { _tag: "JobStarted", runner: "one", attempt: 1, leaseUntil: LEASE } as const
    ].reduce<Job.Job>((job, event) => Job.Job.evolve(job, event, 0), Job.Job.initial)
    for (const quantity of [4, -1, 0.5, Number.NaN])
      expect(() => Job.succeed(1, { quantity, result: document, artifacts: [] })(job, 1)).toThrow("units were done")
  })
})

describe("ids", () => {
  test("derive from the ids of their reservations", () => {
    const id = Job.idOf("res_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    expect(id).toBe("job_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    expect(Job.isId(id)).toBe(true)
    for (const other of ["", "job_", "res_01ARZ3NDEKTSV4RRFFQ69G5FAV", `${id}0`, ` ${id}`]) expect(Job.isId(other)).toBe(false)
  })
})

test("events survive encoding and decoding", () => {
  const encode = Schema.encodeSync(Job.JobEvent)
  const decode = Schema.decodeUnknownSync(Job.JobEvent)
  fc.assert(
    fc.property(histories, (steps) => {
      let job: Job.Job = Job.Job.initial
      let now = 1_000
      for (const { after, command } of steps) {
        now += after
        const decided = command(job, now)
        if (Result.isFailure(decided)) continue
        for (const event of decided.success) {
          expect(decode(JSON.parse(JSON.stringify(encode(event))))).toEqual(event)
          job = Job.Job.evolve(job, event, now)
        }
      }
    }),
    { numRuns: 200 }
  )
})
