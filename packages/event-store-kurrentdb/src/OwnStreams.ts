/** The store's own streams: snapshots, and the events that tell the server's time. They are not part of the log. */
import type { EventIds, EventStore } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import type { Clients } from "./Clients.ts"
import type { Fault } from "./Driver.ts"

export type OwnStreams = ReturnType<typeof make>

export const isOvertaken = ({ kind }: Fault): boolean => kind === "wrongRevision"

export const make = (clients: Clients, newId: EventIds) => {
  const append = (stream: string, expected: EventStore.ExpectedRevision, type: string, data: string, metadata = "") =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      clients.call((driver) => driver.append(stream, expected, [{ id: newId(now), type, data, metadata }]))
    )
  /** Sets `$maxCount` of the stream to `count`, unless its metadata was written before. */
  const keepNewest = (stream: string, count: number) =>
    Effect.catchIf(append(`$$${stream}`, "noStream", "$metadata", `{"$maxCount":${count}}`), isOvertaken, () => Effect.void)

  return { append, keepNewest }
}
