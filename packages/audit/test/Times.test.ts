/** The rule of times, against the same rule told in texts alone. */
import type { StreamName } from "@millrace/event-sourcing"
import fc from "fast-check"
import { expect, test } from "vitest"
import { opened, T0, T1, T2 } from "./Broken.ts"
import { audit, type Entry, written } from "./Logs.ts"

const TIMES = [T0, "2026-01-01T00:00:00.001Z", T1, T2, "0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]
/** Of the length of a time: no time at all, times in other formats, and a day that no month has. */
const OTHERS = ["x".repeat(24), "2026-01-01 01:00:00.000Z", "2026-01-01T01:30:00.00+0", "2026-02-30T00:00:00.000Z"]

/** What is wrong with the times of events, each of a stream, by the order of their texts. */
const wrongTimes = (times: ReadonlyArray<readonly [stream: string, at: string]>): ReadonlyArray<string> => {
  const lastOf = new Map<string, string>()
  let before = ""
  return times.flatMap(([stream, at]) => {
    const last = lastOf.get(stream) ?? ""
    const isRepeated = at === before && at >= last
    before = at
    lastOf.set(stream, at)
    if (isRepeated) return []
    if (!TIMES.includes(at)) return `${JSON.stringify(at)} is not a time`
    return at < last ? `${at} is earlier than ${last}, the time of the event before it` : []
  })
}

test("times go on within each stream, whatever the times of other streams, and after texts that are no times", async () => {
  const stream = fc.constantFrom<StreamName.StreamName>("account-a", "account-b")
  const entries = fc.array(fc.tuple(stream, fc.constantFrom(...TIMES, ...OTHERS)), { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(entries, async (times) => {
      const events = written(times.map(([name, at]): Entry => [name, at, opened]))
      const { from, problems } = await audit({ events, snapshots: new Map() })
      expect(problems.filter(({ rule }) => rule === "time-goes-on").map(({ detail }) => detail)).toEqual(wrongTimes(times))
      const first = times.map(([, at]) => at).filter((at) => TIMES.includes(at))
      expect(from).toBe(first.sort()[0] ?? null)
    }),
    { numRuns: 300 }
  )
})
