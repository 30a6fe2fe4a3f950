/** What can happen to a payment, and which credits follow. Standings come in any order, repeated, and some never. */
import { Account, type AccountEvent, Credits, Decisions, lotIdOfPayment } from "@millrace/core"
import type { Decide as DecideOf, Decision } from "@millrace/event-sourcing"
import { Result } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { given } from "../../../testing/src/GivenWhenThen.ts"
import * as Payment from "../../src/payments/Payment.ts"
import type { Standing } from "../../src/payments/PaymentGateway.ts"
import { lotsOf } from "../../src/payments/Payments.ts"
import { life, outcomeOf, PAYMENT, PENDING, terms } from "./Gateways.ts"

const { Payment: decider } = Payment

const requested = { _tag: "PaymentRequested", ...terms } as const
const captured = { _tag: "PaymentCaptured", amount: 1_000 } as const
const paid: Standing = { ...PENDING, status: "captured", captured: 1_000 }

type Decide = (payment: Payment.Payment, now: number) => Decision<Payment.PaymentEvent>

const decided = (payment: Payment.Payment, decide: Decide, now = 0): readonly [Payment.Payment, ReadonlyArray<Payment.PaymentEvent>] => {
  const events = Result.getOrThrow(decide(payment, now)).map((event) => {
    const { data, type } = decider.codec.encode(event)
    return decider.codec.decode(type, data)
  })
  return [events.reduce((state, event) => decider.evolve(state, event, now), payment), events]
}

const begin = decider.evolve(decider.initial, requested, 0)
const orderOf = ({ order }: Payment.Payment): Payment.Order => {
  if (order === undefined) throw new Error("The payment was requested")
  return order
}

/** Standings of one life as they are heard: any of them, in any order, and at last the last. */
const heard = life.chain((all) =>
  fc
    .array(fc.nat(all.length - 1), { maxLength: 20 })
    .map((order) => ({ all, heard: [...order, all.length - 1].map((i) => all[i] ?? PENDING) }))
)

describe("a payment", () => {
  test("ends as its gateway says at last, whatever was heard before, how often and in which order", () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(heard, ({ all, heard }) => {
        const last = all.at(-1) ?? PENDING
        let payment = begin
        for (const standing of heard) {
          const [after, events] = decided(payment, Payment.observe(standing))
          for (const { _tag } of events) seen.add(_tag)
          expect(decided(after, Payment.observe(standing))[1]).toEqual([])
          payment = after
        }
        const order = orderOf(payment)
        const { granted, takenBack } = outcomeOf(last)
        expect(order.status).toBe(last.status)
        expect(order.status === "captured" ? Payment.granted(order) : 0).toBe(granted)
        expect(order.changes.reduce((sum, change) => sum + change, 0)).toBe(takenBack)
        expect(order.changes).not.toContain(0)
        // Every standing that was true before is old news
        for (const standing of all) expect(decided(payment, Payment.observe(standing))[1]).toEqual([])
      }),
      { numRuns: 1_000, seed: 1 }
    )
    expect([...seen].sort()).toEqual([
      "PaymentAuthorized",
      "PaymentCaptured",
      "PaymentDisputeLost",
      "PaymentDisputeWon",
      "PaymentDisputed",
      "PaymentFailed",
      "PaymentRefundFailed",
      "PaymentRefunded"
    ])
  })

  test("that is requested, begun or claimed again keeps what it has", () => {
    given(decider, [])
      .when(Payment.request({ ...terms, lifetime: 86_400_000 }))
      .then([requested])
    given(decider, [requested])
      .when(Payment.request({ ...terms, accountId: "acc_2", lifetime: 1 }))
      .then([])
    given(decider, [requested])
      .when(Payment.claim({ _tag: "PaymentClaimed", accountId: "acc_2", lotId: "lot_2" }))
      .then([])
    given(decider, [requested, { _tag: "PaymentBegun", reference: "a" }])
      .when(Payment.begun("b"))
      .then([])
      .thenState(({ order }) => expect(order?.reference).toBe("a"))
  })

  test("fails when nobody pays it in time, unless it is authorized; money that comes later counts", () => {
    given(decider, [requested])
      .when(Payment.lapse, terms.expiresAt - 1)
      .then([])
    const lapsed = { _tag: "PaymentFailed", reason: "It was not paid in time" } as const
    given(decider, [requested]).when(Payment.lapse, terms.expiresAt).then([lapsed])
    given(decider, [requested, { _tag: "PaymentAuthorized" }])
      .when(Payment.lapse, terms.expiresAt)
      .then([])
    given(decider, [requested, lapsed]).when(Payment.observe(paid)).then([captured])
  })

  test("is told as refunded once all of it went back for good", () => {
    const told = (...events: ReadonlyArray<Payment.PaymentEvent>) =>
      Payment.statusOf(orderOf(events.reduce((state, event) => decider.evolve(state, event, 0), begin)))
    const refund = (reference: string, amount: number) => ({ _tag: "PaymentRefunded", reference, amount }) as const
    const dispute = { _tag: "PaymentDisputed", reference: "dp", amount: 1_000 } as const
    expect([
      told(),
      told(captured, refund("a", 400)),
      told(captured, refund("a", 400), refund("b", 600)),
      told(captured, refund("a", 1_000), { _tag: "PaymentRefundFailed", reference: "a" }),
      told(captured, dispute),
      told(captured, dispute, { _tag: "PaymentDisputeLost", reference: "dp" }),
      told(captured, dispute, { _tag: "PaymentDisputeWon", reference: "dp" })
    ]).toEqual(["pending", "captured", "refunded", "captured", "captured", "refunded", "captured"])
  })
})

const lotId = lotIdOfPayment(PAYMENT)

/** The account after a decision; unchanged by one that is refused. */
const inAccount = <E>(account: Account.Account, decide: DecideOf<Account.Account, AccountEvent, E>, now: number): Account.Account => {
  const events = Result.getOrElse(decide(account, now), (): ReadonlyArray<AccountEvent> => [])
  return events.reduce((state, event) => Account.Account.evolve(state, event, now), account)
}

const accountOpened = { _tag: "AccountOpened", sealedEmail: "", emailHash: "" } as const
const opened = Account.Account.evolve(Account.initial, accountOpened, 0)

const net = (account: Account.Account): number => {
  const paid = Account.get(account.purse.paidLots, lotId)
  return (paid?.granted ?? 0) - (paid?.clawedBack ?? 0)
}

describe("the lot of a payment", () => {
  /** Hosts bring the account up to date with what they know of the payment, which may be old; between, credits are held and charged. */
  const acts = fc.array(fc.oneof(fc.nat(40), fc.constant("spend" as const), fc.constant("release" as const)), { maxLength: 30 })

  test("follows the payment, each change once, whichever host knows how much of it", () => {
    fc.assert(
      fc.property(life, acts, fc.integer({ min: 1, max: 12_000_000 }), (all, acts, price) => {
        const states = [begin]
        for (const standing of all) states.push(decided(states.at(-1) ?? begin, Payment.observe(standing))[0])
        let account = opened
        let holds = 0
        const settle = (payment: Payment.Payment, now: number) => {
          const order = orderOf(payment)
          if (order.status !== "captured") return
          account = inAccount(account, Decisions.grantPaid(...lotsOf(order)), now)
          account = inAccount(account, Decisions.followPayment(lotId, order.changes), now)
        }
        acts.forEach((act, now) => {
          if (typeof act === "number") settle(states[act % states.length] ?? begin, now)
          else if (act === "spend") {
            const reservationId = `res_${holds++}`
            const call = { reservationId, requestId: "r", operation: "o", quantity: 1, priceVersion: 1, unitPrice: Credits.of(price) }
            account = inAccount(account, Decisions.reserve({ ...call, lifetime: 1_000 }), now)
            if (now % 2 === 0) account = inAccount(account, Decisions.settle({ reservationId, replyHash: "" }), now)
          } else account = inAccount(account, Decisions.release(`res_${holds - 1}`, "cancelled"), now)
        })
        settle(states.at(-1) ?? begin, acts.length)
        const { granted, takenBack } = outcomeOf(all.at(-1) ?? PENDING)
        expect(net(account)).toBe(granted - takenBack)
      }),
      { numRuns: 1_000, seed: 1 }
    )
  })

  test("is granted with its bonus once, also after both were spent and the account was closed", () => {
    const order = orderOf([captured].reduce((state, event) => decider.evolve(state, event, 0), begin))
    const grant = Decisions.grantPaid(...lotsOf(order))
    const both = given(Account.Account, [accountOpened]).when(grant)
    const lot = { priority: 40, expiresAt: null, paymentRef: PAYMENT, lotId, amount: Credits.of(10_000_000), source: "topup" } as const
    const bonus = { priority: 10, expiresAt: null, paymentRef: null, lotId: Payment.bonusLotIdOf(PAYMENT), source: "promotion" } as const
    const granted: ReadonlyArray<AccountEvent> = [
      { _tag: "CreditsGranted", ...lot },
      { _tag: "CreditsGranted", ...bonus, amount: Credits.of(500_000) }
    ]
    both.then(granted)
    const spent = {
      _tag: "CreditReserved",
      reservationId: "res_1",
      requestId: "req",
      operation: "o",
      quantity: 1,
      priceVersion: 1,
      amount: Credits.of(10_500_000),
      lots: [
        { lotId: bonus.lotId, amount: Credits.of(500_000) },
        { lotId, amount: Credits.of(10_000_000) }
      ]
    } as const
    const { amount: charged, lots, reservationId } = spent
    const settled = { _tag: "OperationSucceeded", reservationId, charged, quantity: 1, lots, replyHash: "" } as const
    const closed = { _tag: "AccountClosed" } as const
    given<Account.Account, AccountEvent>(Account.Account, [accountOpened, ...granted, spent, settled, closed])
      .when(grant)
      .then([])
  })

  test("follows a chargeback that is won and another that is lost, as two changes and not their sum", () => {
    const account = [1, 2, 3].reduce(
      (account, n) => inAccount(account, Decisions.followPayment(lotId, [400, -400, 1_000].slice(0, n)), n),
      Account.Account.evolve(
        opened,
        { _tag: "CreditsGranted", lotId, amount: Credits.of(1_000), source: "topup", priority: 40, expiresAt: null, paymentRef: PAYMENT },
        0
      )
    )
    expect(net(account)).toBe(0)
    // A host that is behind by one or two changes takes nothing away and gives nothing back
    for (const behind of [[400], [400, -400]]) expect(net(inAccount(account, Decisions.followPayment(lotId, behind), 9))).toBe(0)
  })
})
