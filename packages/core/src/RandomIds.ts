/**
 * ULIDs and UUIDs from the system's generator. Each is written into bytes and read as one text: a text that is joined from its parts takes
 * ten times the memory, until somebody reads it whole.
 */
import { randomFillSync } from "node:crypto"

/** Fills bytes at random. */
export type Fill = (bytes: Uint8Array) => void

/** Random bytes, read 4,096 at a time: single reads would cost more than the rest of an id. */
const bufferedRandom = (fill: Fill): (() => number) => {
  const bytes = new Uint8Array(4_096)
  let used = bytes.length
  return () => {
    if (used === bytes.length) {
      fill(bytes)
      used = 0
    }
    return bytes[used++] ?? 0
  }
}

/** The codes of texts of one character. */
const codes = (texts: Iterable<string>): Uint8Array => Uint8Array.from(texts, (text) => text.charCodeAt(0))

// ULIDs: https://github.com/ulid/spec

const BASE32 = codes("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
const TIME_DIGITS = 10
const DIGITS = 26

/** ULIDs for times in milliseconds since 1970. Each is greater than all before it, also where time stands still or goes back. */
export const ulids = (fill: Fill = randomFillSync): ((now: number) => string) => {
  const random = bufferedRandom(fill)
  const digits = new Uint8Array(DIGITS)
  const text = Buffer.alloc(DIGITS)
  let last = Number.NEGATIVE_INFINITY

  const set = (place: number, digit: number): void => {
    digits[place] = digit
    text[place] = BASE32[digit] ?? 0
  }
  const begin = (now: number): void => {
    let rest = now
    for (let place = TIME_DIGITS - 1; place >= 0; place--) {
      set(place, rest % 32)
      rest = Math.floor(rest / 32)
    }
    for (let place = TIME_DIGITS; place < DIGITS; place++) set(place, random() % 32)
  }
  /** The next ULID of a millisecond is the last one plus one. */
  const increment = (): void => {
    let place = DIGITS - 1
    for (; place > 0 && digits[place] === 31; place--) set(place, 0)
    set(place, (digits[place] ?? 0) + 1)
  }

  return (now) => {
    if (now > last) begin(now)
    else increment()
    last = Math.max(last, now)
    return text.toString("latin1")
  }
}

// UUIDs: RFC 9562

const HEX = codes("0123456789abcdef")
const UUID = "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx"
/** Where the digits of each byte stand. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const
/** The bytes that begin with the version, 4, and with the variant, 8 to b. */
const [VERSION, VARIANT] = [14, 19]

/** Random UUIDs, of version 4. */
export const uuids = (fill: Fill = randomFillSync): (() => string) => {
  const random = bufferedRandom(fill)
  const text = Buffer.from(UUID)
  return () => {
    for (const place of PLACES) {
      const byte = random()
      const upper = place === VERSION ? 4 : place === VARIANT ? 8 + ((byte >> 4) & 3) : byte >> 4
      text[place] = HEX[upper] ?? 0
      text[place + 1] = HEX[byte & 15] ?? 0
    }
    return text.toString("latin1")
  }
}
