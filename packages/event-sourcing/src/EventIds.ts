/** Generates the ids of events. A simulation provides its own generator. */

import { randomBytes } from "node:crypto"
import { Context } from "effect"

/** A new id, given the time in milliseconds since 1970. */
export type EventIds = (now: number) => string

/** The lowest number with twelve hexadecimal digits. So no id needs padding, which would double its cost. */
const FIRST = 0x1000_0000_0000

/** UUIDs of version 7 (RFC 9562): the time, random bits of this process, and a counter, so that they sort in the order they were made. */
export const uuidv7 = (random: Uint8Array = randomBytes(9)): EventIds => {
  const bits = Buffer.from(random).toString("hex")
  const middle = `-7${bits.slice(0, 3)}-8${bits.slice(3, 6)}-`
  let counter = FIRST + Number.parseInt(bits.slice(6, 17), 16)
  let at = -1
  let prefix = ""
  return (now) => {
    if (now !== at) {
      at = now
      const hex = Math.max(0, now).toString(16).padStart(12, "0")
      prefix = `${hex.slice(0, 8)}-${hex.slice(8)}${middle}`
    }
    counter = counter < 0xffff_ffff_ffff ? counter + 1 : FIRST
    return prefix + counter.toString(16)
  }
}

export const EventIds = Context.Reference<EventIds>("@millrace/event-sourcing/EventIds", { defaultValue: () => uuidv7() })
