import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { beginningOf, UniqueNames } from "../src/UniqueNames.ts"

const names = Array.from({ length: 20_000 }, (_, i) => `01a1fd2d-06fb-7214-8ead-${i.toString(16).padStart(12, "0")}`)

/** The suspects among some names, over all shares. */
const suspectsOf = (uniques: UniqueNames, all: ReadonlyArray<string>) => {
  for (let share = 0; share === 0 || share < uniques.shares; share++) {
    if (share > 0) uniques.begin(share)
    for (const name of all) uniques.add(name)
  }
  const suspects = new Set(all.filter((name) => uniques.isSuspect(name)))
  expect(uniques.hasSuspects).toBe(suspects.size > 0)
  return [...suspects].sort()
}

describe("UniqueNames", () => {
  it("finds nothing among different names", () => {
    const uniques = new UniqueNames()
    expect(suspectsOf(uniques, names)).toEqual([])
    expect(uniques.shares).toBe(1)
  })

  it("finds every name that occurs twice", () => {
    const twice = [names[3], names[19_999], "payment pay_1"].filter((name) => name !== undefined)
    expect(suspectsOf(new UniqueNames(), [...names, "payment pay_1", ...twice])).toEqual(twice.sort())
  })

  it("tells names apart by how they begin", () => {
    const [a, b] = [beginningOf("account-a"), beginningOf("account-b")]
    const uniques = new UniqueNames()
    uniques.add("res_1", a)
    uniques.add("res_1", b)
    uniques.add("res_1")
    expect(uniques.hasSuspects).toBe(false)
    uniques.add("res_1", a)
    expect(uniques.isSuspect("res_1", a)).toBe(true)
    expect(uniques.isSuspect("res_1", b)).toBe(false)
    expect(uniques.isSuspect("res_1")).toBe(false)
  })

  it("takes a name as the same however much of it is its beginning", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (begins, ends) => {
        const uniques = new UniqueNames()
        uniques.add(begins + ends)
        expect(uniques.isSuspect(ends, beginningOf(begins))).toBe(false)
        uniques.add(ends, beginningOf(begins))
        expect(uniques.isSuspect(begins + ends)).toBe(true)
      })
    )
  })

  it("finds a name that occurs right after itself, and one that occurs much later", () => {
    const [first = "", ...rest] = names
    const uniques = new UniqueNames()
    expect(suspectsOf(uniques, [first, first, ...rest, rest[0] ?? ""])).toEqual([first, rest[0]].sort())
  })

  it("finds duplicates in shares when not all names fit", () => {
    const uniques = new UniqueNames(1_000)
    const twice = names.filter((_, i) => i % 97 === 0)
    expect(suspectsOf(uniques, [...names, ...twice])).toEqual(twice.sort())
    expect(uniques.shares).toBeGreaterThanOrEqual(8)
  })
})
