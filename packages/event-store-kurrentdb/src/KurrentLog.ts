/**
 * The log as this store reads it: page after page, each a call of its own that ends, decoded strictly, without what is not ours: the
 * server's events, snapshots, and what other programs keep on the same nodes in no form of ours.
 */
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import type { Clients } from "./Clients.ts"
import { Fault, type Recorded } from "./Driver.ts"
import { type LogPosition, placeOf, textOf } from "./Position.ts"
import { isSystem } from "./Selecting.ts"

/** Events read by one call, and by the first of several: who reads on reads more at a time. */
export const PAGE = 512
export const FIRST_PAGE = 64
/** Looking for the end, the first look is at so many. */
const LAST_FEW = 8

export interface Page {
  readonly events: ReadonlyArray<EventStore.RecordedEvent>
  /** Up to where it looked, to go on from there; undefined when that is the end. */
  readonly next: EventStore.Position | undefined
}

export interface KurrentLog {
  readonly isOurs: (recorded: Recorded) => boolean
  readonly readStream: (
    stream: StreamName.StreamName,
    direction: "forwards" | "backwards",
    from: EventStore.Revision | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, Fault>
  /** After a position. The page may be empty, and not the last. */
  readonly pageAfter: (after: EventStore.Position, count: number) => Effect.Effect<Page, Fault>
  /** The next events after a position; none when there are none. */
  readonly after: (after: EventStore.Position) => Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, Fault>
  /** The newest event of ours. */
  readonly head: Effect.Effect<EventStore.Position, Fault>
}

const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Throws a {@link Fault} for what is no text. */
export const decode = (recorded: Recorded): EventStore.RecordedEvent => {
  const { id, type, revision, position } = recorded
  const stream = recorded.stream
  const corrupt = (what: string) => new Fault({ kind: "refused", message: `Event ${revision} of ${stream} ${what}` })
  if (!StreamName.isStreamName(stream)) throw corrupt("is in no stream of ours")
  if (position === undefined) throw corrupt("has no position: the server is older than 22.6")
  try {
    return { id, type, revision, stream, position: textOf(position), ...textsOf(recorded) }
  } catch {
    throw corrupt("is not UTF-8")
  }
}

export const textsOf = ({ data, metadata }: Recorded): { readonly data: string; readonly metadata: string } => ({
  data: text.decode(data),
  metadata: text.decode(metadata)
})

const decoded = (all: ReadonlyArray<Recorded>): Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, Fault> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(all.map(decode))
    } catch (error) {
      return error instanceof Fault ? Effect.fail(error) : Effect.die(error)
    }
  })

/** `categories`: all that ours are, where other programs' streams are on the same nodes. */
export const make = (clients: Clients, categories?: ReadonlyArray<string>): KurrentLog => {
  const known = categories && new Set(categories)
  const isOurs = ({ type, contentType, stream }: Recorded): boolean =>
    !isSystem(type) &&
    contentType === "application/json" &&
    StreamName.isStreamName(stream) &&
    (known?.has(StreamName.category(stream)) ?? true)

  const readStream: KurrentLog["readStream"] = (stream, direction, from, count) =>
    Effect.flatMap(
      clients.call((driver) => driver.readStream(stream, direction, from, count)),
      decoded
    )

  const pageAfter: KurrentLog["pageAfter"] = (after, count) =>
    Effect.flatMap(
      clients.call((driver) => driver.readLog("forwards", placeOf(after), count)),
      (all) => {
        const last = all.length < count ? undefined : all.at(-1)?.position
        // A forward read includes where it begins
        const ours = all.filter((one) => one.position !== undefined && textOf(one.position) > after && isOurs(one))
        return Effect.map(decoded(ours), (events) => ({ events, next: last && textOf(last) }))
      }
    )

  const nextAfter: KurrentLog["after"] = (after) =>
    Effect.flatMap(pageAfter(after, PAGE), ({ events, next }) =>
      events.length > 0 || next === undefined ? Effect.succeed(events) : nextAfter(next)
    )

  // No further back than the newest that was seen: what other programs append may be much more than ours
  let newest: EventStore.Position = EventStore.start
  const lookBack = (from: LogPosition | undefined, count: number): Effect.Effect<EventStore.Position, Fault> =>
    Effect.flatMap(
      clients.call((driver) => driver.readLog("backwards", from, count)),
      (all) => {
        for (const one of all) {
          if (one.position === undefined) continue
          const position = textOf(one.position)
          if (position <= newest) return Effect.succeed(newest)
          if (!isOurs(one)) continue
          newest = position
          return Effect.succeed(position)
        }
        const last = all.at(-1)?.position
        return all.length < count || last === undefined ? Effect.succeed(newest) : lookBack(last, PAGE)
      }
    )

  return { isOurs, readStream, pageAfter, after: nextAfter, head: Effect.suspend(() => lookBack(undefined, LAST_FEW)) }
}
