import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { leadersOf, SHARDS, shardOf } from "../../src/leading/Shards.ts"

const hosts = fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 5 })

describe("the leaders of shards", () => {
  test("are the same in whatever order the hosts are seen", () => {
    fc.assert(
      fc.property(hosts, (hosts) => {
        expect(leadersOf(hosts.toReversed())).toEqual(leadersOf(hosts))
      }),
      { numRuns: 30 }
    )
  })

  test("stay when a host goes, but for the shards of that host", () => {
    fc.assert(
      fc.property(hosts, fc.uuid(), (hosts, gone) => {
        const after = leadersOf(hosts)
        leadersOf([...hosts, gone]).forEach((leader, shard) => {
          if (leader !== gone) expect(leader).toBe(after[shard])
        })
      }),
      { numRuns: 30 }
    )
  })

  test("are many hosts alike", () => {
    const leaders = leadersOf(["a", "b", "c", "d"])
    for (const host of ["a", "b", "c", "d"]) {
      const share = leaders.filter((leader) => leader === host).length / SHARDS
      expect(share).toBeGreaterThan(0.15)
      expect(share).toBeLessThan(0.35)
    }
  })
})

test("accounts are spread over all shards", () => {
  const shards = new Set(Array.from({ length: 5_000 }, (_, n) => shardOf(`acc_${n}`)))
  expect(shards.size).toBe(SHARDS)
})
