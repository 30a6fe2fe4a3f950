import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { TOPICS as library } from "../../src/topics/BundledTopicLibrary.ts"
import * as Search from "../../src/topics/Search.ts"

const search = Search.over(library)

/** Words as a reader tells them: written anew, so that the search is not judged by itself. */
const words = (text: string): ReadonlyArray<string> =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .filter((word) => word !== "")

const begins = (text: string, word: string): boolean => words(text).some((other) => other.startsWith(word))

const ownWords = [...new Set(library.flatMap(({ category, templates }) => [category, ...templates].flatMap(words)))]
const ownWord = fc.constantFrom(...ownWords)
/** The whole of a word that is there, or its beginning; sometimes a word that may be nowhere. */
const word = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(ownWord, fc.integer({ min: 1, max: 12 })).map(([word, length]) => word.slice(0, length)) },
  { weight: 1, arbitrary: fc.stringMatching(/^[a-z0-9]{1,6}$/u) }
)
const query = fc.oneof(
  { weight: 5, arbitrary: fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join(" ")) },
  { weight: 1, arbitrary: fc.string({ unit: "grapheme", maxLength: 100 }) }
)

const check = (property: (query: string) => void): void => fc.assert(fc.property(query, property), { seed: 1, numRuns: 500 })

/** Each template by its category and itself. */
const flat = (topics: ReadonlyArray<Search.Topic>): ReadonlyArray<string> =>
  topics.flatMap(({ category, templates }) => templates.map((template) => `${category}\n${template}`))

describe("a search", () => {
  test("finds the templates that have every word, in themselves or in their category, in order", () => {
    check((query) => {
      const expected = flat(library).filter((text) => words(query).every((word) => begins(text, word)))
      expect(flat(search(query))).toEqual(expected)
    })
  })

  test("returns no category without a template", () => {
    check((query) => {
      for (const { templates } of search(query)) expect(templates.length).toBeGreaterThan(0)
    })
  })

  test("finds the same again in its result", () => {
    check((query) => {
      const found = search(query)
      expect(Search.over(found)(query)).toEqual(found)
    })
  })

  test("finds no more with one more word, and the same in any order, case and spelling", () => {
    fc.assert(
      fc.property(fc.array(ownWord, { minLength: 1, maxLength: 4 }), ownWord, (words, more) => {
        const found = search(words.join(" "))
        expect(flat(found)).toEqual(expect.arrayContaining([...flat(search([...words, more].join(" ")))]))
        expect(search(words.toReversed().join("  ,\t").toUpperCase())).toEqual(found)
        // Full-width letters are the same letters to Unicode
        const wide = words.join(" ").replaceAll(/[!-~]/gu, (character) => String.fromCodePoint((character.codePointAt(0) ?? 0) + 0xfee0))
        expect(search(wide)).toEqual(found)
      }),
      { seed: 1, numRuns: 200 }
    )
  })

  test("finds all templates of a named category", () => {
    for (const topic of library) expect(search(topic.category)).toContainEqual(topic)
  })

  test("finds all without words", () => {
    for (const nothing of ["", " ", "\t\n", "\u00a0\u3000", "?!", "{}"]) expect(search(nothing)).toEqual(library)
  })

  test("finds nothing if no template has the words", () => {
    for (const absent of ["qwxz", "haiku qwxz", "0000", "тема", "😀 zzz"]) expect(search(absent)).toEqual([])
  })

  test("matches the beginning of words only", () => {
    expect(search("haiku").map(({ templates }) => templates.length)).toEqual([1])
    expect(search("aiku")).toEqual([])
    expect(search("hai")).toEqual(expect.arrayContaining([...search("haiku")]))
  })

  test("matches both spellings of a letter, and other languages", () => {
    const find = Search.over([{ category: "Café", templates: ["Ein Märchen über {topic}.", "हिन्दी में {topic}"] }])
    for (const query of ["cafe\u0301", "CAFÉ", "märchen", "Ma\u0308rchen"]) expect(find(query)).not.toEqual([])
    expect(find("हिन्दी").flatMap(({ templates }) => templates)).toEqual(["हिन्दी में {topic}"])
    expect(find("cafe ")).toEqual([])
  })
})
