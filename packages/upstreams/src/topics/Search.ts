/** Search over topics, by words. */

/** A category and its templates: whole prompts with placeholders. */
export interface Topic {
  readonly category: string
  readonly templates: ReadonlyArray<string>
}

/** Runs of letters, their marks, and digits. */
const WORD = /[\p{L}\p{M}\p{N}]+/gu

/** The words of a text in one spelling: lower case, Unicode NFKC. */
const wordsOf = (text: string): ReadonlyArray<string> => text.normalize("NFKC").toLowerCase().match(WORD) ?? []

/** A searchable form of a text: its words, each after a separator, so that a prefix can be found by substring search. */
const indexed = (text: string): string => ` ${wordsOf(text).join(" ")}`

/**
 * Makes a search over topics. It returns templates by category for which every word of the query is a prefix of a word in the template or
 * its category, or all if the query has no word. Linear in the text of all topics.
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
