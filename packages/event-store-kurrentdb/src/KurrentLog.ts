/**
 * Reads the log in pages, one call for each page. Events are decoded strictly. The reader skips the server's own events, snapshots, and
 * events of other programs that do not have the form of ours.
 */
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import type { Clients } from "./Clients.ts"
import { type Direction, Fault, type Recorded } from "./Driver.ts"
import { type LogPosition, placeOf, textOf } from "./Position.ts"
import { isSystem } from "./Selecting.ts"

/** Events in a page. The first page is smaller, because many readers need only a few events. */
export const PAGE = 512
export const FIRST_PAGE = 64
/** Events in the first page of a search for the end of the log. */
const LAST_FEW = 8

export interface Page {
  readonly events: ReadonlyArray<EventStore.RecordedEvent>
  /** Where the next page begins; undefined at the end of the log. */
  readonly next: EventStore.Position | undefined
}

export type KurrentLog = ReturnType<typeof make>

const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Throws a {@link Fault} for data that is not UTF-8. */
export const decode = (recorded: Recorded): EventStore.RecordedEvent => {
  const { id, type, revision, position } = recorded
  const stream = recorded.stream
  const corrupt = (what: string) => new Fault({ kind: "refused", message: `Event ${revision} of ${stream} ${what}` })
  if (!StreamName.isStreamName(stream)) throw corrupt("is in a stream with an invalid name")
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

/** `categories`: all categories of the log; needed if other programs keep streams on the same nodes. */
export const make = (clients: Clients, categories?: ReadonlyArray<string>) => {
  const known = categories && new Set(categories)
  const isOurs = ({ type, contentType, stream }: Recorded): boolean =>
    !isSystem(type) &&
    contentType === "application/json" &&
    StreamName.isStreamName(stream) &&
    (known?.has(StreamName.category(stream)) ?? true)

  const readStream = (stream: string, direction: Direction, from: EventStore.Revision | undefined, count: number) =>
    Effect.flatMap(
      clients.call((driver) => driver.readStream(stream, direction, from, count)),
      decoded
    )

  /** The next page after a position. An empty page is not necessarily the last. */
  const pageAfter = (after: EventStore.Position, count: number): Effect.Effect<Page, Fault> =>
    Effect.flatMap(
      clients.call((driver) => driver.readLog("forwards", placeOf(after), count)),
      (all) => {
        const last = all.length < count ? undefined : all.at(-1)?.position
        // A forward read begins with the event at its position
        const ours = all.filter((one) => one.position !== undefined && textOf(one.position) > after && isOurs(one))
        return Effect.map(decoded(ours), (events) => ({ events, next: last && textOf(last) }))
      }
    )

  /** The next events after a position; empty at the end of the log. */
  const nextAfter = (after: EventStore.Position): Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, Fault> =>
    Effect.flatMap(pageAfter(after, PAGE), ({ events, next }) =>
      events.length > 0 || next === undefined ? Effect.succeed(events) : nextAfter(next)
    )

  /** The position of our newest event. */
  const head = Effect.suspend(() => lookBack(undefined, LAST_FEW))
  // The search stops at the newest event seen before, because other programs may append much more than we do
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

  return { isOurs, readStream, pageAfter, after: nextAfter, head }
}
