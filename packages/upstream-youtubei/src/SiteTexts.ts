/** Numbers, ages and days from the site's English texts. What a text does not tell is null, never a guess. */

const FACTORS: Readonly<Record<string, number>> = { K: 1e3, M: 1e6, B: 1e9 }

/** `1,234 views`, `1.2M views` (rounded by the site), `No views`. */
export const countOf = (text: string | null | undefined): number | null => {
  if (/^no\b/iu.test(text ?? "")) return 0
  const found = /^\s*(\d{1,15}(?:,\d{3})*(?:\.\d+)?)\s?([KMB])?\b/u.exec(text ?? "")
  if (found === null) return null
  const [, digits = "", unit = ""] = found
  return Math.round(Number(digits.replaceAll(",", "")) * (FACTORS[unit] ?? 1))
}

const SECOND = 1_000
const DAY = 86_400 * SECOND
const UNITS: Readonly<Record<string, number>> = {
  second: SECOND,
  minute: 60 * SECOND,
  hour: 3_600 * SECOND,
  day: DAY,
  week: 7 * DAY,
  month: 30 * DAY,
  year: 365 * DAY
}

/** `3 years ago`, `Streamed 2 weeks ago`: milliseconds, at least, as the site rounds down. */
export const ageOf = (text: string | null | undefined): number | null => {
  const found = /\b(\d{1,4}) (second|minute|hour|day|week|month|year)s? ago\b/u.exec(text ?? "")
  return found === null ? null : Number(found[1]) * (UNITS[found[2] ?? ""] ?? 0)
}

/** `1:02:03`, `4:05`: seconds. */
export const secondsOf = (text: string | null | undefined): number | null =>
  /^\d{1,3}(?::\d{2}){1,2}$/u.test(text ?? "") ? (text ?? "").split(":").reduce((total, part) => total * 60 + Number(part), 0) : null

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/** `Joined Aug 23, 2007`: `2007-08-23`. */
export const dayOf = (text: string | null | undefined): string | null => {
  const found = /\b([A-Z][a-z]{2}) (\d{1,2}), (\d{4})$/u.exec(text ?? "")
  const month = MONTHS.indexOf(found?.[1] ?? "") + 1
  return found === null || month === 0 ? null : `${found[3]}-${String(month).padStart(2, "0")}-${found[2]?.padStart(2, "0")}`
}

/** A time with its zone becomes one of UTC; a day stays a day. */
export const timeOf = (text: string | null | undefined): string | null => {
  if (text === null || text === undefined || Number.isNaN(Date.parse(text))) return null
  return /^\d{4}-\d{2}-\d{2}$/u.test(text) ? text : new Date(text).toISOString()
}

const countryNames = new Intl.DisplayNames("en", { type: "region", fallback: "none" })
let codes: ReadonlyMap<string, string> | undefined

/** `United States`: `US`, by the names of Unicode's CLDR, which the site has too. */
export const countryOf = (name: string | null | undefined): string | null => {
  codes ??= new Map(CODES.flatMap((code) => [[countryNames.of(code) ?? code, code] as const]))
  return codes.get(name ?? "") ?? null
}

const LETTERS = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
/** Deprecated and reserved codes have the names of others, so the first of a name stands. */
const CODES = LETTERS.flatMap((first) => LETTERS.map((second) => first + second))
  .filter((code) => countryNames.of(code) !== undefined && new Intl.Locale(`und-${code}`).region === code)
  .toReversed()
