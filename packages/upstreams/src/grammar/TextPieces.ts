/** Prepares texts for a grammar checker: removes runs that it cannot process, and splits the rest into pieces of limited length. */

/**
 * A hundred characters without a space, or 32 consecutive signs or letters of another script, ignoring spaces. Harper needs time and memory
 * quadratic in the length of a word, and time quadratic in the length of a run of signs: some kilobytes of base64 exhaust its memory, and a
 * page of another script takes a minute.
 */
const NO_PROSE = /\S{100,}|[^\p{Script=Latin}\p{N}\s](?:\s*[^\p{Script=Latin}\p{N}\s]){31,}/gu

/** Replaces each run that is not English prose by as many line feeds, so that other offsets stay. */
export const proseOf = (text: string): string => text.replace(NO_PROSE, (run) => "\n".repeat(run.length))

/** What ends at a position of a text. */
export type Boundary = "paragraph" | "sentence" | "word" | "character"

/** A part of a text, and its offset in the text in UTF-16 code units. */
export interface TextPiece {
  readonly text: string
  readonly offset: number
  /** What ends at its start and at its end. At both ends of the text, a paragraph ends. */
  readonly after: Boundary
  readonly ends: Boundary
}

/**
 * Splits a text into pieces of at most `limit` (at least 2) UTF-16 code units. Joined, they are the text. It splits after the last
 * paragraph that fits, else after the last sentence, word or character. Linear in the text.
 */
export const textPieces = (text: string, limit: number): ReadonlyArray<TextPiece> => {
  const pieces: Array<TextPiece> = []
  const last: Record<Boundary, number> = { paragraph: 0, sentence: 0, word: 0, character: 0 }
  let offset = 0
  let after: Boundary = "paragraph"
  const cut = (ends: Boundary) => {
    pieces.push({ text: text.slice(offset, last[ends]), offset, after, ends })
    offset = last[ends]
    after = ends
  }
  for (const { end, ends } of wordsOf(text)) {
    while (end - offset > limit) {
      last.character = betweenCharacters(text, offset + limit)
      cut(BOUNDARIES.find((boundary) => last[boundary] > offset) ?? "character")
    }
    last.word = end
    last[ends] = end
  }
  last.paragraph = text.length
  if (offset < text.length) cut("paragraph")
  return pieces
}

const BOUNDARIES: ReadonlyArray<Boundary> = ["paragraph", "sentence", "word", "character"]

interface Word {
  /** After the blanks that follow it. */
  readonly end: number
  readonly ends: Boundary
}

const SENTENCE_END = /[.!?…]["'’”)\]]*$/u

/** A sentence ends with its punctuation unless a small letter follows, a paragraph with an empty line. Long blanks are separate words. */
const wordsOf = function* (text: string): Generator<Word> {
  for (const { 0: found, 1: word = "", 2: blanks = "", index } of text.matchAll(/(\S*)(\s{0,16})/gu)) {
    const end = index + found.length
    const isSentence = SENTENCE_END.test(word) && !/^\p{Ll}/u.test(text.slice(end, end + 2))
    yield { end, ends: blanks.split("\n").length > 2 ? "paragraph" : isSentence ? "sentence" : "word" }
  }
}

/** The position, or the one before it if it lies within a surrogate pair. */
const betweenCharacters = (text: string, place: number): number =>
  /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(place - 1, place + 1)) ? place - 1 : place
