/** A payment buys credits once, for one account, despite concurrent callers and interruptions. */
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { given } from "../../../testing/src/GivenWhenThen.ts"
import * as Credits from "../../src/Credits.ts"
import { lotIdOfPayment } from "../../src/Ids.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { claim, Payment, paymentIdOf } from "../../src/payments/Payment.ts"
import { host, type Stores, stores, testing, typesIn } from "../accounts/Hosts.ts"
import { outcome } from "../vault/Vaults.ts"

const all = { concurrency: "unbounded" } as const
const range = (n: number) => Array.from({ length: n }, (_, i) => i)
const ticking = Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(50), Effect.yieldNow)))

type Host = Effect.Success<ReturnType<typeof host>>

const ACCOUNTS = ["acc_1", "acc_2", "acc_3", "acc_4"]
const open = ({ ledger }: Host, accounts = ACCOUNTS) =>
  Effect.forEach(accounts, (id) => ledger.execute(id, Decisions.open({ sealedEmail: "sealed", emailHash: id })))

const pay = (amount: number, paymentRef = "pi_1") => ({ source: "topup", amount: Credits.of(amount), paymentRef }) as const

const balances = ({ ledger }: Host) =>
  Effect.forEach(ACCOUNTS, (id) => Effect.map(ledger.balance(id), ({ available }) => Number(available)))

describe("the claim of a payment", () => {
  const claimed = (accountId: string) => ({ _tag: "PaymentClaimed", accountId, lotId: "lot_1" }) as const
  given(Payment, [])
    .when(claim(claimed("acc_1")))
    .then([claimed("acc_1")])
  testing(
    "is made once, and stays with its account",
    Effect.sync(() => {
      given(Payment, [claimed("acc_1")])
        .when(claim(claimed("acc_2")))
        .then([])
        .thenState(({ accountId }) => expect(accountId).toBe("acc_1"))
      given(Payment, [claimed("acc_1"), claimed("acc_2")])
        .when(claim(claimed("acc_2")))
        .thenState(({ accountId }) => expect(accountId).toBe("acc_1"))
      expect(`lot_${paymentIdOf("pi_1")}`).toBe(lotIdOfPayment("pi_1"))
    })
  )
})

describe("a payment", () => {
  testing(
    "is claimed, then grants; a repetition grants nothing, and another account is refused",
    Effect.gen(function* () {
      const shared = yield* stores
      const here = yield* host(shared)
      yield* open(here)
      const { events } = yield* here.payments.grant("acc_1", pay(500))
      expect(events).toMatchObject([{ _tag: "CreditsGranted", lotId: lotIdOfPayment("pi_1"), amount: 500, paymentRef: "pi_1" }])
      expect((yield* typesIn(shared)).slice(-2)).toEqual(["PaymentClaimed", "CreditsGranted"])
      expect((yield* here.payments.grant("acc_1", pay(500))).events).toEqual([])
      expect({ ...(yield* Effect.flip(here.payments.grant("acc_2", pay(500)))) }).toEqual({ _tag: "PaymentUsed", accountId: "acc_1" })
      expect(yield* here.payments.owner("pi_1")).toBe("acc_1")
      expect(yield* here.payments.owner("pi_2")).toBeUndefined()
      expect(yield* balances(here)).toEqual([500, 0, 0, 0])
    })
  )

  testing(
    "grants once, for concurrent grants at four hosts for four accounts",
    Effect.gen(function* () {
      const shared = yield* stores
      const hosts = yield* Effect.forEach(range(4), () => host(shared))
      const [first] = hosts
      if (first === undefined) return
      yield* open(first)
      for (const round of range(10)) {
        const ask = (i: number) => outcome((hosts[i % 4] ?? first).payments.grant(ACCOUNTS[(i * 7) % 4] ?? "", pay(1, `pi_${round}`)))
        const told = yield* Effect.forEach(range(64), ask, all)
        expect(told.filter((each) => each === "PaymentUsed")).toHaveLength(48)
        expect((yield* balances(first)).reduce((a, b) => a + b)).toBe(round + 1)
      }
    })
  )

  testing(
    "is not claimed by an account that cannot be granted credits",
    Effect.gen(function* () {
      const here = yield* host(yield* stores)
      yield* open(here)
      yield* here.ledger.execute("acc_2", Decisions.close)
      expect(yield* outcome(here.payments.grant("acc_none", pay(500)))).toBe("AccountNotFound")
      expect(yield* outcome(here.payments.grant("acc_2", pay(500)))).toBe("AccountClosed")
      expect(yield* outcome(here.payments.grant("acc_3", pay(Decisions.MAX_BALANCE + 1)))).toBe("BalanceTooLarge")
      yield* here.payments.grant("acc_1", pay(500))
      expect(yield* balances(here)).toEqual([500, 0, 0, 0])
    })
  )

  testing(
    "granted before claims existed stays with its account, also for another host meanwhile",
    Effect.gen(function* () {
      const shared = yield* stores
      const here = yield* host(shared)
      yield* open(here)
      const lot = (paymentRef: string) => ({ lotId: lotIdOfPayment(paymentRef), amount: Credits.of(300), paymentRef })
      for (const paymentRef of ["pi_old", "pi_older"])
        yield* here.ledger.execute("acc_2", Decisions.grant({ ...lot(paymentRef), source: "topup" }))
      yield* here.payments.grant("acc_1", pay(500, "pi_new"))
      expect(yield* here.payments.owner("pi_old")).toBe("acc_2")
      expect(yield* outcome(here.payments.grant("acc_1", pay(300, "pi_old")))).toBe("PaymentUsed")
      expect((yield* here.payments.grant("acc_2", pay(300, "pi_older"))).events).toEqual([])
      expect(yield* balances(here)).toEqual([500, 600, 0, 0])
    })
  )

  testing(
    "is searched for in the log up to the first claim, and no further",
    Effect.gen(function* () {
      const shared = yield* stores
      let read = 0
      const readAll: Stores["events"]["readAll"] = (after) => Stream.tap(shared.events.readAll(after), () => Effect.sync(() => void read++))
      const here = yield* host({ ...shared, events: { ...shared.events, readAll } })
      yield* open(here)
      for (const i of range(3)) yield* here.payments.grant("acc_1", pay(1, `pi_${i}`))
      for (const i of range(500))
        yield* here.ledger.execute("acc_1", Decisions.grant({ lotId: `lot_${i}`, amount: Credits.of(1), source: "promotion" }))
      read = 0
      yield* here.payments.grant("acc_1", pay(1, "pi_later"))
      // The four opened accounts and the first claim
      expect(read).toBeLessThanOrEqual(ACCOUNTS.length + 1)
    })
  )

  for (const fault of ["before", "lost", "after", "unanswered"] as const) {
    testing(
      `interrupted by the store error '${fault}' at any append is completed by the same grant only`,
      Effect.gen(function* () {
        yield* ticking
        for (const append of [1, 2]) {
          const shared = yield* stores
          const right = yield* host(shared)
          yield* open(right)
          // Repeated appends meet the same fault, so the process never learns the result of the first one
          const appends = Object.fromEntries(range(20).map((i) => [append + i, fault]))
          const faulty: Stores = { ...shared, events: FaultyEventStore.make(shared.events, { plan: { appends } }) }
          yield* outcome((yield* host(faulty)).payments.grant("acc_1", pay(500)))
          yield* TestClock.adjust("1 minute")
          const wasClaimed = (yield* right.payments.owner("pi_1")) === "acc_1"
          const other = yield* outcome(right.payments.grant("acc_2", pay(500)))
          const same = yield* outcome(right.payments.grant("acc_1", pay(500)))
          expect([other === "PaymentUsed", same === "PaymentUsed"]).toEqual(wasClaimed ? [true, false] : [false, true])
          expect(yield* balances(right)).toEqual(wasClaimed ? [500, 0, 0, 0] : [0, 500, 0, 0])
        }
      })
    )
  }
})
