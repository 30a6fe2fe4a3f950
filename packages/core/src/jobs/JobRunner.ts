/**
 * Runs jobs: takes them from the log, in turns between accounts, claims each by an append at an exact revision, and keeps its lease while it
 * works. Any number of runners may share a log. One that dies is taken over from when its lease is over; one that cannot extend its lease
 * stops in time; one that is stopped finishes or hands back.
 */
import { type EventStore, Following } from "@millrace/event-sourcing"
import { Clock, Context, Deferred, Duration, Effect, Exit, FiberMap, FiberSet, Layer, Random, type Scope } from "effect"
import type { CircuitBreaker } from "../billing/CircuitBreaker.ts"
import { Ids } from "../Ids.ts"
import type * as Operation from "../operations/Operation.ts"
import * as Attempt from "./Attempt.ts"
import { Jobs } from "./Jobs.ts"
import type { Schedule } from "./Schedule.ts"

export interface RunnerOptions {
  /** Jobs that this runner works at, at once: 16 by default. */
  readonly concurrency?: number
  /** After how long without an extension another runner may take a job over: 30 seconds by default. It is extended each third of it. */
  readonly lease?: Duration.Input
  /** How long jobs may go on when the runner is stopped, before they are handed back: 10 seconds by default. */
  readonly drain?: Duration.Input
  /** Before the second attempt, less up to a half at random, then twice as long and so on: from 1 second up to 1 minute by default. */
  readonly backOff?: { readonly first: Duration.Input; readonly longest: Duration.Input }
}

export interface RunnerStatus {
  /** Names it in the log. */
  readonly id: string
  /** Jobs that it works at. */
  readonly running: ReadonlyArray<string>
  /** Why it takes no jobs at the moment. */
  readonly trouble: Following.Retrying | undefined
}

export class JobRunner extends Context.Service<JobRunner, { readonly status: Effect.Effect<RunnerStatus> }>()(
  "@millrace/core/jobs/JobRunner"
) {
  /** Runs those of the operations that are jobs, for as long as the scope is open. */
  static readonly layer = <Op extends Operation.Any>(
    operations: ReadonlyArray<Op>,
    options: RunnerOptions = {}
  ): Layer.Layer<JobRunner, never, Jobs | CircuitBreaker | Operation.Services<Op>> => Layer.effect(JobRunner, make(operations, options))
}

const CONCURRENCY = 16
const LEASE = "30 seconds"
const DRAIN = "10 seconds"
const BACK_OFF = { first: "1 second", longest: "1 minute" } as const

/** Where several runners reach for the same jobs, each chooses among that many of an account's oldest at the most. */
const MAX_SPREAD = 64
const NOTHING_LEFT: Attempt.Left = { claimed: false, position: undefined }
/** What is not known of an attempt now, the log tells by then. */
const FORGET_AFTER = "1 second"

const make = <Op extends Operation.Any>(
  operations: ReadonlyArray<Op>,
  { backOff = BACK_OFF, concurrency = CONCURRENCY, drain = DRAIN, lease = LEASE }: RunnerOptions
): Effect.Effect<JobRunner["Service"], never, Jobs | CircuitBreaker | Operation.Services<Op> | Scope.Scope> =>
  Effect.gen(function* () {
    const jobs = yield* Jobs
    const clock = yield* Clock.Clock
    const services = yield* Effect.context<Operation.Services<Op>>()
    const ids = yield* Ids
    const runner = `runner_${ids.ulid(clock.currentTimeMillisUnsafe())}`
    const attempt = yield* Attempt.make({ runner, lease: Duration.toMillis(lease), backOff: Attempt.backOffOf(backOff) })
    const runnable = new Map(
      operations.flatMap(({ job, key, timeout }) => (job === undefined ? [] : [[key, { job, key, timeout }] as const]))
    )
    const limits = (operation: string) => runnable.get(operation)?.job.limits

    /** Jobs that were taken, until the log says so or says that they are free again. */
    const taken = new Set<string>()
    const running = yield* FiberMap.make<string, Attempt.Left>()
    const fork = yield* FiberSet.makeRuntime<never>()
    let busy = 0
    let spread = 1
    let trouble: Following.Retrying | undefined
    let idle = Deferred.makeUnsafe<void>()
    let woken = Deferred.makeUnsafe<void>()
    const wake = () => Deferred.doneUnsafe(woken, Effect.void)

    yield* Effect.addFinalizer(() =>
      Effect.timeoutOption(
        Effect.suspend(() => {
          idle = Deferred.makeUnsafe()
          return busy === 0 ? Effect.void : Deferred.await(idle)
        }),
        drain
      )
    )

    const run = (operation: Attempt.Runnable<Operation.Services<Op>>, jobId: string): Effect.Effect<Attempt.Left> =>
      attempt(operation, jobId).pipe(
        Effect.catch((error) => Effect.as(Effect.logWarning("A job could not be claimed", error), NOTHING_LEFT)),
        Effect.catchDefect((defect) => Effect.as(Effect.logError(`Job ${jobId}:`, defect), NOTHING_LEFT)),
        Effect.provideContext(services)
      )

    const done = (jobId: string, { claimed, position }: Attempt.Left): void => {
      busy--
      if (busy === 0) Deferred.doneUnsafe(idle, Effect.void)
      spread = claimed ? Math.max(1, spread * 0.9) : Math.min(MAX_SPREAD, spread * 2)
      wake()
      const told = position === undefined ? Effect.sleep(FORGET_AFTER) : Effect.exit(jobs.board.read({ atLeast: position }))
      fork(
        Effect.andThen(
          told,
          Effect.sync(() => {
            taken.delete(jobId)
            wake()
          })
        )
      )
    }

    /** Takes as many as there is room for, and lets go of those that are somebody else's or nobody's any more. */
    const look = Effect.gen(function* () {
      // One look for all that happens in a tick
      yield* Effect.yieldNow
      woken = Deferred.makeUnsafe()
      const drawn = yield* Random.next
      const { position, state } = yield* jobs.board.read()
      return yield* Effect.uninterruptible(take(position, state, drawn))
    })

    const take = Effect.fnUntraced(function* (position: EventStore.Position, state: Schedule, drawn: number) {
      const now = clock.currentTimeMillisUnsafe()
      const among = Math.floor(spread)
      const found: Array<{ readonly operation: Attempt.Runnable; readonly jobId: string }> = []
      const request = { now, limits, taken, among, pick: (choices: number) => Math.floor(drawn * choices) }
      while (busy < concurrency) {
        const entry = state.next(request)
        const operation = entry && runnable.get(entry.operation)
        if (entry === undefined || operation === undefined) break
        taken.add(entry.jobId)
        busy++
        found.push({ operation, jobId: entry.jobId })
      }
      const over: Array<string> = []
      for (const [jobId] of running) {
        const entry = state.get(jobId)
        if (entry === undefined || (entry.runner !== null && entry.runner !== runner)) over.push(jobId)
      }
      const next = state.nextTime(now)
      // From here on the state is not looked at any more
      for (const { jobId, operation } of found) {
        const fiber = yield* FiberMap.run(running, jobId, run(operation, jobId))
        fiber.addObserver((exit) => done(jobId, Exit.isSuccess(exit) ? exit.value : NOTHING_LEFT))
      }
      for (const jobId of over) fork(FiberMap.remove(running, jobId))
      return { position, wait: next - now }
    })

    const rounds = Effect.gen(function* () {
      for (;;) {
        const { position, wait } = yield* look
        trouble = undefined
        const events = Effect.raceFirst(jobs.board.past(position), Deferred.await(woken))
        yield* Number.isFinite(wait) ? Effect.raceFirst(events, Effect.sleep(Math.max(1, Math.ceil(wait)))) : events
      }
    })
    const told = (now: Following.Retrying | undefined) => {
      trouble = now
    }
    yield* Effect.forkScoped(Following.retryForever(rounds, told))

    return JobRunner.of({ status: Effect.sync(() => ({ id: runner, running: [...running].map(([jobId]) => jobId), trouble })) })
  })
