/**
 * Removes text that a grammar checker cannot process. Harper needs time and memory quadratic in the length of a word, and time quadratic in
 * the length of a run of signs: some kilobytes of base64 exhaust its memory, and a page of another script takes a minute.
 */

/** A hundred characters without a space, or 32 consecutive signs or letters of another script, ignoring spaces. */
const NO_PROSE = /\S{100,}|[^\p{Script=Latin}\p{N}\s](?:\s*[^\p{Script=Latin}\p{N}\s]){31,}/gu

/** Replaces each run that is not English prose by as many line feeds, so that other offsets stay. */
export const proseOf = (text: string): string => text.replace(NO_PROSE, (run) => "\n".repeat(run.length))
