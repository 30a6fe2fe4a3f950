import fc from "fast-check"
import { expect, test } from "vitest"
import * as Generations from "../../src/ledger/Generations.ts"

const LIMIT = 4

/** Ids in any order, also repeated, as hosts with different clocks make them. */
const keys = fc.array(
  fc.integer({ min: 0, max: 12 }).map((n) => (n === 0 ? "" : `res_${n}`)),
  { maxLength: 40 }
)

const added = (all: ReadonlyArray<string>) =>
  all.reduce((generations, key, number) => Generations.addWithin(LIMIT, generations, key, number), Generations.empty<number>())

test("an entry is found with its newest value, in whatever order the keys come", () => {
  fc.assert(
    fc.property(keys, (all) => {
      let newer = new Map<string, number>()
      let older = new Map<string, number>()
      all.forEach((key, number) => {
        if (newer.size >= LIMIT) [newer, older] = [new Map(), newer]
        newer.set(key, number)
      })
      const generations = added(all)
      for (const key of ["", "res_none", ...all]) expect(Generations.get(generations, key)).toBe(newer.get(key) ?? older.get(key))
    })
  )
})

test("generations that are restored are those that were saved", () => {
  fc.assert(
    fc.property(keys, (all) => {
      const generations = added(all)
      expect(Generations.of(generations)).toStrictEqual(generations)
    })
  )
})
