/** Places in the log of KurrentDB, and the positions by which everybody outside this package knows them. */
import { EventStore } from "@millrace/event-sourcing"

/** Where an event was committed and where it was prepared, in bytes from the start of the log: unsigned numbers of 64 bits. */
export interface LogPosition {
  readonly commit: bigint
  readonly prepare: bigint
}

/** Digits of a position: as many as 2^64 - 1 has, so that positions sort as text. */
const WIDTH = 20

/**
 * The commit position alone. No two events share one, because each of our events is committed where it is prepared. (Old clients had
 * transactions over several writes, where that is not so.) Servers report the prepare position of an event in more than one way.
 */
export const textOf = ({ commit }: LogPosition): EventStore.Position => EventStore.position(commit.toString().padStart(WIDTH, "0"))

/** A position as a person writes it, with or without its leading zeros; undefined for any other text. */
export const parsePosition = (text: string): EventStore.Position | undefined =>
  /^\d{1,20}$/.test(text) ? EventStore.position(text.padStart(WIDTH, "0")) : undefined

/** The place that a position names, undefined at the start; a defect for one that this store did not give out. */
export const placeOf = (position: EventStore.Position): LogPosition | undefined => {
  if (position === EventStore.start) return undefined
  if (!/^\d{20}$/.test(position)) throw new Error(`No position of this log: ${JSON.stringify(position)}`)
  const commit = BigInt(position)
  return { commit, prepare: commit }
}
