/** A text as espeak-ng may be given it, which reads more into some characters than what they say. */

/** Control characters begin its commands, and those for private use stand for sounds of its own; unassigned ones say nothing. */
const SILENT = /[^\P{C}\p{Cf}\n]/gu

/** Soft hyphens, marks of direction and the like. The joiners stay: in some scripts they change what is read. */
const INVISIBLE = /[^\P{Cf}\u200c\u200d]/gu

/** Two brackets begin phonemes. */
const BRACKET = /\[(?=\[)/gu

/** What is spoken of a text: lone surrogates, control characters and the like are not, and nothing in it is a command. */
export const spokenTextOf = (text: string): string =>
  text.toWellFormed().normalize("NFC").replace(INVISIBLE, "").replace(SILENT, " ").replace(BRACKET, "[ ")
