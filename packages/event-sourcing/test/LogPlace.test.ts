import { EventStore, parsePosition, placeOf, positionOf, stepBack } from "@millrace/event-sourcing"
import fc from "fast-check"
import { expect, it } from "vitest"

const place = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })

it("positions sort as text in log order, all of them after the start, and convert back to their places", () =>
  fc.assert(
    fc.property(place, place, (a, b) => {
      expect(positionOf(a) < positionOf(b)).toBe(a < b)
      expect(positionOf(a) > EventStore.start).toBe(true)
      expect(placeOf(positionOf(a))).toBe(a)
    })
  ))

it("positions of places in a row are those of each place alone", () =>
  fc.assert(
    fc.property(place, fc.array(fc.integer({ min: -20_000, max: 20_000 })), (first, steps) => {
      for (const at of steps.map((step) => Math.max(1, Math.min(first + step, Number.MAX_SAFE_INTEGER))))
        expect(positionOf(at)).toBe(String(at).padStart(16, "0"))
    })
  ))

it("a position is parsed with or without its leading zeros", () =>
  fc.assert(
    fc.property(place, (at) => {
      const text = positionOf(at)
      expect([parsePosition(text), parsePosition(`${at}`)]).toEqual([text, text])
      expect([parsePosition(`-${at}`), parsePosition(`${text}0`), parsePosition(""), parsePosition("1e3")]).toEqual(
        Array(4).fill(undefined)
      )
    })
  ))

it("stepping back ends at the start", () =>
  fc.assert(
    fc.property(place, fc.nat(), (at, events) => {
      expect(stepBack(positionOf(at), events)).toBe(at > events ? positionOf(at - events) : EventStore.start)
    })
  ))
