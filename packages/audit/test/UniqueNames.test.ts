import { describe, expect, it } from "vitest"
import { UniqueNames } from "../src/UniqueNames.ts"

const names = Array.from({ length: 20_000 }, (_, i) => `01a1fd2d-06fb-7214-8ead-${i.toString(16).padStart(12, "0")}`)

/** Names that were seen twice, over all shares. */
const repeated = (uniques: UniqueNames, all: ReadonlyArray<string>) => {
  const found: Array<string> = []
  for (let share = 0; share < uniques.shares; share++) {
    if (share > 0) uniques.begin(share)
    for (const name of all) if (uniques.add(name)) found.push(name)
  }
  return found
}

describe("UniqueNames", () => {
  it("finds nothing among different names", () => {
    const uniques = new UniqueNames()
    expect(repeated(uniques, names)).toEqual([])
    expect(uniques.shares).toBe(1)
  })

  it("finds every name that occurs twice", () => {
    const twice = [names[3], names[19_999], "payment pay_1"].filter((name) => name !== undefined)
    expect(repeated(new UniqueNames(), [...names, "payment pay_1", ...twice]).sort()).toEqual(twice.sort())
  })

  it("joins the parts of a name", () => {
    const uniques = new UniqueNames()
    expect(uniques.add("reservation ", "res_1", " of ", "account-a")).toBe(false)
    expect(uniques.add("reservation res_1 of account-a")).toBe(true)
    expect(uniques.add("reservation ", "res_1", " of ", "account-b")).toBe(false)
  })

  it("finds duplicates in shares when not all names fit", () => {
    const uniques = new UniqueNames(1_000)
    const twice = names.filter((_, i) => i % 97 === 0)
    expect(repeated(uniques, [...names, ...twice]).sort()).toEqual(twice.sort())
    expect(uniques.shares).toBeGreaterThanOrEqual(8)
  })
})
