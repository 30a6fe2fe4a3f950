/** Rules of every event of every stream: its position, its hash, its time. */
import { type EventStore, fromIso, HashChain } from "@millrace/event-sourcing"

/** Positions increase through the whole log, so the order is total and no event occurs twice. */
export const positionIncreases = (previous: string, event: EventStore.RecordedEvent): string | undefined =>
  event.position > previous ? undefined : `it stands after position ${previous}`

/** Revisions count from 0 without gaps, so no event of a stream was removed, inserted or moved. */
export const revisionFollows = (previous: EventStore.Revision, event: EventStore.RecordedEvent): string | undefined =>
  event.revision === previous + 1 ? undefined : `revision ${event.revision} stands where ${previous + 1} is due`

/** Each event has the SHA-256 of itself and of the hash before it, so no event was changed, exchanged or forged. */
export const linkHolds = (previous: HashChain.Hash, event: EventStore.RecordedEvent): string | undefined => {
  if (HashChain.verify(previous, event)) return undefined
  return HashChain.isSealed(event) ? "its hash is not that of what it says and what stands before it" : "it carries no hash"
}

/** Parses the log's time format to milliseconds since 1970; undefined for any other text. */
export const millisOf = (at: string): number | undefined => {
  const millis = fromIso(at)
  return Number.isNaN(millis) ? undefined : millis
}

/** Times have one format and never go back within a stream. `millis`: `at`, parsed by {@link millisOf}. */
export const timeGoesOn = (previous: string, at: string, millis: number | undefined): string | undefined => {
  if (millis === undefined) return `${JSON.stringify(at)} is no time`
  return at >= previous ? undefined : `${at} stands after ${previous}`
}
