/** Places in the log of KurrentDB, and the text that everybody above the store knows them by. */
import { EventStore } from "@millrace/event-sourcing"

/** Bytes into the log: where the event was committed, and where it was prepared. Both are unsigned, of 64 bits. */
export interface LogPosition {
  readonly commit: bigint
  readonly prepare: bigint
}

/** As many digits as 2^64 - 1 has, so that positions sort as text. */
const DIGITS = 20

/**
 * The commit alone: no two events share one, for each is committed where it is prepared. (Transactions over many writes, which clients of
 * long ago had, were different; nothing of ours is in one.) Servers tell the prepare of an event in more than one way, the commit in one.
 */
export const textOf = ({ commit }: LogPosition): EventStore.Position => EventStore.position(commit.toString().padStart(DIGITS, "0"))

/** A position as a user types it: leading zeros may be left out. Undefined for any other text. */
export const parsePosition = (text: string): EventStore.Position | undefined =>
  /^\d+$/u.test(text) && text.length <= DIGITS ? EventStore.position(text.padStart(DIGITS, "0")) : undefined

/** The place that a position names, undefined at the start; a defect for one that this store did not give out. */
export const placeOf = (position: EventStore.Position): LogPosition | undefined => {
  if (position === EventStore.start) return undefined
  if (!/^\d{20}$/.test(position)) throw new Error(`No position of this log: ${JSON.stringify(position)}`)
  const commit = BigInt(position)
  return { commit, prepare: commit }
}
