import { Account, type AccountEvent, Postings } from "@millrace/core"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { script } from "../../../testing/src/Arbitraries.ts"
import { clawedBack, credits, expired, granted, opened, parts, refunded, repaid, reserved, reversed, succeeded } from "./Examples.ts"
import { Book } from "./Replay.ts"

const available = "liabilities:credits:acc:available"
const held = "liabilities:credits:acc:reserved"
const receivable = "assets:receivable:acc"

/** The postings of the last of these events, by account. */
const posted = (...events: ReadonlyArray<AccountEvent>) => {
  const last = events.at(-1) ?? opened
  const before = events.slice(0, -1).reduce((account, event) => Account.Account.evolve(account, event, 0), Account.initial)
  return Object.fromEntries(Postings.postings("acc", before, last).map(({ account, amount }) => [account, amount]))
}

describe("postings", () => {
  test("of every event sum to zero and match the state of the account", () => {
    fc.assert(
      fc.property(script(), (steps) => {
        const book = new Book()
        for (const { at, command } of steps) book.tell(command, at)
        const balances = new Map<string, number>()
        let account = Account.initial
        for (const { at, event } of book.log) {
          const entries = Postings.postings("acc", account, event)
          expect(entries.reduce((sum, { amount }) => sum + amount, 0)).toBe(0)
          expect(entries.every(({ amount }) => amount !== 0)).toBe(true)
          for (const { account, amount } of entries) balances.set(account, (balances.get(account) ?? 0) + amount)
          account = Account.Account.evolve(account, event, at)
          const owed = account.purse.lots.reduce<number>((sum, lot) => sum + lot.claimed, Account.debt(account))
          expect([balances.get(available) ?? 0, balances.get(held) ?? 0, balances.get(receivable) ?? 0]).toEqual([
            0 - account.purse.lots.reduce((sum, lot) => sum + lot.left, 0),
            0 - account.purse.lots.reduce((sum, lot) => sum + lot.held, 0),
            owed
          ])
        }
      }),
      { numRuns: 200, seed: 1 }
    )
  })

  test("of a grant name the account that paid for it", () => {
    expect(posted(opened, granted("a", 5))).toStrictEqual({ "assets:payments": 5, [available]: -5 })
    expect(posted(opened, granted("a", 5, { source: "subscription" }))).toStrictEqual({ "assets:payments": 5, [available]: -5 })
    for (const source of ["signup", "promotion", "adjustment"] as const) {
      expect(posted(opened, granted("a", 5, { source }))).toStrictEqual({ "expenses:promotions": 5, [available]: -5 })
    }
  })

  test("of a call move credits from available to reserved, then to the income of its operation", () => {
    const events = [granted("a", 9), reserved("res_1", { a: 5 })]
    expect(posted(...events)).toStrictEqual({ [available]: 5, [held]: -5 })
    expect(posted(...events, succeeded("res_1", { a: 3 }))).toStrictEqual({
      [held]: 5,
      "income:operations:grammar.check": -3,
      [available]: -2
    })
    expect(posted(...events, refunded("res_1", { a: 5 }))).toStrictEqual({ [held]: 5, [available]: -5 })
  })

  test("of a refund after the settlement do not reduce the income of the operation", () => {
    const events = [granted("a", 5), reserved("res_1", { a: 5 }), succeeded("res_1", { a: 5 })]
    expect(posted(...events, refunded("res_1", { a: 2 }, { stage: "settled" }))).toStrictEqual({ "income:refunds": 2, [available]: -2 })
    const inDebt = [...events, clawedBack("a", { debt: 5 })]
    expect(posted(...inDebt, refunded("res_1", { a: 2 }, { stage: "settled", claimed: parts({ a: 2 }) }))).toStrictEqual({
      "income:refunds": 2,
      [receivable]: -2
    })
  })

  test("of an expiry are breakage for paid lots, and a lower cost of promotions for others", () => {
    expect(posted(granted("a", 5, { expiresAt: 0 }), expired("a", 5, 0))).toStrictEqual({ [available]: 5, "income:breakage": -5 })
    expect(posted(granted("a", 5, { source: "promotion", expiresAt: 0 }), expired("a", 5, 0))).toStrictEqual({
      [available]: 5,
      "expenses:promotions": -5
    })
  })

  test("of a clawback are receivable until the credits are taken", () => {
    const events = [granted("a", 9), reserved("res_1", { a: 4 }), clawedBack("a", { fromAvailable: 3, fromHeld: 4, debt: 2 })]
    expect(posted(...events)).toStrictEqual({ [available]: 3, [receivable]: 6, "assets:payments": -9 })
    expect(posted(...events, refunded("res_1", { a: 4 }, { claimed: parts({ a: 4 }) }))).toStrictEqual({ [held]: 4, [receivable]: -4 })
    const captured = succeeded("res_1", { a: 1 }, { claimed: parts({ a: 3 }), owed: parts({ a: 1 }) })
    expect(posted(...events, captured)).toStrictEqual({ [held]: 4, "income:operations:grammar.check": -1, [receivable]: -3 })
    expect(posted(...events, granted("b", 9), repaid("b", 2))).toStrictEqual({ [available]: 2, [receivable]: -2 })
    expect(posted(...events, reversed("a", { toHeld: 4, toDebt: 2, toAvailable: 3 }))).toStrictEqual({
      "assets:payments": 9,
      [receivable]: -6,
      [available]: -3
    })
  })

  test("are empty for events that move no money", () => {
    const trial = { _tag: "TrialReserved", reservationId: "res_1", requestId: "req", operation: "dns.lookup", expiresAt: 5 } as const
    for (const event of [opened, { _tag: "AccountVerified" }, { _tag: "AccountSuspended" }, { _tag: "AccountClosed" }, trial] as const) {
      expect(posted(event)).toStrictEqual({})
    }
  })

  test("throw for reservations and lots that do not exist", () => {
    expect(() => posted(opened, succeeded("res_1", { a: 1 }))).toThrow("is not open")
    expect(() => posted(opened, expired("a", 1, 0))).toThrow("is not known")
    expect(() => credits(-1)).toThrow()
  })
})
