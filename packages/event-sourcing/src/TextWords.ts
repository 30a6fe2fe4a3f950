/** The words of a text, by the same rule for every text index, so that all of them find the same documents. */

/** The most characters of a word that count. */
const LONGEST = 64

/** A run of letters and digits. In scripts without spaces between words, each character is a word. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{N}])+/gu

/** In lower case, without accents, in their order. `Café №5` has the words `cafe`, `no5`. */
export const wordsOf = (text: string): ReadonlyArray<string> =>
  (
    text
      .toWellFormed()
      .toLowerCase()
      .normalize("NFKD")
      .replaceAll(/\p{M}+/gu, "")
      .toLowerCase()
      .match(WORD) ?? []
  ).map((word) => (word.length > LONGEST ? word.slice(0, LONGEST).toWellFormed().replaceAll("\ufffd", "") : word))

/** Each word once. */
export const distinctWordsOf = (text: string): ReadonlyArray<string> => [...new Set(wordsOf(text))]
