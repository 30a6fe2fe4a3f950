import { Account, AccountSnapshot, Lots } from "@millrace/core"
import { Aggregate } from "@millrace/event-sourcing"
import { Equal, HashMap, Schema } from "effect"
import { describe, expect, test } from "vitest"
import { Book } from "./Replay.ts"

/** What a store takes as one snapshot: bytes. */
const LARGEST = 64 * 1024

const Saved = Schema.fromJsonString(Aggregate.savedSchema(AccountSnapshot.accountSnapshots.state))
const encode = Schema.encodeSync(Saved)
const save = (state: Account.Account): string => encode({ hash: "h".repeat(43), at: 0, state })

const ulid = (n: number) => String(n).padStart(26, "0")
const START = Date.UTC(2026, 0, 1)
const SECOND = 1_000

/** Half an hour of an account that calls four times a second, ten of these under a key, with thirty calls open at any time. */
const busy = (): Book => {
  const book = new Book()
  book.tell({ _tag: "Open" }, START)
  book.tell({ _tag: "Verify", signUp: 200_000, lotId: `lot_${ulid(0)}` }, START)
  for (let i = 0; i < 7_200; i++) {
    const now = START + i * 250
    if (i % 120 === 0) {
      const terms = { lotId: `lot_${ulid(i + 1)}`, amount: 900_000, source: "topup", priority: 40 } as const
      book.tell({ _tag: "Grant", ...terms, expiresAt: now + 3_600 * SECOND }, now)
    }
    const key = { hash: `${i}`.padStart(43, "k"), fingerprint: `${i}`.padStart(43, "f"), lookedUpAt: now }
    const call = {
      quantity: 10,
      unitPrice: 600,
      end: { _tag: "itself", lifetime: 60 * SECOND },
      ...(i % 720 === 0 ? { key } : {})
    } as const
    book.tell({ _tag: "Reserve", call: { reservationId: `res_${ulid(i)}`, ...call } }, now)
    const past = `res_${ulid(i - 30)}`
    if (i % 9 === 0) book.tell({ _tag: "Release", reservationId: past, reason: "service_error" }, now)
    else book.tell({ _tag: "Settle", reservationId: past, quantity: 9 }, now)
    if (i % 360 === 2) book.tell({ _tag: "Refund", reservationId: `res_${ulid(i - 40)}`, reason: "goodwill", amount: 600 }, now)
  }
  return book
}

describe("the snapshot of a busy account", () => {
  const { account, log } = busy()

  test("is of an account that has much to remember", () => {
    expect(log.length).toBeGreaterThan(14_000)
    expect(HashMap.size(account.holds)).toBe(30)
    expect(HashMap.size(account.paidLots)).toBe(60)
    expect(HashMap.size(account.givenBack)).toBeGreaterThan(15)
    expect(HashMap.size(account.keys) + HashMap.size(account.keysBefore)).toBeGreaterThan(3)
    expect(HashMap.size(account.ended) + HashMap.size(account.endedBefore)).toBeGreaterThan(Account.OUTCOMES)
    expect(account.lots.length).toBeGreaterThan(20)
  })

  test("fits a store, with as many outcomes as there can be", () => {
    const full = save({ ...account, ended: outcomes(account, 0), endedBefore: outcomes(account, Account.OUTCOMES) })
    expect(Buffer.byteLength(full)).toBeLessThanOrEqual(LARGEST)
  })

  test("is the account again when it is read", () => {
    const { state } = Schema.decodeUnknownSync(Saved)(save(account))
    expect(Equal.equals(state, account)).toBe(true)
    expect(Lots.left(state.lots)).toBe(Lots.left(account.lots))
  })
})

describe("an account in memory", () => {
  test("stays small, whatever it lived through", () => {
    const { account } = busy()
    expect(HashMap.size(account.ended)).toBeLessThanOrEqual(Account.OUTCOMES)
    expect(HashMap.size(account.endedBefore)).toBeLessThanOrEqual(Account.OUTCOMES)
    // Two periods at most: five keys each
    expect(HashMap.size(account.keys) + HashMap.size(account.keysBefore)).toBeLessThanOrEqual(8)
    expect(account.lots.every((lot) => lot.left + lot.held > 0)).toBe(true)
    expect(HashMap.size(account.openKeys)).toBeLessThanOrEqual(1)
  })
})

const outcomes = (account: Account.Account, from: number): Account.Account["ended"] => {
  const [outcome] = HashMap.values(account.ended)
  if (outcome === undefined) throw new Error("Nothing has ended")
  return HashMap.fromIterable(Array.from({ length: Account.OUTCOMES }, (_, i) => [`res_${ulid(from + i)}`, outcome] as const))
}
