/** Sanitizes a text for espeak-ng, which treats some characters as commands. */

/** Control characters begin commands, private-use characters stand for sounds, and unassigned ones have no sound. */
const SILENT = /[^\P{C}\p{Cf}\n]/gu

/** Soft hyphens, direction marks and the like. The joiners stay, because they change the sound in some scripts. */
const INVISIBLE = /[^\P{Cf}\u200c\u200d]/gu

/** Two brackets begin a list of phonemes. */
const BRACKET = /\[(?=\[)/gu

/** The text without lone surrogates, control characters and the like. Nothing in it is a command. */
export const spokenTextOf = (text: string): string =>
  text.toWellFormed().normalize("NFC").replace(INVISIBLE, "").replace(SILENT, " ").replace(BRACKET, "[ ")
