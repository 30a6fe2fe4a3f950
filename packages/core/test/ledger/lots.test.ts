import { Credits, Lots } from "@millrace/core"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { lot, lots, timestamp } from "../../../testing/src/Arbitraries.ts"
import { credits, parts } from "./Examples.ts"

const small = fc.nat(3_000).map(Credits.of)

/** The terms by which lots are ordered. A lot that never expires comes last. */
const rank = ({ expiresAt, priority, grantedAt }: Lots.Lot) => [expiresAt ?? Number.POSITIVE_INFINITY, priority, grantedAt] as const

const isInOrder = (a: Lots.Lot, b: Lots.Lot): boolean => {
  const [x, y] = [rank(a), rank(b)]
  const i = x.findIndex((value, i) => value !== y[i])
  return i === -1 || (x[i] ?? 0) < (y[i] ?? 0)
}

describe("lots", () => {
  test("are kept in the order of use, in whatever order they are inserted", () => {
    fc.assert(
      fc.property(lots, lot, (before, lot) => {
        fc.pre(Lots.find(before, lot.lotId) === undefined)
        const after = Lots.insert(before, lot)
        expect(after.every((lot, i) => i === 0 || isInOrder(after[i - 1] ?? lot, lot))).toBe(true)
        expect(after.filter(({ lotId }) => lotId !== lot.lotId)).toStrictEqual(before)
        expect(Lots.find(after, lot.lotId)).toBe(lot)
        expect(() => Lots.insert(after, lot)).toThrow("exists already")
      })
    )
  })

  test("that are equal are used in the order of insertion", () => {
    const alike = ["c", "a", "b"].map(
      (lotId): Lots.Lot => ({
        lotId,
        source: "topup",
        priority: 40,
        expiresAt: null,
        grantedAt: 0,
        left: credits(1),
        held: credits(0),
        claimed: credits(0)
      })
    )
    expect(alike.reduce<ReadonlyArray<Lots.Lot>>(Lots.insert, []).map(({ lotId }) => lotId)).toStrictEqual(["c", "a", "b"])
  })

  test("allocate an amount from the first lots, or nothing", () => {
    fc.assert(
      fc.property(lots, small, timestamp, (lots, amount, now) => {
        const taken = Lots.allocate(lots, amount, now)
        expect(taken === undefined).toBe(Lots.available(lots, now) < amount)
        if (taken === undefined) return
        expect(Lots.total(taken)).toBe(amount)
        const usable = lots.filter((lot) => lot.left > 0 && (lot.expiresAt === null || lot.expiresAt > now))
        // All of each lot but the last, and none skipped
        expect(taken.map(({ lotId }) => lotId)).toStrictEqual(usable.slice(0, taken.length).map(({ lotId }) => lotId))
        for (const [i, { lotId, amount }] of taken.entries()) {
          const left = Lots.find(lots, lotId)?.left ?? 0
          expect(amount).toBeGreaterThan(0)
          if (i < taken.length - 1) expect(amount).toBe(left)
          else expect(amount).toBeLessThanOrEqual(left)
        }
      })
    )
  })

  test("are available until their expiry, not at it", () => {
    fc.assert(
      fc.property(lots, timestamp, (lots, now) => {
        const expiring = lots.filter((lot) => lot.expiresAt === now)
        expect(Lots.available(lots, now)).toBe(Lots.left(lots.filter((lot) => lot.expiresAt === null || lot.expiresAt > now)))
        expect(expiring.every((lot) => Lots.isExpired(lot, now) && !Lots.isExpired(lot, now - 1))).toBe(true)
      })
    )
    expect(Lots.isExpired({ expiresAt: 5 }, 5)).toBe(true)
    expect(Lots.isExpired({ expiresAt: 5 }, 4)).toBe(false)
    expect(Lots.isExpired({ expiresAt: null }, Number.MAX_SAFE_INTEGER)).toBe(false)
  })

  test("change by an amount and return by its inverse", () => {
    fc.assert(
      fc.property(lots, fc.nat(), fc.nat(500), fc.nat(500), (lots, which, left, held) => {
        const lot = lots[which % Math.max(1, lots.length)]
        fc.pre(lot !== undefined)
        const more = Lots.adjust(lots, lot.lotId, { left, held })
        expect(Lots.left(more) - Lots.left(lots)).toBe(left)
        expect(Lots.held(more) - Lots.held(lots)).toBe(held)
        expect(Lots.adjust(more, lot.lotId, { left: -left, held: -held })).toStrictEqual(lots)
      })
    )
  })

  test("are dropped when nothing is left or held", () => {
    fc.assert(
      fc.property(lots, fc.nat(), (lots, which) => {
        const lot = lots[which % Math.max(1, lots.length)]
        fc.pre(lot !== undefined)
        const gone = Lots.adjust(lots, lot.lotId, { left: -lot.left, held: -lot.held, claimed: -lot.claimed })
        expect(Lots.find(gone, lot.lotId)).toBeUndefined()
        expect(gone).toHaveLength(lots.length - 1)
      })
    )
  })

  test("throw for too much, for claims above what is held, and for unknown lots", () => {
    const [lot] = fc.sample(lotWithClaim, { numRuns: 1, seed: 1 })
    const lots = lot === undefined ? [] : [lot]
    expect(() => Lots.adjust(lots, "lot", { left: -6 })).toThrow("Not an amount")
    expect(() => Lots.adjust(lots, "lot", { held: -3 })).toThrow("more claimed than held")
    expect(() => Lots.adjust(lots, "lot", { claimed: -3 })).toThrow("Not an amount")
    expect(() => Lots.adjust(lots, "another", { left: 1 })).toThrow("is not known")
    expect(Lots.adjust(lots, "another", { left: 0 })).toStrictEqual(lots)
  })
})

const lotWithClaim = fc.constant<Lots.Lot>({
  lotId: "lot",
  source: "topup",
  priority: 40,
  expiresAt: null,
  grantedAt: 0,
  left: credits(5),
  held: credits(4),
  claimed: credits(2)
})

describe("parts of lots", () => {
  const partsOf = fc
    .uniqueArray(
      fc.record(
        { lotId: fc.stringMatching(/^[a-f]$/u), amount: fc.integer({ min: 1, max: 500 }).map(Credits.of) },
        { noNullPrototype: true }
      ),
      {
        selector: ({ lotId }) => lotId,
        maxLength: 5
      }
    )
    .map((parts): Lots.LotParts => parts)

  test("split into the first amount and the rest", () => {
    fc.assert(
      fc.property(partsOf, small, (all, amount) => {
        const [first, rest] = Lots.split(all, amount)
        expect(Lots.total(first)).toBe(Math.min(amount, Lots.total(all)))
        expect([...first, ...rest].every((part) => part.amount > 0)).toBe(true)
        for (const { lotId, amount } of all) expect(Lots.amountOf(first, lotId) + Lots.amountOf(rest, lotId)).toBe(amount)
        // At most one lot is in both parts
        expect(first.length + rest.length).toBeLessThanOrEqual(all.length + 1)
      })
    )
  })

  test("subtract other parts lot by lot", () => {
    fc.assert(
      fc.property(partsOf, small, (all, amount) => {
        const [first, rest] = Lots.split(all, amount)
        expect(Lots.without(all, first)).toStrictEqual(rest)
        expect(Lots.without(all, rest)).toStrictEqual(first)
      })
    )
    expect(() => Lots.without(parts({ a: 1 }), parts({ a: 2 }))).toThrow("Not an amount")
  })
})
