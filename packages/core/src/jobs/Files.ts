/**
 * Which blobs are files of jobs. Each is noted in the state store before it is there, so whatever attempts left that died can be found, and
 * what others keep in the same `BlobStore` is never taken for it.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Option, Stream } from "effect"

export interface File {
  readonly jobId: string
  /** Of the blob. */
  readonly id: string
}

export interface Files {
  /** Before the blob is there. */
  readonly note: (file: File) => Effect.Effect<void, StateStore.StateUnavailable>
  /** Once the blob is gone. */
  readonly forget: (file: File) => Effect.Effect<void, StateStore.StateUnavailable>
  /** The same, for who writes it under a lease. */
  readonly forgotten: (file: File) => StateStore.Change
  /** Those noted at that time or before, milliseconds since 1970. */
  readonly notedBy: (time: number) => Stream.Stream<File, StateStore.StateUnavailable>
}

const SPACE = "jobFiles"
const PAGE = 1_000

const keyOf = ({ id, jobId }: File): string => `${jobId}/${id}`
const fileOf = (key: string): File => {
  const at = key.indexOf("/")
  return { jobId: key.slice(0, at), id: key.slice(at + 1) }
}

export const make: Effect.Effect<Files, never, StateStore.StateStore> = Effect.gen(function* () {
  const states = yield* StateStore.StateStore
  // Nothing is expected of an entry, so nothing conflicts
  const write = (change: StateStore.Change) => Effect.asVoid(Effect.catchTag(states.write([change]), "StateConflict", Effect.die))
  const forgotten: Files["forgotten"] = (file) => ({ _tag: "remove", space: SPACE, key: keyOf(file) })
  return {
    note: (file) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        write({ _tag: "put", space: SPACE, key: keyOf(file), value: Buffer.from(String(now)) })
      ),
    forget: (file) => write(forgotten(file)),
    forgotten,
    notedBy: (time) =>
      Stream.paginate("", (after: string) =>
        Effect.map(states.list(SPACE, { after, limit: PAGE }), (entries) => {
          const noted = entries.filter(({ value }) => Number(Buffer.from(value).toString()) <= time)
          const last = entries.length < PAGE ? undefined : entries.at(-1)?.key
          return [noted.map(({ key }) => fileOf(key)), Option.fromUndefinedOr(last)] as const
        })
      )
  }
})
