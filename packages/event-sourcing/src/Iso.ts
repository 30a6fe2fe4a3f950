/** Instants as the log spells them: ISO 8601 in UTC with milliseconds, 24 characters. */

/** A power of two. */
const KEPT = 64
const instants = new Float64Array(KEPT).fill(Number.NaN)
const texts: Array<string> = Array.from({ length: KEPT }, () => "")

/**
 * `2026-01-31T00:00:00.000Z` for milliseconds since 1970. The calls of one moment ask for the same few instants, and spelling one
 * costs more than hashing an event: the last of each slot is kept.
 *
 * @throws RangeError for what is no instant
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
