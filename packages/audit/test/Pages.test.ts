/** Pages are prepared in steps, and their findings are those of one event after another. */
import fc from "fast-check"
import { expect, it } from "vitest"
import { randomHistory } from "./Histories.ts"
import { audit, edits, rehashed } from "./Logs.ts"

it("an audit finds the same, in the same order, in pages of any size", async () => {
  const { events, snapshots } = await randomHistory(11, 160)
  const { head } = await audit({ events: events.slice(0, 60), snapshots })
  const sizes = fc.integer({ min: 2, max: events.length })
  const edit = fc.tuple(fc.nat(events.length - 1), fc.constantFrom(...Object.values(edits)))
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { maxLength: 12 }), fc.boolean(), sizes, async (changes, isForged, page) => {
      const edited = events.map((event, i) => changes.reduce((there, [at, change]) => (at === i ? change(there) : there), event))
      const log = { events: isForged ? rehashed(edited) : edited, snapshots }
      const auditOf = async (size: number) => ({ ...(await audit(log, { against: head }, size)), seconds: 0 })
      expect(await auditOf(page)).toEqual(await auditOf(1))
    })
  )
})
