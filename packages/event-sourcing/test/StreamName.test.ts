import fc from "fast-check"
import { expect, test } from "vitest"
import * as StreamName from "../src/StreamName.ts"

const categories = fc.string({ minLength: 1, maxLength: 20 }).filter((text) => !text.includes("-"))
const ids = fc.string({ minLength: 1, maxLength: 200 })

test("a name consists of its category and its id, for any id", () => {
  fc.assert(
    fc.property(categories, ids, (category, id) => {
      const name = StreamName.make(category, id)
      expect(name).toBe(`${category}-${id}`)
      expect(StreamName.isStreamName(name)).toBe(true)
      expect(StreamName.category(name)).toBe(category)
      expect(StreamName.id(name)).toBe(id)
    })
  )
})

test("two different pairs of category and id never have the same name", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("a", "ab", "b"),
      fc.stringMatching(/^[ab-]{1,4}$/),
      fc.constantFrom("a", "ab", "b"),
      fc.stringMatching(/^[ab-]{1,4}$/),
      (c1, i1, c2, i2) => {
        expect(StreamName.make(c1, i1) === StreamName.make(c2, i2)).toBe(c1 === c2 && i1 === i2)
      }
    )
  )
})

test("a text is a stream name exactly if its category and id make the same name", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 300 }), fc.stringMatching(/^[a-]{0,5}$/)), (text) => {
      const hyphen = text.indexOf("-")
      const remade = () => StreamName.make(text.slice(0, Math.max(0, hyphen)), text.slice(hyphen + 1))
      if (StreamName.isStreamName(text)) expect(remade()).toBe(text)
      else if (hyphen >= 0) expect(remade).toThrow()
    })
  )
})

test("an invalid category or id throws", () => {
  for (const [category, id] of [
    ["", "x"],
    ["till", ""],
    ["a-b", "x"],
    ["-", "x"]
  ] as const)
    expect(() => StreamName.make(category, id)).toThrow("Not a stream name")
})

test("a name that is longer than every store accepts throws", () => {
  const longest = "x".repeat(StreamName.MAX_LENGTH - "till-".length)
  expect(StreamName.isStreamName(StreamName.make("till", longest))).toBe(true)
  expect(() => StreamName.make("till", `${longest}x`)).toThrow("251 characters")
  expect(StreamName.isStreamName(`till-${longest}x`)).toBe(false)
})
