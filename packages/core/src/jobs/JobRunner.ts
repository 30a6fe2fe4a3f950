/**
 * Runs jobs: picks open jobs in turns between accounts, claims each by an append at an exact revision, and extends its lease while it
 * works. Any number of runners may share a log. When a runner dies, others claim its jobs once the leases have expired. A runner that
 * cannot extend a lease stops that job before the lease expires. A runner that is stopped finishes its jobs or hands them back.
 */
import { Following } from "@millrace/event-sourcing"
import { Clock, Context, Deferred, Duration, Effect, Exit, FiberMap, FiberSet, Layer, Random, type Scope } from "effect"
import { newRunnerId } from "../Ids.ts"
import type { Vault } from "../vault/Vault.ts"
import type { CircuitBreaker } from "../work/CircuitBreaker.ts"
import type * as Operation from "../work/Operation.ts"
import * as Attempt from "./Attempt.ts"
import { backOffOf } from "./AttemptEnd.ts"
import type { Entry, JobQueue } from "./JobQueue.ts"
import { Jobs } from "./Jobs.ts"

export interface RunnerOptions {
  /** The most jobs that this runner runs at once: 16 by default. */
  readonly concurrency?: number
  /** Another runner may claim a job whose lease was not extended for this long: 30 seconds by default. Extended after each third. */
  readonly lease?: Duration.Input
  /** How long a stopping runner waits for its jobs before it hands them back: 10 seconds by default. */
  readonly drain?: Duration.Input
  /** Pauses between attempts: each twice as long, less up to a half at random (jitter). From 1 second to 1 minute by default. */
  readonly backOff?: { readonly first: Duration.Input; readonly longest: Duration.Input }
}

export interface RunnerStatus {
  /** The runner's id in the log. */
  readonly id: string
  /** Ids of the jobs that it runs. */
  readonly running: ReadonlyArray<string>
  /** Why it claims no jobs now; undefined if it does. */
  readonly trouble: Following.Retrying | undefined
}

export class JobRunner extends Context.Service<JobRunner, { readonly status: Effect.Effect<RunnerStatus> }>()(
  "@millrace/core/jobs/JobRunner"
) {
  /** Runs jobs of the given operations until the scope closes. Operations that are not jobs are ignored. */
  static readonly layer = <Op extends Operation.Any>(
    operations: ReadonlyArray<Op>,
    options: RunnerOptions = {}
  ): Layer.Layer<JobRunner, never, Jobs | Vault | CircuitBreaker | Operation.Services<Op>> =>
    Layer.effect(JobRunner, make(operations, options))
}

const CONCURRENCY = 16
const LEASE = "30 seconds"
const DRAIN = "10 seconds"
const BACK_OFF = { first: "1 second", longest: "1 minute" } as const

/** When runners compete for jobs, each picks at random among at most this many of an account's oldest. */
const MAX_SPREAD = 64
const NOT_CLAIMED: Attempt.AttemptResult = { claimed: false, position: undefined }
/** By then the projection has the end of an attempt whose position is unknown. */
const FORGET_AFTER = "1 second"

type RunJob = (operation: Operation.AnyJob, jobId: string) => Effect.Effect<Attempt.AttemptResult>

/** The jobs that this runner has taken, how many it runs, and the signal to look for more. */
class Shift {
  /** Taken jobs, until the projection shows the outcome of the attempt. */
  readonly taken = new Set<string>()
  busy = 0
  /** The number of an account's oldest jobs to pick from. */
  spread = 1
  trouble: Following.Retrying | undefined
  #idle = Deferred.makeUnsafe<void>()
  #woken = Deferred.makeUnsafe<void>()

  take(jobId: string): void {
    this.taken.add(jobId)
    this.busy++
  }

  /** Ends an attempt. A claim lost to another runner widens the next picks. */
  end({ claimed }: Attempt.AttemptResult): void {
    this.busy--
    if (this.busy === 0) Deferred.doneUnsafe(this.#idle, Effect.void)
    this.spread = claimed ? Math.max(1, this.spread * 0.9) : Math.min(MAX_SPREAD, this.spread * 2)
    this.wake()
  }

  /** Drops a job once the projection shows the outcome of its attempt. */
  forget(jobId: string): void {
    this.taken.delete(jobId)
    this.wake()
  }

  wake(): void {
    Deferred.doneUnsafe(this.#woken, Effect.void)
  }

  /** Resets the signal: {@link woken} waits for the next wake. */
  rest(): void {
    this.#woken = Deferred.makeUnsafe()
  }

  readonly woken = Effect.suspend(() => Deferred.await(this.#woken))

  readonly idle = Effect.suspend(() => {
    this.#idle = Deferred.makeUnsafe()
    return this.busy === 0 ? Effect.void : Deferred.await(this.#idle)
  })
}

const make = <Op extends Operation.Any>(
  operations: ReadonlyArray<Op>,
  { backOff = BACK_OFF, concurrency = CONCURRENCY, drain = DRAIN, lease = LEASE }: RunnerOptions
): Effect.Effect<JobRunner["Service"], never, Jobs | Vault | CircuitBreaker | Operation.Services<Op> | Scope.Scope> =>
  Effect.gen(function* () {
    const jobs = yield* Jobs
    const clock = yield* Clock.Clock
    const services = yield* Effect.context<Operation.Services<Op>>()
    const id = yield* newRunnerId
    const attempt = yield* Attempt.make({ runner: id, lease: Duration.toMillis(lease), backOff: backOffOf(backOff) })
    const run: RunJob = (operation, jobId) =>
      attempt<Operation.Services<Op>>(operation, jobId).pipe(
        Effect.catch((error) => Effect.as(Effect.logWarning("A job could not be claimed", { jobId }, error), NOT_CLAIMED)),
        Effect.catchDefect((defect) => Effect.as(Effect.logError(`Job ${jobId}:`, defect), NOT_CLAIMED)),
        Effect.provideContext(services)
      )
    const all: ReadonlyArray<Operation.Any> = operations
    const byKey = new Map(all.flatMap((operation) => (operation._tag === "Job" ? [[operation.key, operation] as const] : [])))

    const running = yield* FiberMap.make<string, Attempt.AttemptResult>()
    const fork = yield* FiberSet.makeRuntime<never>()
    const shift = new Shift()
    yield* Effect.addFinalizer(() => Effect.timeoutOption(shift.idle, drain))
    const round = lookForJobs({ id, jobs, clock, byKey, concurrency, shift, running, run, fork })
    const tell = (trouble: Following.Retrying | undefined) => {
      shift.trouble = trouble
    }
    yield* Effect.forkScoped(Following.retryForever(Effect.forever(round), tell))

    return JobRunner.of({ status: Effect.sync(() => ({ id, running: [...running].map(([jobId]) => jobId), trouble: shift.trouble })) })
  })

interface Runner {
  readonly id: string
  readonly jobs: Jobs["Service"]
  readonly clock: Clock.Clock
  readonly byKey: ReadonlyMap<string, Operation.AnyJob>
  readonly concurrency: number
  readonly shift: Shift
  readonly running: FiberMap.FiberMap<string, Attempt.AttemptResult>
  readonly run: RunJob
  readonly fork: (effect: Effect.Effect<void>) => unknown
}

/** Takes jobs once, then waits for an event, the end of an attempt, or the start time of a waiting job. */
const lookForJobs = Effect.fnUntraced(function* (runner: Runner) {
  const { clock, jobs, shift } = runner
  // Collects all wakes of a tick into one round
  yield* Effect.yieldNow
  shift.rest()
  const drawn = yield* Random.next
  const { position, state } = yield* jobs.openJobs.read()
  const now = clock.currentTimeMillisUnsafe()
  const wait = yield* Effect.uninterruptible(takeJobs(runner, state, now, drawn))
  shift.trouble = undefined
  const changed = Effect.raceFirst(jobs.openJobs.past(position), shift.woken)
  yield* Number.isFinite(wait) ? Effect.raceFirst(changed, Effect.sleep(Math.max(1, Math.ceil(wait)))) : changed
})

/**
 * Starts as many jobs as there is room for, and stops those that have ended or that another runner has. Returns the milliseconds to wait.
 */
const takeJobs = Effect.fnUntraced(function* (runner: Runner, state: JobQueue, now: number, drawn: number) {
  const { byKey, fork, id, running } = runner
  const chosen = choose(runner, state, now, drawn)
  const over: Array<string> = []
  for (const [jobId] of running) {
    const entry = state.get(jobId)
    if (entry === undefined || (entry.runner !== null && entry.runner !== id)) over.push(jobId)
  }
  const wait = state.nextTime(now) - now
  // The projection changes `state` in place, so it must not be read after the first yield
  for (const { jobId, operation } of chosen) {
    const job = byKey.get(operation)
    if (job === undefined) continue
    const fiber = yield* FiberMap.run(running, jobId, runner.run(job, jobId))
    fiber.addObserver((exit) => ended(runner, jobId, Exit.isSuccess(exit) ? exit.value : NOT_CLAIMED))
  }
  for (const jobId of over) fork(FiberMap.remove(running, jobId))
  return wait
})

const choose = ({ byKey, concurrency, shift }: Runner, state: JobQueue, now: number, drawn: number): ReadonlyArray<Entry> => {
  const limits = (operation: string) => byKey.get(operation)?.limits
  const pick = (choices: number) => Math.floor(drawn * choices)
  const request = { now, limits, taken: shift.taken, among: Math.floor(shift.spread), pick }
  const chosen: Array<Entry> = []
  while (shift.busy < concurrency) {
    const entry = state.next(request)
    if (entry === undefined) break
    shift.take(entry.jobId)
    chosen.push(entry)
  }
  return chosen
}

const ended = ({ fork, jobs, shift }: Runner, jobId: string, result: Attempt.AttemptResult): void => {
  shift.end(result)
  const { position } = result
  const shown = position === undefined ? Effect.sleep(FORGET_AFTER) : Effect.exit(jobs.openJobs.read({ atLeast: position }))
  fork(
    Effect.andThen(
      shown,
      Effect.sync(() => shift.forget(jobId))
    )
  )
}
