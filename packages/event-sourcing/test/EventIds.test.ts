import { Effect } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import { EventIds, uuidv7 } from "../src/EventIds.ts"

const seed = fc.uint8Array({ minLength: 9, maxLength: 9 })
const instant = fc.integer({ min: 0, max: 2 ** 48 - 1 })

test("an id is a UUID of version 7 that begins with the time", () => {
  fc.assert(
    fc.property(seed, fc.array(instant, { minLength: 1 }), (random, instants) => {
      const next = uuidv7(random)
      for (const now of instants) {
        const id = next(now)
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toBe(now)
      }
    })
  )
})

test("ids sort in the order they were made while time does not go back", () => {
  fc.assert(
    fc.property(seed, instant, fc.array(fc.nat(2), { maxLength: 50 }), (random, begin, steps) => {
      const next = uuidv7(random)
      let now = begin
      let last = next(now)
      for (const step of steps) {
        now = Math.min(now + step, 2 ** 48 - 1)
        const id = next(now)
        expect(id > last).toBe(true)
        last = id
      }
    })
  )
})

test("ids differ even if time stands still or goes back", () => {
  fc.assert(
    fc.property(seed, fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 200 }), (random, instants) => {
      const next = uuidv7(random)
      const ids = instants.map((now) => next(now))
      expect(new Set(ids).size).toBe(ids.length)
    })
  )
})

test("ids of one instant sort in the order they were made, however many", () => {
  const next = uuidv7()
  const ids = Array.from({ length: 10_000 }, () => next(1_000))
  expect(ids).toEqual([...new Set(ids)].sort())
})

test("two processes never make the same id, and a seed repeats its ids", () => {
  const ids = (next: EventIds) => Array.from({ length: 1_000 }, () => next(1_000))
  expect(new Set([...ids(uuidv7()), ...ids(uuidv7())]).size).toBe(2_000)
  const random = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(ids(uuidv7(random))).toEqual(ids(uuidv7(random)))
})

test("the default generator needs no layer, and all fibers share it", async () => {
  const make = Effect.map(EventIds, (next) => [next(1), next(1)])
  const ids = [...(await Effect.runPromise(make)), ...(await Effect.runPromise(make))]
  expect(ids).toEqual([...ids].sort())
  expect(new Set(ids).size).toBe(4)
})
