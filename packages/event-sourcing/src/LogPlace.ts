/** Positions of a store that numbers its events: places in the log as text. */
import { type Position, position, start } from "./EventStore.ts"

/** Place of an event in the log, from 1. */
export type Place = number

/** Digits of a position, so that positions sort as text. */
const WIDTH = 16

/** The last three digits of a position, as text. */
const ENDS = Array.from({ length: 1_000 }, (_, end) => String(end).padStart(3, "0"))

/** The digits before these, of the newest position: a thousand positions in a row share them, so only two texts are joined for each. */
let shared = { number: 0, text: "0".repeat(WIDTH - 3) }

/** The position of a place; {@link start} for 0, the place before the first event. */
export const positionOf = (place: Place): Position => {
  if (place === 0) return start
  const end = place % ENDS.length
  const number = (place - end) / ENDS.length
  if (number !== shared.number) shared = { number, text: String(number).padStart(WIDTH - 3, "0") }
  return position(shared.text + ENDS[end])
}

/** The place of a position. Throws if the position is not in this store's format. */
export const placeOf = (at: Position): Place => {
  if (at !== start && !/^\d{16}$/.test(at)) throw new Error(`Not a position of this log: ${JSON.stringify(at)}`)
  return Number(at)
}

/** Parses a position with or without its leading zeros; undefined for any other text. */
export const parsePosition = (text: string): Position | undefined =>
  /^\d{1,16}$/.test(text) ? position(text.padStart(WIDTH, "0")) : undefined

/** The position this many events before another; {@link start} if there are fewer. */
export const stepBack = (at: Position, events: number): Position => positionOf(Math.max(0, placeOf(at) - events))
