/** Search over topics, by words. */
import type { Topic } from "./Topic.ts"

/** Runs of letters, their marks, and digits. */
const WORD = /[\p{L}\p{M}\p{N}]+/gu

/** The words of a text, however they are spelt: without case, and with one form for each letter (Unicode NFKC). */
const wordsOf = (text: string): ReadonlyArray<string> => text.normalize("NFKC").toLowerCase().match(WORD) ?? []

/** A text in which a word begins wherever the text has one that begins so. */
const indexed = (text: string): string => ` ${wordsOf(text).join(" ")}`

/**
 * What there is to find among these topics, made once. A template is found when every word of the query begins a word of it or of its
 * category, so a category that has all of them gives all its templates. A query without a word finds everything. Topics and templates
 * keep their order. Takes time in proportion to the text of all topics.
 */
export const over = (topics: ReadonlyArray<Topic>): ((query: string) => ReadonlyArray<Topic>) => {
  const entries = topics.map(({ category, templates }) => ({
    category,
    index: indexed(category),
    templates: templates.map((template) => ({ template, index: indexed(template) }))
  }))
  return (query) => {
    const beginnings = [...new Set(wordsOf(query))].map((word) => ` ${word}`)
    return entries.flatMap(({ category, index, templates }) => {
      const missing = beginnings.filter((beginning) => !index.includes(beginning))
      const found = templates.filter((template) => missing.every((beginning) => template.index.includes(beginning)))
      return found.length === 0 ? [] : [{ category, templates: found.map(({ template }) => template) }]
    })
  }
}
