/** The threshold of a balance: what falls below it is told once, by the decision that took the credits. */
import { Account, type AccountEvent, Decisions, type EventOf } from "@millrace/core"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { script } from "../../../testing/src/Arbitraries.ts"
import { at, type Dated, given } from "../../../testing/src/GivenWhenThen.ts"
import { invariants } from "../../../testing/src/Invariants.ts"
import { clawedBack, credits, expired, granted, opened, refunded, repaid, reserved, succeeded } from "./Examples.ts"
import { Book } from "./Replay.ts"

const account = (...events: ReadonlyArray<AccountEvent | Dated<AccountEvent>>) => given(Account.Account, [opened, ...events])

const thresholdOf = (threshold: number | null): EventOf<"BalanceThresholdSet"> => ({
  _tag: "BalanceThresholdSet",
  threshold: threshold === null ? null : credits(threshold)
})
const fell = (threshold: number, balance: number): EventOf<"BalanceFellBelow"> => ({
  _tag: "BalanceFellBelow",
  threshold: credits(threshold),
  balance: credits(balance)
})
const set = (threshold: number | null) => Decisions.setBalanceThreshold(threshold === null ? null : credits(threshold))
const settle = (reservationId: string) => Decisions.settle({ reservationId, replyHash: "reply" })
const grant = (lotId: string, amount: number) => Decisions.grant({ lotId, amount: credits(amount), source: "topup", paymentRef: null })

describe("the threshold of an account", () => {
  test("is set, changed and removed; the same again decides nothing", () => {
    account(granted("a", 10))
      .when(set(5))
      .then([thresholdOf(5)])
    account(granted("a", 10), thresholdOf(5)).when(set(5)).then([])
    account(granted("a", 10), thresholdOf(5))
      .when(set(6))
      .then([thresholdOf(6)])
    account(granted("a", 10), thresholdOf(5))
      .when(set(null))
      .then([thresholdOf(null)])
    account(granted("a", 10)).when(set(null)).then([])
  })

  test("above the balance is told at once, again whenever it changes", () => {
    account(granted("a", 10))
      .when(set(11))
      .then([thresholdOf(11), fell(11, 10)])
    account(granted("a", 10), thresholdOf(11), fell(11, 10))
      .when(set(12))
      .then([thresholdOf(12), fell(12, 10)])
    account(granted("a", 10), thresholdOf(11), fell(11, 10))
      .when(set(10))
      .then([thresholdOf(10)])
  })

  test("of zero is never told, and that of a closed or missing account is refused", () => {
    account()
      .when(set(0))
      .then([thresholdOf(0)])
    account({ _tag: "AccountClosed" }).when(set(5)).thenRefused(new Decisions.AccountClosed())
    given(Account.Account, []).when(set(5)).thenRefused(new Decisions.AccountNotFound())
  })

  test("ends when the account is closed", () => {
    account(granted("a", 10), thresholdOf(5))
      .when(Decisions.close)
      .thenState(({ lowBalance }) => expect(lowBalance).toEqual({ threshold: null, told: false }))
  })
})

describe("a balance below its threshold", () => {
  const held = [granted("a", 10), thresholdOf(5), reserved("r", { a: 6 })]

  test("is told when the credits are charged, and not when they are held or released", () => {
    const call = { requestId: "req", operation: "grammar.check", quantity: 1, priceVersion: 1, lifetime: 60_000 }
    account(granted("a", 10), thresholdOf(5))
      .when(Decisions.reserve({ reservationId: "r", unitPrice: credits(6), ...call }))
      .then([reserved("r", { a: 6 }, { quantity: 1, expiresAt: 60_000 })])
    account(...held)
      .when(Decisions.release("r", "cancelled"))
      .then([refunded("r", { a: 6 }, { reason: "cancelled" })])
    account(...held)
      .when(settle("r"))
      .then([succeeded("r", { a: 6 }), fell(5, 4)])
  })

  test("is told once, and again after credits came in that lifted it to the threshold", () => {
    const low = [...held, succeeded("r", { a: 6 }), fell(5, 4), reserved("s", { a: 1 })]
    account(...low)
      .when(settle("s"))
      .then([succeeded("s", { a: 1 })])
    account(...low, granted("b", 1, { paymentRef: "p" }))
      .when(settle("s"))
      .then([succeeded("s", { a: 1 }), fell(5, 4)])
    // One short of it
    account(...low, succeeded("s", { a: 1 }), granted("b", 1), reserved("t", { a: 2 }))
      .when(settle("t"))
      .then([succeeded("t", { a: 2 })])
  })

  test("at the threshold is not low", () => {
    account(granted("a", 10), thresholdOf(4), reserved("r", { a: 6 }))
      .when(settle("r"))
      .then([succeeded("r", { a: 6 })])
  })

  test("is told when a lot expires, in the decision that writes the expiry", () => {
    account(granted("a", 10, { expiresAt: 1_000 }), granted("b", 1), thresholdOf(5))
      .when(Decisions.applyDue, 1_000)
      .then([expired("a", 10, 1_000), fell(5, 1)])
  })

  test("is not told when a grant of the same decision lifts it again", () => {
    account(granted("a", 10, { expiresAt: 1_000 }), thresholdOf(5))
      .when(grant("b", 7), 2_000)
      .then([expired("a", 10, 1_000), granted("b", 7)])
    // The credits of an expired lot come back as a new one
    account(granted("a", 10, { expiresAt: 1_000 }), thresholdOf(5), reserved("r", { a: 10 }), at(2_000, { _tag: "AccountVerified" }))
      .when(Decisions.release("r", "service_error"), 2_000)
      .then([
        refunded("r", { a: 10 }),
        expired("a", 10, 1_000),
        granted("lot_r_0", 10, { source: "adjustment", priority: 40, expiresAt: 2_000 + Decisions.ADJUSTMENT_LIFETIME })
      ])
  })

  test("is told when a payment is taken back, at once also of held credits", () => {
    account(granted("a", 10), thresholdOf(5), reserved("r", { a: 6 }))
      .when(Decisions.clawBack("a"))
      .then([clawedBack("a", { fromAvailable: 4, fromHeld: 6 }), fell(5, 0)])
    // What the clawback claims was told already: the end of the hold tells nothing
    account(granted("a", 10), thresholdOf(5), reserved("r", { a: 6 }), clawedBack("a", { fromAvailable: 4, fromHeld: 6 }), fell(5, 0))
      .when(Decisions.release("r", "cancelled"))
      .then([refunded("r", { a: 6 }, { reason: "cancelled", claimed: refunded("r", { a: 6 }).lots })])
  })

  test("is told again when a top-up lifted it and debt took the top-up", () => {
    account(
      granted("a", 10),
      reserved("r", { a: 10 }),
      succeeded("r", { a: 10 }),
      clawedBack("a", { debt: 10 }),
      thresholdOf(5),
      fell(5, 0)
    )
      .when(grant("b", 10))
      .then([granted("b", 10), repaid("b", 10), fell(5, 0)])
  })
})

describe("the invariants", () => {
  test("detect a notice that is missing, doubled, or untrue", () => {
    let found = 0
    fc.assert(
      fc.property(script({ maxLength: 40 }), fc.nat(), fc.constantFrom("removed", "twice", "more"), (steps, where, how) => {
        const book = new Book()
        for (const { at, command } of steps) book.tell(command, at)
        const log = book.log.map((logged) => ({ stream: "account-1", ...logged }))
        const told = log.flatMap(({ event }, i) => (event._tag === "BalanceFellBelow" ? [i] : []))
        const i = told[where % Math.max(1, told.length)]
        const entry = i === undefined ? undefined : log[i]
        if (i === undefined || entry?.event._tag !== "BalanceFellBelow") return
        found++
        if (how === "removed") {
          // Credits that come in at the same instant, or a new threshold, may make it unnecessary
          if (log.slice(i + 1).some(({ at }) => at === entry.at)) return
          log.splice(i, 1)
        } else if (how === "twice") log.splice(i, 0, entry)
        else log[i] = { ...entry, event: { ...entry.event, balance: credits(entry.event.balance + 1) } }
        expect(invariants(log).map(({ rule }) => rule)).toContain(
          "a balance that falls below its threshold is told, once, and at no other time"
        )
      }),
      { seed: 1, numRuns: 300 }
    )
    expect(found).toBeGreaterThan(50)
  })
})
