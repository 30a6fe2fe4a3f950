/** The `Prefer: wait=20` header, by which a caller asks to wait for the end of a job. RFC 7240. */

/** The longest wait for the end of a job in seconds: shorter than the idle timeout of connections. */
export const LONGEST_WAIT = 150

const WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(?<seconds>\d{1,9})"?\s*(?=$|[,;])/iu

/** The seconds to wait, at most {@link LONGEST_WAIT}; undefined where the caller does not ask to wait. */
export const waitOf = (header: string | undefined): number | undefined => {
  const seconds = WAIT.exec(header ?? "")?.groups?.["seconds"]
  return seconds === undefined ? undefined : Math.min(Number(seconds), LONGEST_WAIT)
}
