/**
 * An event as this process decided it. It travels beside the stored form, from the command to the followers in the same process, so that
 * they need not parse what was just encoded. It is never stored and never sent: an event that was read from a store has none.
 */
import type { Tagged } from "./EventCodec.ts"

export interface DecidedEvent {
  /** The codec that encoded the event. With any other, the stored form counts. */
  readonly codec: object
  readonly event: Tagged
  /** When it was decided, milliseconds since 1970. */
  readonly at: number
}
