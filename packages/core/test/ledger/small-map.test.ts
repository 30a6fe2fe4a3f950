import { Equal, HashMap } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import * as SmallMap from "../../src/ledger/SmallMap.ts"

/** A key, and the value that it gets, or null where it is removed. Many keys, so that lists become hash maps and hash maps lists. */
const steps = fc.array(fc.tuple(fc.nat(14), fc.option(fc.nat())), { maxLength: 80 })

test("has the entries of a Map with the same changes, and every state stays as it was", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const states: Array<readonly [SmallMap.SmallMap<number>, ReadonlyMap<string, number>]> = [[SmallMap.empty, new Map()]]
      for (const [number, value] of all) {
        const key = `key_${number}`
        const [map, before] = states.at(-1) ?? [SmallMap.empty, new Map()]
        const after = new Map(before)
        if (value === null) after.delete(key)
        else after.set(key, value)
        states.push([value === null ? SmallMap.remove(map, key) : SmallMap.set(map, key, value), after])
      }
      for (const [map, expected] of states) {
        expect([...map]).toHaveLength(expected.size)
        expect(new Map(map)).toEqual(expected)
        for (let number = 0; number <= 14; number++) expect(SmallMap.get(map, `key_${number}`)).toBe(expected.get(`key_${number}`))
        // However it came to its entries, it is equal to every map that has them
        expect(Equal.equals(map, SmallMap.of(HashMap.fromIterable(expected)))).toBe(true)
      }
    })
  )
})

test("eight entries are a list in the order of their keys, and nine are not", () => {
  const keys = ["f", "b", "h", "a", "d", "i", "c", "g", "e"]
  const filled = (count: number): SmallMap.SmallMap<number> =>
    keys.slice(0, count).reduce<SmallMap.SmallMap<number>>((map, key, i) => SmallMap.set(map, key, i), SmallMap.empty)
  expect([...filled(8)].map(([key]) => key)).toEqual(["a", "b", "c", "d", "f", "g", "h", "i"])
  expect([filled(8), filled(9), SmallMap.remove(filled(9), "e")].map(Array.isArray)).toEqual([true, false, true])
})
