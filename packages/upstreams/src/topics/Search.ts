/** Search over topics, by words. */

/** A category and its templates: whole prompts, to be used once their placeholders are filled in. */
export interface Topic {
  readonly category: string
  readonly templates: ReadonlyArray<string>
}

/** Runs of letters, their marks, and digits. */
const WORD = /[\p{L}\p{M}\p{N}]+/gu

/** The words of a text, however they are spelt: without case, and with one form for each letter (Unicode NFKC). */
const wordsOf = (text: string): ReadonlyArray<string> => text.normalize("NFKC").toLowerCase().match(WORD) ?? []

/** A text in which a word begins wherever the text has one that begins so. */
const indexed = (text: string): string => ` ${wordsOf(text).join(" ")}`

/**
 * Makes a search over these topics. It answers the templates for which every word of the query begins a word of the template or of its
 * category, by category, in their order; all of them where the query has no word. Takes time linear to the text of all topics.
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
