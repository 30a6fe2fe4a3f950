/** Payments through a checkout: lost answers, gateways that are away, stores that fail, hosts that die and other hosts that continue. */
import { Credits, Decisions } from "@millrace/core"
import { type Context, Effect } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import * as ManualGateway from "../../src/payments/ManualGateway.ts"
import * as Payment from "../../src/payments/Payment.ts"
import type { Standing } from "../../src/payments/PaymentGateway.ts"
import { type Stores, stores, testing, typesIn } from "../accounts/Hosts.ts"
import { outcome } from "../vault/Vaults.ts"
import { PAYMENT, PENDING, ScriptedGateway, terms } from "./Gateways.ts"
import { host } from "./Hosts.ts"

type Host = Omit<Effect.Success<ReturnType<typeof host>>, "context">

const { expiresAt: _, gateway: __, ...asked } = terms
const order = { ...asked, description: "10,000 credits" }

const open = ({ ledger }: Host) =>
  Effect.forEach(["acc_1", "acc_2"], (id) => ledger.execute(id, Decisions.open({ sealedEmail: "sealed", emailHash: id })))

const available = ({ ledger }: Host, accountId = "acc_1") =>
  Effect.map(ledger.balance(accountId), ({ available, debt }) => Number(available) - Number(debt))

/** A host whose account has a payment that was requested. */
const begun = Effect.gen(function* () {
  const gateway = new ScriptedGateway()
  const shared = yield* stores
  const here = yield* host(shared, gateway.layer)
  yield* open(here)
  const { next } = yield* here.checkout.request(order)
  expect(next).toEqual({ _tag: "ClientSecret", clientSecret: `secret_${PAYMENT}` })
  return { gateway, shared, here }
})

const AUTHORIZED: Standing = { ...PENDING, status: "authorized" }
const ALL = 10_500_000

describe("a checkout", () => {
  testing(
    "captures what was authorized, and grants it with its bonus once",
    Effect.gen(function* () {
      const { gateway, here, shared } = yield* begun
      expect((yield* here.checkout.capture("acc_1", PAYMENT)).status).toBe("pending")
      expect(yield* available(here)).toBe(0)
      gateway.standing = AUTHORIZED
      const captured = yield* Effect.forEach(Array(16), () => here.checkout.capture("acc_1", PAYMENT), { concurrency: "unbounded" })
      expect(captured.map(({ status }) => status)).toEqual(Array(16).fill("captured"))
      expect(yield* available(here)).toBe(ALL)
      const there = yield* host(shared, gateway.layer)
      yield* there.checkout.capture("acc_1", PAYMENT)
      expect(yield* available(there)).toBe(ALL)
      expect((yield* typesIn(shared)).filter((type) => type === "PaymentCaptured" || type === "CreditsGranted")).toHaveLength(3)
    })
  )

  testing(
    "tells again what the payer of a pending payment needs, if the gateway does",
    Effect.gen(function* () {
      const { gateway, here } = yield* begun
      const capture = here.checkout.capture("acc_1", PAYMENT)
      const next = Effect.flatMap(capture, here.checkout.next)
      expect(yield* next).toEqual({ _tag: "ClientSecret", clientSecret: `secret_${PAYMENT}` })
      gateway.faults = [undefined, "away"]
      expect(yield* next).toBe(undefined)
      gateway.standing = AUTHORIZED
      gateway.calls.length = 0
      expect(yield* next).toBe(undefined)
      expect(gateway.calls).toEqual(["standing", "capture"])
    })
  )

  testing(
    "hides the payments of other accounts, and grants no payment of its own by hand",
    Effect.gen(function* () {
      const { gateway, here } = yield* begun
      gateway.standing = AUTHORIZED
      expect(yield* outcome(here.checkout.capture("acc_2", PAYMENT))).toBe("PaymentNotFound")
      expect(yield* outcome(here.checkout.capture("acc_1", "pay_01M7YKD46JCP6VGMKADN3JSPJX"))).toBe("PaymentNotFound")
      expect(yield* outcome(here.checkout.capture("acc_1", "anything"))).toBe("PaymentNotFound")
      expect(gateway.calls).toEqual(["begin"])
      const byHand = { source: "topup", amount: Credits.of(1), paymentRef: PAYMENT } as const
      for (const account of ["acc_1", "acc_2"]) expect(yield* outcome(here.payments.grant(account, byHand))).toBe("PaymentMadeHere")
      expect(yield* available(here)).toBe(0)
    })
  )

  for (const fault of ["away", "lost"] as const)
    testing(
      `asks again when the answer to the capture is lost: ${fault}`,
      Effect.gen(function* () {
        const { gateway, here } = yield* begun
        gateway.standing = AUTHORIZED
        gateway.faults = [undefined, fault]
        expect(yield* outcome(here.checkout.capture("acc_1", PAYMENT))).toBe("GatewayUnavailable")
        expect(yield* available(here)).toBe(0)
        expect((yield* here.checkout.capture("acc_1", PAYMENT)).status).toBe("captured")
        expect(yield* available(here)).toBe(ALL)
      })
    )

  testing(
    "gives back what could not be granted, and claws nothing back",
    Effect.gen(function* () {
      const { gateway, here } = yield* begun
      yield* here.ledger.execute("acc_1", Decisions.close)
      gateway.standing = AUTHORIZED
      gateway.faults = [undefined, undefined, "lost"]
      expect(yield* outcome(here.checkout.capture("acc_1", PAYMENT))).toBe("GatewayUnavailable")
      const order = yield* here.checkout.ask(PAYMENT)
      expect({ status: Payment.statusOf(order), why: order.notGranted }).toEqual({ status: "refunded", why: "The account is closed" })
      expect(gateway.standing.refunds).toEqual([{ reference: `${PAYMENT}_not_granted`, minor: 1_000, status: "succeeded" }])
      yield* here.checkout.ask(PAYMENT)
      expect(gateway.standing.refunds).toHaveLength(1)
    })
  )

  testing(
    "refunds a part once, and never more than is left",
    Effect.gen(function* () {
      const { gateway, here } = yield* begun
      expect(yield* outcome(here.checkout.refund(PAYMENT, { refundId: "a" }))).toBe("RefundTooLarge")
      gateway.standing = AUTHORIZED
      yield* here.checkout.capture("acc_1", PAYMENT)
      yield* here.checkout.refund(PAYMENT, { refundId: "a", minor: 400 })
      expect(yield* available(here)).toBe(ALL - 4_000_000)
      expect(yield* outcome(here.checkout.refund(PAYMENT, { refundId: "b", minor: 601 }))).toBe("RefundTooLarge")
      expect(Payment.statusOf(yield* here.checkout.refund(PAYMENT, { refundId: "b" }))).toBe("refunded")
      expect(yield* available(here)).toBe(500_000)
    })
  )

  testing(
    "takes notices of its own payments, also of one that another host began a moment ago",
    Effect.gen(function* () {
      const { gateway, here, shared } = yield* begun
      const there = yield* host(shared, gateway.layer)
      gateway.standing = { ...PENDING, status: "captured", captured: 1_000 }
      const notice = (...references: ReadonlyArray<string>) => ({ headers: {}, body: Buffer.from(JSON.stringify(references)) })
      expect(yield* there.checkout.notice(notice("gw_else"))).toBe(0)
      expect(yield* there.checkout.notice(notice(`gw_${PAYMENT}`, "gw_else"))).toBe(1)
      expect(yield* available(here)).toBe(ALL)
      expect(yield* there.book.list({ accountId: "acc_1" })).toMatchObject([{ paymentId: PAYMENT, status: "captured" }])
      expect(yield* there.book.list({ accountId: "acc_2" })).toEqual([])
      expect(yield* there.book.list({ status: "pending" })).toEqual([])
    })
  )
})

describe("a payment that is due to lapse", () => {
  testing(
    "is asked for first, and stands if the money had come",
    Effect.gen(function* () {
      const { gateway, here, shared } = yield* begun
      gateway.standing = { ...PENDING, status: "captured", captured: 1_000 }
      yield* TestClock.adjust("1 day")
      expect((yield* here.checkout.lapse(PAYMENT)).status).toBe("captured")
      expect(yield* available(here)).toBe(ALL)
      expect(yield* typesIn(shared)).not.toContain("PaymentFailed")
    })
  )
})

describe("a refund that the payer's bank does not take", () => {
  testing(
    "brings the credits back, and the money can go back anew, under another id",
    Effect.gen(function* () {
      const { gateway, here, shared } = yield* begun
      gateway.standing = AUTHORIZED
      yield* here.checkout.capture("acc_1", PAYMENT)
      yield* here.checkout.refund(PAYMENT, { refundId: "a" })
      expect(yield* available(here)).toBe(500_000)
      expect(yield* outcome(here.checkout.refund(PAYMENT, { refundId: "b", minor: 1 }))).toBe("RefundTooLarge")
      gateway.standing = { ...gateway.standing, refunds: gateway.standing.refunds.map((refund) => ({ ...refund, status: "failed" })) }
      const there = yield* host(shared, gateway.layer)
      expect(Payment.statusOf(yield* there.checkout.ask(PAYMENT))).toBe("captured")
      expect(yield* available(here)).toBe(ALL)
      // Asked again, and made again under its id, it stays failed
      yield* here.checkout.refund(PAYMENT, { refundId: "a" })
      expect(yield* available(here)).toBe(ALL)
      expect(Payment.statusOf(yield* here.checkout.refund(PAYMENT, { refundId: "b" }))).toBe("refunded")
      expect(yield* available(here)).toBe(500_000)
      expect((yield* typesIn(shared)).filter((type) => /^PaymentRefund/u.test(type))).toEqual([
        "PaymentRefunded",
        "PaymentRefundFailed",
        "PaymentRefunded"
      ])
    })
  )
})

/** Maintains payments for some minutes, at two hosts. */
const maintained = (shared: Stores, gateway: ScriptedGateway) =>
  Effect.scoped(
    Effect.gen(function* () {
      for (const _ of [1, 2]) yield* host(shared, gateway.layer, { upkeep: true })
      for (const _ of Array(5)) yield* Effect.andThen(TestClock.adjust("1 minute"), Effect.yieldNow)
    })
  )

describe("the upkeep of payments", () => {
  testing(
    "asks until a payment is final, with no notice at all, and fails one that nobody pays",
    Effect.gen(function* () {
      const { gateway, here, shared } = yield* begun
      gateway.faults = ["away", "lost", undefined]
      yield* maintained(shared, gateway)
      expect(gateway.calls.filter((call) => call === "standing").length).toBeGreaterThan(2)
      expect((yield* here.payments.order(PAYMENT))?.status).toBe("pending")
      yield* TestClock.adjust("1 day")
      yield* maintained(shared, gateway)
      expect(yield* here.payments.order(PAYMENT)).toMatchObject({ status: "failed", reason: "It was not paid in time" })
      const asked = gateway.calls.length
      yield* maintained(shared, gateway)
      expect(gateway.calls).toHaveLength(asked)
    })
  )

  testing(
    "grants what a host captured that died before it could",
    Effect.gen(function* () {
      const { gateway, here, shared } = yield* begun
      gateway.standing = { ...PENDING, status: "captured", captured: 1_000 }
      yield* here.payments.execute(Payment.paymentIdOf(PAYMENT), Payment.observe(gateway.standing))
      expect(yield* available(here)).toBe(0)
      yield* maintained(shared, gateway)
      expect(yield* available(here)).toBe(ALL)
    })
  )

  testing(
    "learns of a chargeback that is lost, and won by an appeal, without a notice",
    Effect.gen(function* () {
      const { gateway, here, shared } = yield* begun
      const captured: Standing = { ...PENDING, status: "captured", captured: 1_000 }
      const disputed = (status: "open" | "lost" | "won"): Standing => ({
        ...captured,
        disputes: [{ reference: "dp_1", minor: 1_000, status }]
      })
      gateway.standing = captured
      yield* here.checkout.ask(PAYMENT)
      for (const [standing, left] of [
        [captured, ALL],
        [disputed("open"), 500_000],
        [disputed("lost"), 500_000],
        [disputed("won"), ALL]
      ] as const) {
        gateway.standing = standing
        yield* TestClock.adjust("1 day")
        yield* maintained(shared, gateway)
        expect(yield* available(here)).toBe(left)
      }
    })
  )
})

describe("the upkeep of refunds", () => {
  testing(
    "learns that a refund failed without a notice, by reviews of its own",
    Effect.gen(function* () {
      const { gateway, here, shared } = yield* begun
      gateway.standing = { ...PENDING, status: "captured", captured: 1_000 }
      yield* here.checkout.ask(PAYMENT)
      yield* TestClock.adjust("16 days")
      yield* maintained(shared, gateway)
      yield* here.checkout.refund(PAYMENT, { refundId: "a" })
      expect(yield* available(here)).toBe(500_000)
      gateway.standing = { ...gateway.standing, refunds: [{ reference: "a", minor: 1_000, status: "failed" }] }
      yield* TestClock.adjust("1 day")
      yield* maintained(shared, gateway)
      expect(yield* available(here)).toBe(ALL)
    })
  )
})

describe("the manual gateway", () => {
  testing(
    "tells how to pay, and captures what an operator approves",
    Effect.gen(function* () {
      const shared = yield* stores
      const here = yield* host(shared, ManualGateway.layer({ instruction: "Send {amount} {currency} for {payment}" }))
      yield* open(here)
      const context: Context.Context<ManualGateway.ManualPayments> = here.context
      const manual = yield* Effect.provideContext(ManualGateway.ManualPayments, context)
      const { next } = yield* here.checkout.request(order)
      expect(next).toEqual({ _tag: "Instruction", instruction: `Send 10.00 USD for ${PAYMENT}` })
      expect((yield* here.checkout.capture("acc_1", PAYMENT)).status).toBe("pending")
      yield* manual.approve(PAYMENT)
      yield* manual.approve(PAYMENT)
      expect(yield* outcome(manual.reject(PAYMENT))).toBe("AlreadyDecided")
      expect(yield* outcome(manual.approve("pay_other"))).toBe("NotManual")
      expect((yield* here.checkout.ask(PAYMENT)).status).toBe("captured")
      expect(yield* available(here)).toBe(ALL)
      expect(Payment.statusOf(yield* here.checkout.refund(PAYMENT, { refundId: "a" }))).toBe("refunded")
      expect(yield* available(here)).toBe(500_000)
    })
  )

  testing(
    "fails what an operator rejects",
    Effect.gen(function* () {
      const here = yield* host(yield* stores, ManualGateway.layer())
      yield* open(here)
      yield* here.checkout.request(order)
      const manual = yield* Effect.provideContext(ManualGateway.ManualPayments, here.context)
      yield* manual.reject(PAYMENT, "No money came")
      expect(yield* here.checkout.capture("acc_1", PAYMENT)).toMatchObject({ status: "failed", reason: "No money came" })
      expect(yield* outcome(manual.approve(PAYMENT))).toBe("AlreadyDecided")
      expect(yield* available(here)).toBe(0)
    })
  )
})

describe("a payment under faults of the store and of the gateway", () => {
  const fault = fc.constantFrom("before" as const, "lost" as const, "after" as const, "unanswered" as const)
  const plan = fc.dictionary(fc.integer({ min: 1, max: 12 }).map(String), fault, { maxKeys: 3 })
  const gatewayFaults = fc.array(fc.constantFrom("away" as const, "lost" as const, undefined), { maxLength: 6 })

  /** A host that meets the faults goes through the whole life; then a host without faults asks once. */
  const lived = (appends: Readonly<Record<string, "before" | "lost" | "after" | "unanswered">>, faults: ScriptedGateway["faults"]) =>
    Effect.gen(function* () {
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(50), Effect.yieldNow)))
      const gateway = new ScriptedGateway()
      const shared = yield* stores
      const right = yield* host(shared, gateway.layer)
      yield* open(right)
      const faulty: Stores = { ...shared, events: FaultyEventStore.make(shared.events, { plan: { appends } }) }
      const dying = yield* host(faulty, gateway.layer)
      gateway.faults = [...faults]
      yield* outcome(dying.checkout.request(order))
      gateway.standing = AUTHORIZED
      yield* outcome(dying.checkout.capture("acc_1", PAYMENT))
      yield* outcome(dying.checkout.refund(PAYMENT, { refundId: "r", minor: 250 }))
      gateway.faults = []
      yield* right.checkout.request(order)
      const ended = yield* right.checkout.ask(PAYMENT)
      const refunded = gateway.standing.refunds.length > 0 ? 2_500_000 : 0
      return { status: ended.status, balance: yield* available(right), expected: gateway.standing.status, refunded }
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))

  test("has the credits that the gateway's standing implies, once anybody asks", { timeout: 120_000 }, async () => {
    const ends = new Set<string>()
    await fc.assert(
      fc.asyncProperty(plan, gatewayFaults, async (appends, faults) => {
        const { balance, expected, refunded, status } = await Effect.runPromise(lived(appends, faults))
        ends.add(`${status} ${refunded}`)
        expect(status).toBe(expected)
        expect(balance).toBe(status === "captured" ? ALL - refunded : 0)
      }),
      { numRuns: 150, seed: 1 }
    )
    expect(ends.size).toBeGreaterThan(2)
  })
})
