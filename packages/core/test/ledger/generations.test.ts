import { HashMap } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import * as Generations from "../../src/ledger/Generations.ts"

/** A key to add, or a turn. */
const steps = fc.array(fc.option(fc.nat(12).map((n) => `key_${n}`)), { maxLength: 40 })

test("an entry is found with its newest value, for a turn after that in which it was added", () => {
  fc.assert(
    fc.property(steps, (all) => {
      let newer = new Map<string, number>()
      let older = new Map<string, number>()
      let generations = Generations.empty<number>()
      all.forEach((key, number) => {
        if (key === null) [newer, older] = [new Map(), newer]
        else newer.set(key, number)
        generations = key === null ? Generations.turn(generations) : Generations.add(generations, key, number)
      })
      for (let n = 0; n <= 12; n++) expect(Generations.get(generations, `key_${n}`)).toBe(newer.get(`key_${n}`) ?? older.get(`key_${n}`))
      expect(new Map(Generations.toMap(generations))).toEqual(new Map([...older, ...newer]))
      expect(HashMap.size(generations.newer)).toBe(newer.size)
    })
  )
})
