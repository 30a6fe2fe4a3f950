/** Keeps the lease of an attempt for as long as it runs. */
import { Clock, Effect, Schema } from "effect"
import { isTransient } from "../work/Transient.ts"
import * as Job from "./Job.ts"
import type { Jobs } from "./Jobs.ts"

/** The lease could not be extended in time, another attempt has begun, or the job has ended. */
export class LeaseLost extends Schema.TaggedError<LeaseLost>()("LeaseLost", {}) {}

/** Milliseconds of a clock that never jumps. */
export const elapsed = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

/**
 * Extends the lease each third of it. Fails after two thirds without an extension: so the work stops before another runner may take the
 * job over. `lease` in milliseconds; `startedAt` by {@link elapsed}.
 */
export const keepLease = (
  jobs: Jobs["Service"],
  {
    jobId,
    attempt,
    lease,
    startedAt
  }: { readonly jobId: string; readonly attempt: number; readonly lease: number; readonly startedAt: number }
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
