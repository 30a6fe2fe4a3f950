/** Times in the log: ISO 8601 in UTC with milliseconds, 24 characters. */

/** A power of two. */
const KEPT = 64
const instants = new Float64Array(KEPT).fill(Number.NaN)
const texts: Array<string> = Array.from({ length: KEPT }, () => "")

/**
 * Formats milliseconds since 1970 as `2026-01-31T00:00:00.000Z`. Formatting costs more than hashing an event, and concurrent calls format
 * the same few times, so the last text of each slot is cached.
 *
 * @throws RangeError for a number that is not a valid time
 */
export const toIso = (millis: number): string => {
  const slot = millis & (KEPT - 1)
  const kept = texts[slot]
  if (instants[slot] === millis && kept !== undefined) return kept
  const text = new Date(millis).toISOString()
  instants[slot] = millis
  texts[slot] = text
  return text
}

/** The calendar repeats after 400 years. They are added because `Date.UTC` reads the years 0 to 99 as 1900 to 1999. */
const FOUR_CENTURIES = 146_097 * 86_400_000

/** The text that was parsed last, and its time: events in a row often have one time. */
let parsed = { text: "", time: Number.NaN }

/**
 * Parses the output of {@link toIso} for the years 0000 to 9999. Returns milliseconds since 1970, or NaN for any other text, even if
 * `Date.parse` accepts it. It reads the digits itself: every replay parses times, and `Date.parse` with a check is five times slower.
 */
export const fromIso = (text: string): number => {
  if (text !== parsed.text) parsed = { text, time: timeOf(text) }
  return parsed.time
}

const timeOf = (text: string): number => {
  const year = digits(text, 0, 4)
  const month = digits(text, 5, 7)
  const day = digits(text, 8, 10)
  const hour = digits(text, 11, 13)
  const minute = digits(text, 14, 16)
  const second = digits(text, 17, 19)
  const millis = digits(text, 20, 23)
  // Every comparison with NaN is false
  const isTime = isPunctuated(text) && day >= 1 && day <= daysOf(year, month) && hour < 24 && minute < 60 && second < 60
  return isTime ? Date.UTC(year + 400, month - 1, day, hour, minute, second, millis) - FOUR_CENTURIES : Number.NaN
}

const isPunctuated = (text: string): boolean =>
  text.length === 24 &&
  text[4] === "-" &&
  text[7] === "-" &&
  text[10] === "T" &&
  text[13] === ":" &&
  text[16] === ":" &&
  text[19] === "." &&
  text[23] === "Z"

/** Parses decimal digits; NaN for any other text. */
const digits = (text: string, start: number, end: number): number => {
  let number = 0
  for (let i = start; i < end; i++) {
    const digit = text.charCodeAt(i) - 48
    number = digit >= 0 && digit <= 9 ? number * 10 + digit : Number.NaN
  }
  return number
}

const DAYS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** The days of a month; 0 if `month` is not valid. */
const daysOf = (year: number, month: number): number => {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return month === 2 && isLeap ? 29 : (DAYS[month] ?? 0)
}
