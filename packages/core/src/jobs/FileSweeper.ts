/** Removes files that no job needs, of one host at a time: the holder of a lease. */
import { type EventStore, Following, type Lease, type Projection } from "@millrace/event-sourcing"
import { Clock, Duration, Effect, Option, Stream } from "effect"
import type { BlobStore } from "../vault/BlobStore.ts"
import type { File } from "./Files.ts"
import * as Job from "./Job.ts"
import type { Jobs } from "./Jobs.ts"

/** The status of the sweep over the files of jobs. */
export interface FilesStatus {
  /** Whether this process runs the sweep. False without a `BlobStore`. */
  readonly leader: boolean
  /** The end of the last complete sweep, milliseconds since 1970. */
  readonly sweptAt: number | undefined
  /** How many unneeded files and leftovers of unfinished puts it removed. */
  readonly removed: { readonly files: number; readonly leftovers: number }
  /** Why the sweep fails now. It is retried. */
  readonly trouble: Following.Retrying | undefined
}

export const NOT_SWEEPING: FilesStatus = { leader: false, sweptAt: undefined, removed: { files: 0, leftovers: 0 }, trouble: undefined }

/** A file is kept this long after it was stored: an attempt may still use it that does not know yet that it is over. */
const GRACE = Duration.toMillis("1 day")

/** `artifacts`: the ids of all blobs that jobs return. */
export const make = (
  jobs: Jobs["Service"],
  blobs: BlobStore["Service"],
  artifacts: Effect.Effect<ReadonlySet<string>, Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable>,
  every: Duration.Input = "6 hours"
) => {
  let status = NOT_SWEEPING
  const update = (change: Partial<FilesStatus>) => {
    status = { ...status, ...change }
  }
  const countRemoved = ({ files = 0, leftovers = 0 }: Partial<FilesStatus["removed"]>) =>
    update({ removed: { files: status.removed.files + files, leftovers: status.removed.leftovers + leftovers } })

  const sweep = Effect.fn("JobUpkeep.sweepFiles")(function* (lease: Lease.Held) {
    const needed = yield* artifacts
    const before = (yield* Clock.currentTimeMillis) - GRACE
    let files = 0
    yield* Stream.runForEach(jobs.files.notedBy(before), (file) =>
      Effect.gen(function* () {
        if (needed.has(file.id) || (yield* isNeeded(jobs, file))) return
        yield* blobs.remove(file.id)
        // A leader that lost its lease stops here. The file that it removed is needed by no job
        yield* lease.write([jobs.files.forgotten(file)])
        files++
        countRemoved({ files: 1 })
      })
    )
    // Other blobs may belong to something else, so only leftovers of unfinished puts are removed
    const { leftovers } = yield* blobs.sweep(() => Effect.succeed(true), GRACE)
    countRemoved({ leftovers })
    update({ sweptAt: yield* Clock.currentTimeMillis })
    if (files + leftovers > 0) yield* Effect.logInfo("Removed files that no job needs", { files, leftovers })
  })

  return {
    status: (): FilesStatus => status,
    /** Sweeps at intervals until the lease is lost. */
    lead: (lease: Lease.Held): Effect.Effect<never, Lease.LeaseLost> => {
      // A lost lease ends the sweeps; any other failure is retried
      const swept = sweep(lease).pipe(
        Effect.as(Effect.void),
        Effect.catchTag("LeaseLost", (lost) => Effect.succeed(Effect.fail(lost)))
      )
      const once = Effect.flatten(Following.retryForever(swept, (trouble) => update({ trouble })))
      return Effect.suspend(() => {
        update({ leader: true })
        return Effect.forever(Effect.andThen(once, Effect.sleep(every)))
      }).pipe(Effect.ensuring(Effect.sync(() => update({ leader: false }))))
    }
  }
}

/** An open job may still name the file, in this attempt or, from a checkpoint, in the next. A job that cannot be read may need it, too. */
const isNeeded = (jobs: Jobs["Service"], { id, jobId }: File): Effect.Effect<boolean> =>
  Effect.map(Effect.option(jobs.read(jobId)), (found) => {
    if (Option.isNone(found)) return true
    const { state: job } = found.value
    return Job.isOpen(job) || (job.status === "succeeded" && !job.purged && job.artifacts.some((artifact) => artifact.id === id))
  })
