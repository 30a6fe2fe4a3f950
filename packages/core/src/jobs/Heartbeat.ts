/** Extends the lease of a running attempt. */
import { Clock, Effect, Schema } from "effect"
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

/**
 * Extends the lease after each third of it. Fails when two thirds have passed without an extension, so the work stops before another runner
 * may claim the job. `lease` in milliseconds, `startedAt` from {@link elapsed}.
 */
export const keepLease = (
  jobs: Jobs["Service"],
  jobId: string,
  attempt: number,
  { lease, startedAt }: { readonly lease: number; readonly startedAt: number }
): Effect.Effect<never, LeaseLost> =>
  Effect.gen(function* () {
    let extendedAt = startedAt
    for (;;) {
      const now = yield* elapsed
      const due = extendedAt + lease / 3 - now
      if (due > 0) {
        yield* Effect.sleep(Math.ceil(due))
        continue
      }
      const left = extendedAt + (lease * 2) / 3 - now
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
