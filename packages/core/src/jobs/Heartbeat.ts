/**
 * Extends the leases of running attempts. Most attempts end before a lease needs that, so one fiber waits for all of them, and an attempt gets
 * a fiber of its own only once its lease is due.
 */
import { Clock, Effect, type Fiber, FiberSet, Latch, Schema, type Scope } from "effect"
import { isTransient } from "../work/Transient.ts"
import * as Job from "./Job.ts"
import type { Jobs } from "./Jobs.ts"

/** The lease could not be extended in time, another attempt has begun, or the job has ended. */
export class LeaseLost extends Schema.TaggedError<LeaseLost>()("LeaseLost", {}) {
  override get message(): string {
    return "The lease of the job was lost, so this attempt is over"
  }
}

/** Milliseconds of the monotonic clock. */
export const elapsed = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

/** As {@link elapsed}, outside of an effect. */
export const elapsedBy = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** An attempt whose lease is kept. */
export interface Leased {
  readonly jobId: string
  readonly attempt: number
  /** A time before the claim, from {@link elapsed}. */
  readonly startedAt: number
  /** Called if the lease is lost. */
  readonly lose: () => void
}

/** Begins to keep a lease, or loses it at once if it is too late. Returns the function that ends it. */
type Keep = (leased: Leased) => () => void

/** Keeps leases of `lease` milliseconds until the scope closes. */
export const make: (jobs: Jobs["Service"], lease: number) => Effect.Effect<Keep, never, Scope.Scope> = Effect.fnUntraced(
  function* (jobs, lease) {
    const clock = yield* Clock.Clock
    const fork = yield* FiberSet.makeRuntime<never>()
    /** Attempts whose lease needed no extension yet. */
    const young = new Set<Leased>()
    const extending = new Map<Leased, Fiber.Fiber<void>>()
    const isEarlier = Latch.makeUnsafe(false)
    let next = Number.POSITIVE_INFINITY
    const dueAt = ({ startedAt }: Leased): number => startedAt + lease / 3

    const extend = (leased: Leased): void => {
      young.delete(leased)
      extending.set(leased, fork(Effect.catch(keepLease(jobs, leased, lease), () => Effect.sync(leased.lose))))
    }
    const round = Effect.suspend(() => {
      const now = elapsedBy(clock)
      isEarlier.closeUnsafe()
      next = Number.POSITIVE_INFINITY
      for (const leased of young) {
        if (dueAt(leased) <= now) extend(leased)
        else next = Math.min(next, dueAt(leased))
      }
      return Number.isFinite(next) ? Effect.raceFirst(Effect.sleep(Math.ceil(next - now)), isEarlier.await) : isEarlier.await
    })
    yield* Effect.forkScoped(Effect.forever(round))

    return (leased) => {
      // The claim was answered too late: another runner may begin at any moment, so the work does not begin here
      if (lostAt(leased.startedAt, lease) <= elapsedBy(clock)) {
        leased.lose()
        return () => {}
      }
      young.add(leased)
      if (dueAt(leased) < next) {
        next = dueAt(leased)
        isEarlier.openUnsafe()
      }
      return () => {
        young.delete(leased)
        extending.get(leased)?.interruptUnsafe()
        extending.delete(leased)
      }
    }
  }
)

/** When a lease counts as lost unless it was extended again: before it expires, so that the work has stopped by then. */
const lostAt = (extendedAt: number, lease: number): number => extendedAt + (lease * 2) / 3

/**
 * Extends the lease after each third of it. Fails when two thirds have passed without an extension, so the work stops before another runner
 * may claim the job.
 */
const keepLease = (jobs: Jobs["Service"], { attempt, jobId, startedAt }: Leased, lease: number): Effect.Effect<never, LeaseLost> =>
  Effect.gen(function* () {
    let extendedAt = startedAt
    for (;;) {
      const now = yield* elapsed
      const due = extendedAt + lease / 3 - now
      if (due > 0) {
        yield* Effect.sleep(Math.ceil(due))
        continue
      }
      const left = lostAt(extendedAt, lease) - now
      if (left <= 0) return yield* new LeaseLost()
      const extended = yield* jobs.execute(jobId, Job.extendLease(attempt, lease)).pipe(
        Effect.as(true),
        Effect.catchTag("AttemptOver", () => Effect.fail(new LeaseLost())),
        Effect.catchIf(isTransient, () => Effect.succeed(false)),
        Effect.mapError(() => new LeaseLost()),
        Effect.timeoutOrElse({ duration: left, orElse: () => Effect.fail(new LeaseLost()) })
      )
      if (extended) extendedAt = now
      else yield* Effect.sleep(Math.ceil(Math.min(left, lease / 12)))
    }
  })
