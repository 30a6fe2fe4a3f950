/** Positions of a store that numbers its events: the places of events in the log, as text. */
import { type Position, position, start } from "./EventStore.ts"

/** Place of an event in the log, from 1. */
export type Place = number

/** Digits of a position, so that positions sort as text. */
const WIDTH = 16

/** {@link start} for 0, the place before the first event. */
export const positionOf = (place: Place): Position => (place === 0 ? start : position(place.toString().padStart(WIDTH, "0")))

/** The place that a position names; a defect for one that this store did not give out. */
export const placeOf = (at: Position): Place => {
  if (at !== start && !/^\d{16}$/.test(at)) throw new Error(`No position of this log: ${JSON.stringify(at)}`)
  return Number(at)
}

/** A position as a person writes it, with or without its leading zeros; undefined for any other text. */
export const parsePosition = (text: string): Position | undefined =>
  /^\d{1,16}$/.test(text) ? position(text.padStart(WIDTH, "0")) : undefined

/** The position so many events before another; {@link start} if there are fewer. */
export const stepBack = (at: Position, events: number): Position => positionOf(Math.max(0, placeOf(at) - events))
