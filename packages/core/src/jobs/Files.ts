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

const SPACE = "jobFiles"
const PAGE = 1_000

const keyOf = ({ id, jobId }: File): string => `${jobId}/${id}`
const fileOf = (key: string): File => {
  const at = key.indexOf("/")
  return { jobId: key.slice(0, at), id: key.slice(at + 1) }
}

export type Files = Effect.Success<typeof make>

export const make = Effect.gen(function* () {
  const states = yield* StateStore.StateStore
  // A write without an expected version cannot conflict
  const write = (change: StateStore.Change) => Effect.asVoid(Effect.catchTag(states.write([change]), "StateConflict", Effect.die))
  const forgotten = (file: File): StateStore.Change => ({ _tag: "remove", space: SPACE, key: keyOf(file) })
  return {
    /** Adds a file. To be called before its blob is written. */
    note: (file: File) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        write({ _tag: "put", space: SPACE, key: keyOf(file), value: Buffer.from(String(now)) })
      ),
    /** Removes a file. To be called after its blob is removed. */
    forget: (file: File) => write(forgotten(file)),
    /** The change that `forget` writes, for a caller that writes it under a lease. */
    forgotten,
    /** The files noted at `time` or before, milliseconds since 1970. */
    notedBy: (time: number) =>
      Stream.paginate("", (after: string) =>
        Effect.map(states.list(SPACE, { after, limit: PAGE }), (entries) => {
          const noted = entries.filter(({ value }) => Number(Buffer.from(value).toString()) <= time)
          const last = entries.length < PAGE ? undefined : entries.at(-1)?.key
          return [noted.map(({ key }) => fileOf(key)), Option.fromUndefinedOr(last)] as const
        })
      )
  }
})
