/** Generates the ids of events. A simulation provides its own generator. */

import { randomBytes } from "node:crypto"
import { Context } from "effect"

/** A new id, given the time in milliseconds since 1970. */
export type EventIds = (now: number) => string

/** The numbers of three hexadecimal digits, as text: formatting the whole counter for each id costs five times as much. */
const DIGITS = Array.from({ length: 0x1000 }, (_, number) => number.toString(16).padStart(3, "0"))

/** The range of the counter without its last three digits. The lowest number has nine digits, so none needs padding. */
const FIRST = 0x1_0000_0000
const LAST = 0xf_ffff_ffff

/** UUIDs of version 7 (RFC 9562): the time, random bits of this process, and a counter, so that they sort in the order they were made. */
export const uuidv7 = (random: Uint8Array = randomBytes(9)): EventIds => {
  const bits = Buffer.from(random).toString("hex")
  const middle = `-7${bits.slice(0, 3)}-8${bits.slice(3, 6)}-`
  let upper = FIRST + Number.parseInt(bits.slice(6, 14), 16)
  let lower = Number.parseInt(bits.slice(14, 17), 16)
  let at = -1
  let prefix = ""
  return (now) => {
    lower = (lower + 1) % DIGITS.length
    if (lower === 0) upper = upper < LAST ? upper + 1 : FIRST
    if (lower === 0 || now !== at) {
      at = now
      const hex = Math.max(0, now).toString(16).padStart(12, "0")
      prefix = `${hex.slice(0, 8)}-${hex.slice(8)}${middle}${upper.toString(16)}`
    }
    return prefix + DIGITS[lower]
  }
}

export const EventIds = Context.Reference<EventIds>("@millrace/event-sourcing/EventIds", { defaultValue: () => uuidv7() })
