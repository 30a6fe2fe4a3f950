import { EventStore } from "@millrace/event-sourcing"
import fc from "fast-check"
import { expect, it } from "vitest"
import { parsePosition, placeOf, textOf } from "../src/Position.ts"

const commit = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })

it("positions sort as text in log order, and all of them after the start", () =>
  fc.assert(
    fc.property(commit, commit, (a, b) => {
      const [one, two] = [textOf({ commit: a, prepare: a }), textOf({ commit: b, prepare: b })]
      expect(one < two).toBe(a < b)
      expect(one > EventStore.start).toBe(true)
    })
  ))

it("a position depends only on the commit position, and converts back to it", () =>
  fc.assert(
    fc.property(commit, commit, (at, prepare) => {
      const text = textOf({ commit: at, prepare })
      expect(text).toBe(textOf({ commit: at, prepare: at }))
      expect(placeOf(text)).toEqual({ commit: at, prepare: at })
    })
  ))

it("a position is parsed with or without its leading zeros", () =>
  fc.assert(
    fc.property(commit, (at) => {
      const text = textOf({ commit: at, prepare: at })
      expect([parsePosition(text), parsePosition(`${at}`)]).toEqual([text, text])
      expect([parsePosition(`-${at}`), parsePosition(`${text}0`), parsePosition(""), parsePosition("1e3")]).toEqual(
        Array(4).fill(undefined)
      )
    })
  ))

it("a position of another format is refused", () => {
  expect(placeOf(EventStore.start)).toBeUndefined()
  for (const text of ["1", "0".repeat(16), "-".padStart(20, "0"), "0".repeat(21)])
    expect(() => placeOf(EventStore.position(text))).toThrow("Not a position")
})
