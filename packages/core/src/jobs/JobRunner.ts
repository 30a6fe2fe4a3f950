/**
 * Runs jobs: picks open jobs in turns between accounts, claims each by an append at an exact revision, and extends its lease while it
 * works. Any number of runners may share a log. When a runner dies, others claim its jobs once the leases have expired. A runner that
 * cannot extend a lease stops that job before the lease expires. A runner that is stopped finishes its jobs or hands them back.
 *
 * While no job waits, a job that its process accepts is claimed in the append that accepts it (see `Places.ts`).
 */
import { Following } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Exit, type Fiber, FiberSet, Layer, Random } from "effect"
import { newRunnerId } from "../Ids.ts"
import type { Vault } from "../vault/Vault.ts"
import type { CircuitBreaker } from "../work/CircuitBreaker.ts"
import type * as Operation from "../work/Operation.ts"
import * as Attempt from "./Attempt.ts"
import * as AttemptEnd from "./AttemptEnd.ts"
import { elapsedBy } from "./Heartbeat.ts"
import type { Candidate, JobQueue, Request } from "./JobQueue.ts"
import { Jobs } from "./Jobs.ts"
import type { Offer, Place } from "./Places.ts"
import { Shift } from "./Shift.ts"

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

const NOT_CLAIMED: Attempt.AttemptResult = { claimed: false, position: undefined }
/** By then the projection has the end of an attempt whose position is unknown. */
const FORGET_AFTER = "1 second"

/** Starts a fiber that has the services of all operations of the runner. */
type Fork = (effect: Effect.Effect<unknown, unknown, unknown>) => Fiber.Fiber<unknown, unknown>

/** Resolves the services of a runner. Attempts that run end with the scope. */
const open = Effect.fnUntraced(function* <Op extends Operation.Any>(
  operations: ReadonlyArray<Op>,
  { backOff = BACK_OFF, concurrency = 16, lease = "30 seconds" }: RunnerOptions
) {
  const claim = { runner: yield* newRunnerId, lease: Duration.toMillis(lease) }
  const attempts = yield* Attempt.make({
    ...claim,
    backOff: { first: Duration.toMillis(backOff.first), longest: Duration.toMillis(backOff.longest) }
  })
  const all: ReadonlyArray<Operation.Any> = operations
  return {
    claim,
    concurrency,
    attempts,
    jobs: yield* Jobs,
    clock: yield* Clock.Clock,
    /** The operations that are jobs. */
    byKey: new Map(all.flatMap((operation) => (operation._tag === "Job" ? [[operation.key, operation] as const] : []))),
    shift: new Shift(),
    fork: (yield* FiberSet.makeRuntime<Operation.Services<Op>>()) as Fork
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
  shift.see(state, position)
  const wait = takeJobs(runner, state, clock.currentTimeMillisUnsafe(), drawn)
  shift.trouble = undefined
  const changed = Effect.raceFirst(jobs.openJobs.past(position), shift.woken.await)
  yield* Number.isFinite(wait) ? Effect.raceFirst(changed, Effect.sleep(Math.max(1, Math.ceil(wait)))) : changed
})

/** Starts as many jobs as there is room for, and stops those that are over. Returns the milliseconds until the next one may start. */
const takeJobs = (runner: Runner, queue: JobQueue, now: number, drawn: number): number => {
  const { attempts, claim, shift } = runner
  const chosen = choose(runner, queue, now, drawn)
  const lost = shift.lost(queue, claim.runner)
  const wait = queue.nextTime(now) - now
  // The projection changes the queue in place: it is not read below, where attempts begin
  for (const { jobId, operation } of chosen)
    begin(runner, jobId, (onEnd) =>
      attempts
        .claim(operation, jobId, { onClaim: (position) => shift.claimed(jobId, position), onEnd })
        .pipe(Effect.catch((error) => Effect.as(Effect.logWarning("A job could not be claimed", { jobId }, error), NOT_CLAIMED)))
    )
  for (const fiber of lost) fiber.interruptUnsafe()
  return wait
}

const requestOf = ({ byKey, shift }: Runner, now: number): Request => ({
  now,
  limits: (operation) => byKey.get(operation)?.limits,
  taken: shift.taken,
  starting: shift.starting
})

const choose = (runner: Runner, queue: JobQueue, now: number, drawn: number) => {
  const { byKey, concurrency, shift } = runner
  const pick = (choices: number) => Math.floor(drawn * choices)
  const request = { ...requestOf(runner, now), among: Math.floor(shift.spread), pick }
  const chosen: Array<{ readonly jobId: string; readonly operation: Operation.AnyJob }> = []
  while (shift.busy < concurrency) {
    const entry = queue.next(request)
    const operation = entry && byKey.get(entry.operation)
    if (entry === undefined || operation === undefined) break
    shift.take(entry)
    chosen.push({ jobId: entry.jobId, operation })
  }
  return chosen
}

/**
 * Runs an attempt at a taken job. The place is free once the attempt's end is recorded: the job is settled after that, which a runner that is
 * stopped waits for.
 */
const begin = (
  { fork, shift }: Runner,
  jobId: string,
  attempt: (onEnd: AttemptEnd.Ending["onEnd"]) => Effect.Effect<Attempt.AttemptResult, never, unknown>
): void => {
  const forget = Effect.sync(() => shift.forget(jobId))
  let result = NOT_CLAIMED
  let isEnded = false
  const end = (ended: Attempt.AttemptResult): void => {
    if (isEnded) return
    isEnded = true
    shift.end(jobId, ended)
    if (ended.position === undefined) fork(Effect.delay(forget, FORGET_AFTER))
  }
  const made = attempt((position) => end({ claimed: true, position }))
  const safe = Effect.catchDefect(made, (defect) => Effect.as(Effect.logError(`Job ${jobId}:`, defect), NOT_CLAIMED))
  const fiber = fork(
    Effect.map(safe, (made) => {
      result = made
    })
  )
  shift.running.set(jobId, fiber)
  fiber.addObserver(() => end(result))
}

/** Offers places to jobs that this process accepts, while the runner is free and no job waits. */
const offerOf =
  (runner: Runner): Offer =>
  (queue, job) => {
    const { byKey, clock, concurrency, shift } = runner
    const operation = byKey.get(job.operation)
    if (operation === undefined || shift.isClosing || shift.busy >= concurrency) return undefined
    if (!queue.mayStartAtOnce(job, requestOf(runner, clock.currentTimeMillisUnsafe()))) return undefined
    shift.take(job)
    return placeOf(runner, job, operation, elapsedBy(clock))
  }

const placeOf = (runner: Runner, { jobId }: Candidate, operation: Operation.AnyJob, startedAt: number): Place => {
  const { attempts, claim, jobs, shift } = runner
  const free = Effect.sync(() => {
    shift.leave(jobId)
    shift.forget(jobId)
  })
  return {
    claim,
    settle: (exit, input) =>
      Effect.suspend(() => {
        const job = Exit.isSuccess(exit) ? exit.value.state : undefined
        if (Exit.isFailure(exit) || job?.status !== "running" || job.runner !== claim.runner) return free
        if (shift.isClosing) return Effect.andThen(AttemptEnd.handBack({ jobs }, jobId, job), free)
        shift.claimed(jobId, exit.value.position)
        // The caller is answered before the work begins
        begin(runner, jobId, (onEnd) =>
          Effect.uninterruptible(
            Effect.andThen(Effect.yieldNow, attempts.run(operation, { jobId, job, startedAt, input: Effect.succeed(input), onEnd }))
          )
        )
        return Effect.void
      })
  }
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
        const { claim, jobs, shift } = runner
        yield* Effect.addFinalizer(() => {
          shift.isClosing = true
          return Effect.timeoutOption(shift.idle.await, options.drain ?? "10 seconds")
        })
        const setTrouble = (trouble: Following.Retrying | undefined) => {
          shift.trouble = trouble
        }
        yield* Effect.forkScoped(Following.retryForever(Effect.forever(lookForJobs(runner)), setTrouble))
        yield* jobs.places.offer(offerOf(runner))
        return { status: Effect.sync(() => ({ id: claim.runner, running: [...shift.running.keys()], trouble: shift.trouble })) }
      })
    )
}
