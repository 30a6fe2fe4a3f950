/** What a caller would like, and need not get: `Prefer: wait=20`. RFC 7240. */

/** Seconds that an answer may wait for the end of a job: less than connections may be silent. */
export const LONGEST_WAIT = 150

const WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(?<seconds>\d{1,9})"?\s*(?=$|[,;])/iu

/** Seconds to wait, no more than what is done; undefined where the caller asks for none. */
export const waitOf = (header: string | undefined): number | undefined => {
  const seconds = WAIT.exec(header ?? "")?.groups?.["seconds"]
  return seconds === undefined ? undefined : Math.min(Number(seconds), LONGEST_WAIT)
}
