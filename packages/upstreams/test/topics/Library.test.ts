import { describe, expect, test } from "vitest"
import { TOPICS as library, PLACEHOLDERS } from "../../src/topics/BundledTopicLibrary.ts"

const templates = library.flatMap((topic) => topic.templates)

const placeholdersOf = (template: string): ReadonlyArray<string> => [...template.matchAll(/\{([^{}]*)\}/gu)].map(([, name = ""]) => name)

/** The words of a template that are its own. */
const wordsOf = (template: string): ReadonlySet<string> =>
  new Set(
    template
      .replaceAll(/\{\w+\}/gu, "")
      .toLowerCase()
      .match(/[a-z]+/gu)
  )

/** Of the words of two templates, how many are in both: 0 none, 1 all. */
const likeness = (a: ReadonlySet<string>, b: ReadonlySet<string>): number => {
  const shared = [...a].filter((word) => b.has(word)).length
  return shared / (a.size + b.size - shared)
}

describe("the bundled library", () => {
  test("has categories with unique names, each with templates", () => {
    expect(library.length).toBeGreaterThanOrEqual(48)
    expect(new Set(library.map(({ category }) => category.toLowerCase())).size).toBe(library.length)
    for (const { category, templates } of library) {
      expect(templates.length, category).toBeGreaterThanOrEqual(8)
      expect(category).toMatch(/^[A-Z][A-Za-z, -]{2,39}$/u)
    }
  })

  test("has no duplicates and no formulaic templates", () => {
    const all = templates.map((template) => ({ template, words: wordsOf(template) }))
    const alike = all.flatMap((one, i) =>
      all.slice(i + 1).flatMap((other) => (likeness(one.words, other.words) > 0.45 ? [[one.template, other.template]] : []))
    )
    expect(alike).toEqual([])
    // Nor do many begin alike
    const openings = Map.groupBy(templates, (template) => template.split(" ", 3).join(" "))
    for (const [opening, among] of openings) expect(among.length, opening).toBeLessThanOrEqual(3)
  })

  test("has whole sentences on one line, or ends with pasted text", () => {
    for (const template of templates) {
      expect(template).toMatch(/^(?:[A-Z]|\{)[ -~]{30,199}$/u)
      expect(template).toMatch(/(?:[.?]|[:.?] \{(?:text|code|data)\})$/u)
      expect(template).not.toMatch(/ {2}| [,.;:?]|\b(\w+) \1\b/u)
    }
  })

  test("describes and uses each placeholder, at most four in a template", () => {
    const used = templates.map(placeholdersOf)
    expect([...new Set(used.flat())].sort()).toEqual(Object.keys(PLACEHOLDERS).sort())
    for (const [i, names] of used.entries()) {
      expect(names.length, templates[i]).toBeLessThanOrEqual(4)
      // Two things of one name could not be told apart
      expect(new Set(names).size, templates[i]).toBe(names.length)
      expect(templates[i]?.replaceAll(/\{\w+\}/gu, "")).not.toMatch(/[{}]/u)
    }
    for (const { category, templates } of library) {
      expect(templates.filter((template) => placeholdersOf(template).length > 0).length, category).toBeGreaterThanOrEqual(5)
    }
  })
})
