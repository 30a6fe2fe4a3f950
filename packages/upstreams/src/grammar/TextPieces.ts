/** Texts in pieces of bounded length, so that the work on each is bounded. */

/** What ends at a place in a text. */
export type Boundary = "paragraph" | "sentence" | "word" | "character"

/** A part of a text and where it begins there, in UTF-16 code units. */
export interface TextPiece {
  readonly text: string
  readonly offset: number
  /** What ends where it begins, and what ends with it: a paragraph at both ends of the text. */
  readonly after: Boundary
  readonly ends: Boundary
}

/**
 * Cuts a text into pieces of at most `limit` UTF-16 code units, at least 2, that together are the text: after the last paragraph that
 * fits, else the last sentence, the last word, or the last character. Takes time linear to the text.
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

/** A sentence ends with its sign where no small letter follows, a paragraph with an empty line. Many blanks are words of their own. */
const wordsOf = function* (text: string): Generator<Word> {
  for (const { 0: found, 1: word = "", 2: blanks = "", index } of text.matchAll(/(\S*)(\s{0,16})/gu)) {
    const end = index + found.length
    const isSentence = SENTENCE_END.test(word) && !/^\p{Ll}/u.test(text.slice(end, end + 2))
    yield { end, ends: blanks.split("\n").length > 2 ? "paragraph" : isSentence ? "sentence" : "word" }
  }
}

/** The place, or the one before it where that lies within a surrogate pair. */
const betweenCharacters = (text: string, place: number): number =>
  /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(place - 1, place + 1)) ? place - 1 : place
