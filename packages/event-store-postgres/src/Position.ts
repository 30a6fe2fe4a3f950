/** Places of events in the log, and the positions by which everybody outside this package knows them. */
import { EventStore } from "@millrace/event-sourcing"

/** Place of an event in the log, from 1, without gaps. */
export type Place = number

/** Digits of a position, so that positions sort as text. */
const WIDTH = 16

/** {@link EventStore.start} for 0, the place before the first event. */
export const positionOf = (place: Place): EventStore.Position =>
  place === 0 ? EventStore.start : EventStore.position(place.toString().padStart(WIDTH, "0"))

/** The place that a position names; a defect for one that this store did not give out. */
export const placeOf = (position: EventStore.Position): Place => {
  if (position !== EventStore.start && !/^\d{16}$/.test(position)) throw new Error(`No position of this log: ${JSON.stringify(position)}`)
  return Number(position)
}

/** A position as a person writes it, with or without its leading zeros; undefined for any other text. */
export const parsePosition = (text: string): EventStore.Position | undefined =>
  /^\d{1,16}$/.test(text) ? EventStore.position(text.padStart(WIDTH, "0")) : undefined
