import fc from "fast-check"
import { expect, test } from "vitest"
import { amount, timestamp } from "../../../testing/src/Arbitraries.ts"
import { AccountEvent } from "../../src/ledger/AccountEvent.ts"
import * as Purse from "../../src/ledger/Purse.ts"
import * as SmallMap from "../../src/ledger/SmallMap.ts"

const fields = {
  reservationId: fc.string(),
  requestId: fc.string(),
  operation: fc.string(),
  quantity: fc.nat(),
  priceVersion: fc.nat(),
  amount,
  // An empty purse has no lots
  lots: fc.constant([]),
  expiresAt: timestamp,
  recoverable: fc.constant(true as const),
  jobId: fc.string(),
  acceptBy: timestamp,
  adjustmentLifetime: fc.nat(),
  keyHash: fc.string(),
  fingerprint: fc.string(),
  lateOf: fc.string()
}

const reserved = fc.record(fields, {
  requiredKeys: ["reservationId", "requestId", "operation", "quantity", "priceVersion", "amount", "lots"]
})

test("a hold has every field of its event but the tag and the reservation, and the time", () => {
  expect(["_tag", ...Object.keys(fields)].sort()).toEqual(Object.keys(AccountEvent.cases.CreditReserved.fields).sort())
  fc.assert(
    fc.property(reserved, timestamp, ({ reservationId, ...call }, at) => {
      const { holds } = Purse.evolve(Purse.initial, { _tag: "CreditReserved", reservationId, ...call }, undefined, at)
      expect(SmallMap.get(holds, reservationId)).toStrictEqual({ ...call, reservedAt: at })
    }),
    { numRuns: 500 }
  )
})
