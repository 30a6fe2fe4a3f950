/** Removes files that nothing needs, of one host at a time: the holder of a lease. */
import { type EventStore, Following, type Lease, type Projection, type StateStore } from "@millrace/event-sourcing"
import { Clock, Duration, Effect, Stream } from "effect"
import type { BlobStore, BlobUnavailable } from "../vault/BlobStore.ts"
import type { File, Files } from "./Files.ts"

/** The status of the sweep over files. */
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

/** The files of one kind. */
export interface Swept {
  readonly files: Files
  /** Called at the beginning of a sweep: returns whether a file is needed by then. What is not known may be needed. */
  readonly isNeeded: Effect.Effect<
    (file: File) => Effect.Effect<boolean>,
    Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable
  >
  /** Every 6 hours by default. */
  readonly every?: Duration.Input
}

/** Where the files are. */
export interface Store extends Pick<BlobStore["Service"], "sweep"> {
  /** Removes a file if it exists. */
  readonly remove: (id: string) => Effect.Effect<void, BlobUnavailable | StateStore.StateUnavailable>
}

export const make = ({ every = "6 hours", files, isNeeded }: Swept, blobs: Store) => {
  let status = NOT_SWEEPING
  const update = (change: Partial<FilesStatus>) => {
    status = { ...status, ...change }
  }
  const countRemoved = ({ files = 0, leftovers = 0 }: Partial<FilesStatus["removed"]>) =>
    update({ removed: { files: status.removed.files + files, leftovers: status.removed.leftovers + leftovers } })

  const sweep = Effect.fn("FileSweeper.sweep")(function* (lease: Lease.Held) {
    const needed = yield* isNeeded
    const before = (yield* Clock.currentTimeMillis) - GRACE
    let removed = 0
    yield* Stream.runForEach(files.notedBy(before), (file) =>
      Effect.gen(function* () {
        if (yield* needed(file)) return
        yield* blobs.remove(file.id)
        // A leader that lost its lease stops here. The file that it removed is needed by nothing
        yield* lease.write([files.forgotten(file)])
        removed++
        countRemoved({ files: 1 })
      })
    )
    // Other blobs may belong to something else, so only leftovers of unfinished puts are removed
    const { leftovers } = yield* blobs.sweep(() => Effect.succeed(true), GRACE)
    countRemoved({ leftovers })
    update({ sweptAt: yield* Clock.currentTimeMillis })
    if (removed + leftovers > 0) yield* Effect.logInfo("Removed files that nothing needs", { files: removed, leftovers })
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
