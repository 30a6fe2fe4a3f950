/** Removes what a caller sent from the reason of a failure, so that it can be logged. */

/** Shorter texts are not removed: they occur in ordinary words. */
const SHORTEST = 4
const LONGEST_REASON = 500
const URL = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>]+/giu

/** The text in one line of at most 500 characters, without texts of the input and without queries and credentials of URLs. */
export const redact = (text: string, input: unknown): string => {
  let redacted = text.replaceAll(/\s+/gu, " ").replaceAll(URL, (url) => url.replace(/\/\/[^/@]*@/u, "//").replace(/[?#].*$/u, ""))
  for (const secret of [...new Set(textsOf(input))].sort((a, b) => b.length - a.length))
    redacted = redacted.replaceAll(new RegExp(escape(secret), "giu"), "[input]")
  return redacted.length > LONGEST_REASON ? `${redacted.slice(0, LONGEST_REASON)}...` : redacted
}

/** Texts of the input that are long enough; of an e-mail address also its two parts. */
const textsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value, ...(value.includes("@") ? value.split("@") : [])].filter(({ length }) => length >= SHORTEST)
  if (typeof value !== "object" || value === null) return []
  return Object.values(value).flatMap(textsOf)
}

const escape = (text: string): string => text.slice(0, 1_000).replaceAll(/[\\^$.*+?()[\]{}|]/gu, "\\$&")
