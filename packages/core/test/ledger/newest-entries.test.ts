import fc from "fast-check"
import { expect, test } from "vitest"
import * as NewestEntries from "../../src/ledger/NewestEntries.ts"

const LIMIT = 4

/** Ids in any order, also repeated, as hosts with different clocks make them. */
const keys = fc.array(
  fc.integer({ min: 0, max: 12 }).map((n) => (n === 0 ? "" : `res_${n}`)),
  { maxLength: 40 }
)

const added = (all: ReadonlyArray<string>): NewestEntries.NewestEntries<number> =>
  all.reduce<NewestEntries.NewestEntries<number>>(
    (entries, key, number) => NewestEntries.add(LIMIT, entries, key, number),
    NewestEntries.empty
  )

/** The same by plain lists. */
const model = (all: ReadonlyArray<string>) => {
  let newer: Array<readonly [string, number]> = []
  let older: Array<readonly [string, number]> = []
  all.forEach((key, number) => {
    if (newer.length >= LIMIT) [newer, older] = [[], newer]
    newer.push([key, number])
  })
  return { newer, older }
}

test("an entry is found with its newest value, in whatever order the keys come", () => {
  fc.assert(
    fc.property(keys, (all) => {
      const { newer, older } = model(all)
      const entries = added(all)
      expect(NewestEntries.entriesOf(entries.newer)).toEqual(newer)
      expect(NewestEntries.entriesOf(entries.older)).toEqual(older)
      for (const key of ["", "res_none", ...all])
        expect(NewestEntries.get(entries, key)).toBe(new Map(newer).get(key) ?? new Map(older).get(key))
    })
  )
})

test("entries that are restored answer and grow as those that were saved", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(100).map((n) => `res_${n}`)), fc.uniqueArray(fc.nat(100).map((n) => `later_${n}`)), (all, later) => {
      let saved = added(all)
      let restored = NewestEntries.restore(NewestEntries.save(saved))
      for (const key of ["", ...later]) {
        for (const one of ["", "res_none", ...all, ...later]) expect(NewestEntries.get(restored, one)).toBe(NewestEntries.get(saved, one))
        expect(NewestEntries.save(restored)).toEqual(NewestEntries.save(saved))
        saved = NewestEntries.add(LIMIT, saved, key, -1)
        restored = NewestEntries.add(LIMIT, restored, key, -1)
      }
    })
  )
})
