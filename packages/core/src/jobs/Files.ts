/**
 * An index of the blobs that jobs, or others, stored, in the state store. A file is noted before its blob is written, so the sweep finds
 * the files of attempts that died, and never removes blobs that belong to something else in the same `BlobStore`.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Option, Stream } from "effect"

export interface File {
  /** The id of the job, or of what else it belongs to. */
  readonly owner: string
  /** The blob's id. */
  readonly id: string
}

const PAGE = 1_000

const keyOf = ({ id, owner }: File): string => `${owner}/${id}`
const fileOf = (key: string): File => {
  const at = key.indexOf("/")
  return { owner: key.slice(0, at), id: key.slice(at + 1) }
}

export type Files = Effect.Success<ReturnType<typeof make>>

/** `space`: that of the index in the state store. Files of several kinds have several. */
export const make = Effect.fnUntraced(function* (space: string) {
  const states = yield* StateStore.StateStore
  // A write without an expected version cannot conflict
  const write = (change: StateStore.Change) => Effect.asVoid(Effect.catchTag(states.write([change]), "StateConflict", Effect.die))
  const noted = (file: File, now: number): StateStore.Change => ({ _tag: "put", space, key: keyOf(file), value: Buffer.from(String(now)) })
  const forgotten = (file: File): StateStore.Change => ({ _tag: "remove", space, key: keyOf(file) })
  return {
    /** Adds a file. To be called before its blob is written. */
    note: (file: File) => Effect.flatMap(Clock.currentTimeMillis, (now) => write(noted(file, now))),
    /** The change that `note` writes, for a caller that stores the file in the same write. `now` in milliseconds since 1970. */
    noted,
    /** Removes a file. To be called after its blob is removed. */
    forget: (file: File) => write(forgotten(file)),
    /** The change that `forget` writes, for a caller that writes it under a lease. */
    forgotten,
    /** The files of an owner. */
    of: (owner: string) =>
      Stream.paginate(`${owner}/`, (after: string) =>
        Effect.map(states.list(space, { after, limit: PAGE }), (entries) => {
          const own = entries.filter(({ key }) => key.startsWith(`${owner}/`))
          const last = own.length < PAGE ? undefined : own.at(-1)?.key
          return [own.map(({ key }) => fileOf(key)), Option.fromUndefinedOr(last)] as const
        })
      ),
    /** The files noted at `time` or before, milliseconds since 1970. */
    notedBy: (time: number) =>
      Stream.paginate("", (after: string) =>
        Effect.map(states.list(space, { after, limit: PAGE }), (entries) => {
          const noted = entries.filter(({ value }) => Number(Buffer.from(value).toString()) <= time)
          const last = entries.length < PAGE ? undefined : entries.at(-1)?.key
          return [noted.map(({ key }) => fileOf(key)), Option.fromUndefinedOr(last)] as const
        })
      )
  }
})
