import { Credits } from "@millrace/core"
import { describe, expect, test } from "vitest"
import type { AccountEvent } from "../../src/ledger/AccountEvent.ts"
import * as Purse from "../../src/ledger/Purse.ts"
import * as SmallMap from "../../src/ledger/SmallMap.ts"

const amount = Credits.of(500)
const parts = [{ lotId: "lot_1", amount }]

const granted: AccountEvent = {
  _tag: "CreditsGranted",
  lotId: "lot_1",
  amount: Credits.of(1_000),
  source: "promotion",
  priority: 10,
  expiresAt: null,
  paymentRef: null
}

const reserved = (reservationId: string): AccountEvent => ({
  _tag: "CreditReserved",
  reservationId,
  requestId: "request",
  operation: "bench.noop",
  quantity: 1,
  priceVersion: 1,
  amount,
  lots: parts,
  expiresAt: 60_000
})

const released = (reservationId: string): AccountEvent => ({
  _tag: "Refunded",
  reservationId,
  stage: "reserved",
  amount,
  reason: "cancelled",
  lots: parts
})

const holdOf = ({ holds }: Purse.Purse, event: AccountEvent): Purse.Hold | undefined =>
  "reservationId" in event ? SmallMap.get(holds, event.reservationId) : undefined

const purseAfter = (...events: ReadonlyArray<AccountEvent>): Purse.Purse =>
  events.reduce((purse, event) => Purse.evolve(purse, event, holdOf(purse, event), 0), Purse.initial)

describe("a purse at rest", () => {
  test("shares its empty map of holds with all others", () => {
    const one = purseAfter(granted, reserved("a"), released("a"))
    const other = purseAfter(granted, reserved("b"), reserved("c"), released("c"), released("b"))
    expect(one.holds).toBe(other.holds)
    expect(one).toStrictEqual(purseAfter(granted))
  })

  test("takes new holds, which no other purse sees", () => {
    const rested = purseAfter(granted, reserved("a"), released("a"))
    const busy = Purse.evolve(rested, reserved("b"), undefined, 0)
    expect([...busy.holds].map(([id]) => id)).toEqual(["b"])
    expect([...rested.holds]).toEqual([])
  })
})
