/** Converts places in the log of KurrentDB to and from the positions that other packages use. */
import { EventStore } from "@millrace/event-sourcing"

/** Where an event was committed and prepared, in bytes from the start of the log: unsigned 64-bit numbers. */
export interface LogPosition {
  readonly commit: bigint
  readonly prepare: bigint
}

/** Digits of a position, as many as 2^64 - 1 has. Positions sort as text. */
const WIDTH = 20

/**
 * Keeps only the commit position, because servers report the prepare position in different ways. Commit positions are unique: each of
 * our events is committed where it is prepared. (Transactions of old clients break this rule; the store uses none.)
 */
export const textOf = ({ commit }: LogPosition): EventStore.Position => EventStore.position(commit.toString().padStart(WIDTH, "0"))

/** Parses a position with or without its leading zeros; undefined for any other text. */
export const parsePosition = (text: string): EventStore.Position | undefined =>
  /^\d{1,20}$/.test(text) ? EventStore.position(text.padStart(WIDTH, "0")) : undefined

/** The place of a position; undefined for the start. Throws if the position is not in this store's format. */
export const placeOf = (position: EventStore.Position): LogPosition | undefined => {
  if (position === EventStore.start) return undefined
  if (!/^\d{20}$/.test(position)) throw new Error(`Not a position of this log: ${JSON.stringify(position)}`)
  const commit = BigInt(position)
  return { commit, prepare: commit }
}
