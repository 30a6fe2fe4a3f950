/**
 * Runs jobs: picks open jobs in turns between accounts, claims each by an append at an exact revision, and extends its lease while it
 * works. Any number of runners may share a log. When a runner dies, others claim its jobs once the leases have expired. A runner that
 * cannot extend a lease stops that job before the lease expires. A runner that is stopped finishes its jobs or hands them back.
 */
import { Following } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Exit, FiberMap, FiberSet, Latch, Layer, Random } from "effect"
import { newRunnerId } from "../Ids.ts"
import type { Vault } from "../vault/Vault.ts"
import type { CircuitBreaker } from "../work/CircuitBreaker.ts"
import type * as Operation from "../work/Operation.ts"
import * as Attempt from "./Attempt.ts"
import type { JobQueue } from "./JobQueue.ts"
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

const BACK_OFF = { first: "1 second", longest: "1 minute" } as const

/** When runners compete for jobs, each picks at random among at most this many of an account's oldest. */
const MAX_SPREAD = 64
const NOT_CLAIMED: Attempt.AttemptResult = { claimed: false, position: undefined }
/** By then the projection has the end of an attempt whose position is unknown. */
const FORGET_AFTER = "1 second"

/** The jobs that this runner has taken, and the signals that it waits for. */
class Shift {
  /** Taken jobs, until the projection shows the outcome of the attempt. */
  readonly taken = new Set<string>()
  /** Attempts that run. */
  busy = 0
  /** The number of an account's oldest jobs to pick from. */
  spread = 1
  trouble: Following.Retrying | undefined
  /** Open while no attempt runs. */
  readonly idle = Latch.makeUnsafe(true)
  /** Open when there may be a job to take. */
  readonly woken = Latch.makeUnsafe(false)

  take(jobId: string): void {
    this.taken.add(jobId)
    this.busy++
    this.idle.closeUnsafe()
  }

  /** Ends an attempt. A claim lost to another runner widens the next picks. */
  end({ claimed }: Attempt.AttemptResult): void {
    this.busy--
    if (this.busy === 0) this.idle.openUnsafe()
    this.spread = claimed ? Math.max(1, this.spread * 0.9) : Math.min(MAX_SPREAD, this.spread * 2)
    this.woken.openUnsafe()
  }

  /** Drops a job once the projection shows the outcome of its attempt. */
  forget(jobId: string): void {
    this.taken.delete(jobId)
    this.woken.openUnsafe()
  }
}

/** Resolves the services of a runner. Attempts that run end with the scope. */
const open = Effect.fnUntraced(function* <Op extends Operation.Any>(
  operations: ReadonlyArray<Op>,
  { backOff = BACK_OFF, concurrency = 16, lease = "30 seconds" }: RunnerOptions
) {
  const services = yield* Effect.context<Operation.Services<Op>>()
  const id = yield* newRunnerId
  const attempt = yield* Attempt.make({
    runner: id,
    lease: Duration.toMillis(lease),
    backOff: { first: Duration.toMillis(backOff.first), longest: Duration.toMillis(backOff.longest) }
  })
  const all: ReadonlyArray<Operation.Any> = operations
  return {
    id,
    concurrency,
    jobs: yield* Jobs,
    clock: yield* Clock.Clock,
    /** The operations that are jobs. */
    byKey: new Map(all.flatMap((operation) => (operation._tag === "Job" ? [[operation.key, operation] as const] : []))),
    shift: new Shift(),
    running: yield* FiberMap.make<string, Attempt.AttemptResult>(),
    fork: yield* FiberSet.makeRuntime<never>(),
    attempt: (operation: Operation.AnyJob, jobId: string) =>
      attempt<Operation.Services<Op>>(operation, jobId).pipe(
        Effect.catch((error) => Effect.as(Effect.logWarning("A job could not be claimed", { jobId }, error), NOT_CLAIMED)),
        Effect.catchDefect((defect) => Effect.as(Effect.logError(`Job ${jobId}:`, defect), NOT_CLAIMED)),
        Effect.provideContext(services)
      )
  }
})

type Runner = Effect.Success<ReturnType<typeof open>>

/** Takes jobs once, then waits for an event, the end of an attempt, or the start time of a waiting job. */
const lookForJobs = Effect.fnUntraced(function* (runner: Runner) {
  const { clock, jobs, shift } = runner
  // Collects all wakes of a tick into one round
  yield* Effect.yieldNow
  // Closed before the jobs are read, so that no wake is lost
  shift.woken.closeUnsafe()
  const drawn = yield* Random.next
  const { position, state } = yield* jobs.openJobs.read()
  const now = clock.currentTimeMillisUnsafe()
  const wait = yield* Effect.uninterruptible(takeJobs(runner, state, now, drawn))
  shift.trouble = undefined
  const changed = Effect.raceFirst(jobs.openJobs.past(position), shift.woken.await)
  yield* Number.isFinite(wait) ? Effect.raceFirst(changed, Effect.sleep(Math.max(1, Math.ceil(wait)))) : changed
})

/** Starts as many jobs as there is room for, and stops those that are over. Returns the milliseconds until the next one may start. */
const takeJobs = Effect.fnUntraced(function* (runner: Runner, queue: JobQueue, now: number, drawn: number) {
  const { fork, running } = runner
  const chosen = choose(runner, queue, now, drawn)
  const over = overIn(runner, queue)
  const wait = queue.nextTime(now) - now
  // The projection changes the queue in place, so it must not be read after the first yield
  for (const { job, jobId } of chosen) {
    const fiber = yield* FiberMap.run(running, jobId, runner.attempt(job, jobId))
    fiber.addObserver((exit) => ended(runner, jobId, Exit.isSuccess(exit) ? exit.value : NOT_CLAIMED))
  }
  for (const jobId of over) fork(FiberMap.remove(running, jobId))
  return wait
})

const choose = ({ byKey, concurrency, shift }: Runner, queue: JobQueue, now: number, drawn: number) => {
  const limits = (operation: string) => byKey.get(operation)?.limits
  const pick = (choices: number) => Math.floor(drawn * choices)
  const request = { now, limits, taken: shift.taken, among: Math.floor(shift.spread), pick }
  const chosen: Array<{ readonly jobId: string; readonly job: Operation.AnyJob }> = []
  while (shift.busy < concurrency) {
    const entry = queue.next(request)
    const job = entry && byKey.get(entry.operation)
    if (entry === undefined || job === undefined) break
    shift.take(entry.jobId)
    chosen.push({ jobId: entry.jobId, job })
  }
  return chosen
}

/** Jobs that this runner runs, though they have ended or another runner has them. */
const overIn = ({ id, running }: Runner, queue: JobQueue): ReadonlyArray<string> =>
  Array.from(running, ([jobId]) => jobId).filter((jobId) => {
    const entry = queue.get(jobId)
    return entry === undefined || (entry.runner !== null && entry.runner !== id)
  })

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

export class JobRunner extends Context.Service<JobRunner, { readonly status: Effect.Effect<RunnerStatus> }>()(
  "@millrace/core/jobs/JobRunner"
) {
  /** Runs jobs of the given operations until the scope closes. Operations that are not jobs are ignored. */
  static readonly layer = <Op extends Operation.Any>(
    operations: ReadonlyArray<Op>,
    options: RunnerOptions = {}
  ): Layer.Layer<JobRunner, never, Jobs | Vault | CircuitBreaker | Operation.Services<Op>> =>
    Layer.effect(
      this,
      Effect.gen(function* () {
        const runner = yield* open(operations, options)
        const { id, running, shift } = runner
        yield* Effect.addFinalizer(() => Effect.timeoutOption(shift.idle.await, options.drain ?? "10 seconds"))
        const setTrouble = (trouble: Following.Retrying | undefined) => {
          shift.trouble = trouble
        }
        yield* Effect.forkScoped(Following.retryForever(Effect.forever(lookForJobs(runner)), setTrouble))
        return { status: Effect.sync(() => ({ id, running: Array.from(running, ([jobId]) => jobId), trouble: shift.trouble })) }
      })
    )
}
