/**
 * What of a text is worth reading to a grammar checker. Harper compares words in time and memory quadratic to their length, and walks
 * runs of signs in quadratic time: some kilobytes of base64 exhaust its memory, a page of another script takes it a minute.
 */

/** A hundred characters without a space are no word; 32 signs or letters of another script in a row, spaces aside, no English. */
const NO_PROSE = /\S{100,}|[^\p{Script=Latin}\p{N}\s](?:\s*[^\p{Script=Latin}\p{N}\s]){31,}/gu

/** The text with all that is no prose made empty lines, in as many UTF-16 code units: what is left stands where it stood. */
export const proseOf = (text: string): string => text.replace(NO_PROSE, (run) => "\n".repeat(run.length))
