/**
 * An index of the blobs that jobs stored, in the state store. A file is noted before its blob is written, so the sweep finds the files of
 * attempts that died, and never removes blobs that belong to something else in the same `BlobStore`.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Option, Stream } from "effect"

export interface File {
  readonly jobId: string
  /** The blob's id. */
  readonly id: string
}

export interface Files {
  /** Adds a file. To be called before its blob is written. */
  readonly note: (file: File) => Effect.Effect<void, StateStore.StateUnavailable>
  /** Removes a file. To be called after its blob is removed. */
  readonly forget: (file: File) => Effect.Effect<void, StateStore.StateUnavailable>
  /** The change that `forget` writes, for a caller that writes it under a lease. */
  readonly forgotten: (file: File) => StateStore.Change
  /** The files noted at `time` or before, milliseconds since 1970. */
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
  // A write without an expected version cannot conflict
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
