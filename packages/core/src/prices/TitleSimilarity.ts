/** How alike two names of products are. It says nothing about whether they are the same product. */
import { wordsOf } from "@millrace/event-sourcing"

/** The distinct words of a name, in lower case and without accents. */
export type Words = ReadonlySet<string>

export const wordsIn = (name: string): Words => new Set(wordsOf(name))

/**
 * The Sørensen–Dice coefficient of their distinct words: `2 × |A ∩ B| / (|A| + |B|)`, from 0 to 1.
 *
 * - It is 1 exactly if both have the same words, in any order and however often, and 0 if they share none, or one of them has no words.
 * - It is symmetric.
 * - A word that both have never lowers it, and a word that only one of them has never raises it.
 *
 * T. Sørensen, "A method of establishing groups of equal amplitude in plant sociology" (1948); L. R. Dice, "Measures of the amount of
 * ecologic association between species" (1945).
 */
export const ofWords = (a: Words, b: Words): number => {
  const common = [...a].filter((word) => b.has(word)).length
  return common === 0 ? 0 : (2 * common) / (a.size + b.size)
}

/** {@link ofWords} of the words of two names. */
export const similarity = (a: string, b: string): number => ofWords(wordsIn(a), wordsIn(b))
