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

/**
 * Parses the output of {@link toIso} for the years 0000 to 9999. Returns milliseconds since 1970, or NaN for any other text, even if
 * `Date.parse` accepts it. It reads the digits and counts the days itself: every replay parses times, and `Date.parse` with a check takes ten
 * times as long.
 */
export const fromIso = (text: string): number => {
  if (!isPunctuated(text)) return Number.NaN
  const year = 100 * twoDigits(text, 0) + twoDigits(text, 2)
  const month = twoDigits(text, 5)
  const day = twoDigits(text, 8)
  const hour = twoDigits(text, 11)
  const minute = twoDigits(text, 14)
  const second = twoDigits(text, 17)
  const millis = 10 * twoDigits(text, 20) + digit(text, 22)
  const isDay = year >= 0 && day >= 1 && day <= daysOf(year, month)
  const isTime = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60 && millis >= 0
  if (!isDay || !isTime) return Number.NaN
  return (daysTo(year, month) + day - 1) * 86_400_000 + ((hour * 60 + minute) * 60 + second) * 1000 + millis
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

/** A sum with it is less than zero, whatever the other digits. Unlike NaN, it is no double. */
const NO_DIGIT = -10_000

const digit = (text: string, at: number): number => {
  const digit = text.charCodeAt(at) - 48
  return digit >= 0 && digit <= 9 ? digit : NO_DIGIT
}

const twoDigits = (text: string, at: number): number => 10 * digit(text, at) + digit(text, at + 1)

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

const DAYS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** The days of a month; 0 if `month` is not valid. */
const daysOf = (year: number, month: number): number => (month === 2 && isLeap(year) ? 29 : (DAYS[month] ?? 0))

/** The days of a year before each month, without a leap day. */
const DAYS_BEFORE = DAYS.map((_, month) => DAYS.slice(0, month).reduce((sum, days) => sum + days, 0))

/** The days from the year 0 to a year. */
const daysToYear = (year: number): number => 365 * year + Math.ceil(year / 4) - Math.ceil(year / 100) + Math.ceil(year / 400)

const EPOCH = daysToYear(1970)

/** The days from 1970 to the beginning of a month. */
const daysTo = (year: number, month: number): number =>
  daysToYear(year) - EPOCH + (DAYS_BEFORE[month] ?? 0) + (month > 2 && isLeap(year) ? 1 : 0)
