/**
 * The part of a text that a grammar checker can read. Harper needs time and memory quadratic to the length of a word, and time quadratic
 * to the length of a run of signs: some kilobytes of base64 exhaust its memory, a page of another script takes it a minute.
 */

/** A hundred characters without a space, or 32 signs or letters of another script in a row, spaces aside. */
const NO_PROSE = /\S{100,}|[^\p{Script=Latin}\p{N}\s](?:\s*[^\p{Script=Latin}\p{N}\s]){31,}/gu

/** The text with each run that is no English prose replaced by as many line feeds, so that the offsets of the rest stay. */
export const proseOf = (text: string): string => text.replace(NO_PROSE, (run) => "\n".repeat(run.length))
