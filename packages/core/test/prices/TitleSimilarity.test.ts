/** How alike two names are: properties of the score, and examples worked by hand. */
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { similarity } from "../../src/prices/TitleSimilarity.ts"

const word = fc.constantFrom("blue", "mug", "stoneware", "Café", "12", "oz", "茶")
const words = fc.array(word, { maxLength: 8 })
const name = (of: ReadonlyArray<string>) => of.join(" ")
const canonical = (of: ReadonlyArray<string>) => [...new Set(of)].toSorted()

const all = <Ts extends [unknown, ...Array<unknown>]>(...given: [...{ [I in keyof Ts]: fc.Arbitrary<Ts[I]> }, (...values: Ts) => void]) => {
  const holds = given.pop() as (...values: Ts) => void
  fc.assert(fc.property(...(given as { [I in keyof Ts]: fc.Arbitrary<Ts[I]> }), (...values) => holds(...values)))
}

describe("the similarity of two names", () => {
  test("is from 0 to 1, and symmetric, for any text", () =>
    all(fc.string({ unit: "binary", maxLength: 20 }), fc.string({ unit: "binary", maxLength: 20 }), (a, b) => {
      expect(similarity(a, b)).toBeGreaterThanOrEqual(0)
      expect(similarity(a, b)).toBeLessThanOrEqual(1)
      expect(similarity(a, b)).toBe(similarity(b, a))
    }))

  test("is 1 exactly for the same words, in any order and however often; and 0 exactly for names that share none", () =>
    all(words, words, (a, b) => {
      expect(similarity(name(a), name(b)) === 1).toBe(a.length > 0 && String(canonical(a)) === String(canonical(b)))
      expect(similarity(name(a), name(b)) === 0).toBe(!a.some((each) => b.includes(each)))
      expect(similarity(name(a.toReversed()), name([...b, ...b]))).toBe(similarity(name(a), name(b)))
    }))

  test("never falls by a further word in common, and never rises by a word that only one has", () =>
    all(words, words, word, (a, b, further) => {
      const before = similarity(name(a), name(b))
      expect(similarity(name([...a, further]), name([...b, further]))).toBeGreaterThanOrEqual(before)
      expect(similarity(name(a), name([...b, ...a.slice(0, 1)]))).toBeGreaterThanOrEqual(before)
      expect(similarity(name(a), name([...b, "other"]))).toBeLessThanOrEqual(before)
    }))

  test.each([
    ["Stoneware mug, blue", "MUG – Blue", 0.8],
    ["mug", "mug mug", 1],
    ["mug", "mugs", 0],
    ["cafe creme", "Café au lait", 0.4],
    ["", "", 0],
    ["!", "!", 0]
  ])("of %j and %j is %f", (a, b, score) => expect(similarity(a, b)).toBe(score))
})
