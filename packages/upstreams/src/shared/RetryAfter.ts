/** The header `Retry-After`: seconds, or a date (RFC 9110, 10.2.3). */

/** The milliseconds to wait from now on, at least 0; undefined if the header is missing or neither. */
export const millisOf = (header: string | ReadonlyArray<string> | undefined, now: number): number | undefined => {
  if (typeof header !== "string") return undefined
  if (/^\d{1,9}$/u.test(header)) return Number(header) * 1_000
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
