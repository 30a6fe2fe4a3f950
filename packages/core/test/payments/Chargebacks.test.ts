/**
 * An account whose payments are refunded and charged back while it spends them, against a plain sum: what was bought and given, less what
 * went back and what was charged. Hosts settle with what they know, which may be old.
 */
import { Account, type AccountEvent, Credits, Decisions } from "@millrace/core"
import type { Decide } from "@millrace/event-sourcing"
import { Result } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import * as Lots from "../../src/ledger/Lots.ts"
import * as Payment from "../../src/payments/Payment.ts"
import type { Dispute, Standing } from "../../src/payments/PaymentGateway.ts"
import { lotsOf } from "../../src/payments/Payments.ts"
import { PENDING, terms } from "./Gateways.ts"

const PAYMENTS = 3

type Step =
  | { readonly _tag: "capture" | "settle"; readonly payment: number; readonly old: number }
  | { readonly _tag: "refund" | "dispute"; readonly payment: number; readonly minor: number }
  | { readonly _tag: "bounce" | "win" | "lose"; readonly payment: number; readonly which: number }
  | { readonly _tag: "hold"; readonly price: number }
  | { readonly _tag: "charge" | "release"; readonly which: number }

const payment = fc.nat(PAYMENTS - 1)
const which = fc.nat(9)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ _tag: fc.constantFrom("capture" as const, "settle" as const, "settle" as const), payment, old: fc.nat(3) }),
  fc.record({ _tag: fc.constantFrom("refund" as const, "dispute" as const), payment, minor: fc.integer({ min: 1, max: 1_000 }) }),
  fc.record({ _tag: fc.constantFrom("bounce" as const, "win" as const, "lose" as const), payment, which }),
  fc.record({ _tag: fc.constant("hold" as const), price: fc.integer({ min: 1, max: 12_000_000 }) }),
  fc.record({ _tag: fc.constantFrom("charge" as const, "charge" as const, "release" as const), which })
)

/** What happens to a standing. */
const happened = (now: Standing, step: Step, name: string): Standing => {
  if (step._tag === "capture") return now.status === "captured" ? now : { ...now, status: "captured", captured: terms.amount }
  if (now.status !== "captured") return now
  const close = (from: ReadonlyArray<Dispute["status"]>, to: Dispute["status"], at: number): Standing => {
    const closable = now.disputes.filter(({ status }) => from.includes(status))
    const one = closable[at % Math.max(1, closable.length)]
    return { ...now, disputes: now.disputes.map((dispute) => (dispute === one ? { ...dispute, status: to } : dispute)) }
  }
  switch (step._tag) {
    case "refund":
      return { ...now, refunds: [...now.refunds, { reference: name, minor: step.minor, status: "succeeded" }] }
    case "dispute":
      return { ...now, disputes: [...now.disputes, { reference: name, minor: step.minor, status: "open" }] }
    case "bounce": {
      const one = now.refunds[step.which % Math.max(1, now.refunds.length)]
      return { ...now, refunds: now.refunds.map((refund) => (refund === one ? { ...refund, status: "failed" } : refund)) }
    }
    case "win":
      return close(["open", "lost"], "won", step.which)
    case "lose":
      return close(["open"], "lost", step.which)
    default:
      return now
  }
}

/** The credits of a payment by plain arithmetic: what it bought and its bonus, less its part of the money that went back. */
const worthOf = ({ captured, disputes, refunds, status }: Standing): number => {
  if (status !== "captured") return 0
  const back = [...refunds.filter(({ status }) => status !== "failed"), ...disputes.filter(({ status }) => status !== "won")]
  const gone = Math.min(
    captured,
    back.reduce((sum, { minor }) => sum + minor, 0)
  )
  return terms.credits + terms.bonus - Math.floor((terms.credits * gone) / captured)
}

/** An account, its payments, and what was charged. */
class World {
  account = Account.Account.evolve(Account.initial, { _tag: "AccountOpened", sealedEmail: "", emailHash: "" }, 0)
  charged = 0
  now = 0
  readonly seen = new Set<string>()
  readonly #standings: Array<Standing> = Array.from({ length: PAYMENTS }, () => PENDING)
  /** Every state of each payment's stream. */
  readonly #states = Array.from({ length: PAYMENTS }, (_, i) => {
    const requested = { _tag: "PaymentRequested", ...terms, paymentId: `pay_01M7YKD46JCP6VGMKADN3JSPJ${i}` } as const
    return [Payment.Payment.evolve(Payment.Payment.initial, requested, 0)]
  })
  readonly #open: Array<string> = []

  take(step: Step): void {
    this.now++
    switch (step._tag) {
      case "settle":
        return this.settle(step.payment, step.old)
      case "hold": {
        const reservationId = `res_${this.now}`
        const call = { reservationId, requestId: "r", operation: "o", quantity: 1, priceVersion: 1, unitPrice: Credits.of(step.price) }
        if (this.#decide(Decisions.reserve({ ...call, lifetime: 1_000_000 }))) this.#open.push(reservationId)
        return
      }
      case "charge":
      case "release":
        return this.end(step._tag, step.which)
      default: {
        const standing = happened(this.#standings[step.payment] ?? PENDING, step, `x_${this.now}`)
        this.#standings[step.payment] = standing
        return this.#observe(step.payment, standing)
      }
    }
  }

  end(how: "charge" | "release", which: number): void {
    const [reservationId] = this.#open.splice(which % Math.max(1, this.#open.length), 1)
    if (reservationId === undefined) return
    const { amount } = Account.hold(this.account, reservationId) ?? { amount: 0 }
    if (how === "release") this.#decide(Decisions.release(reservationId, "cancelled"))
    else if (this.#decide(Decisions.settle({ reservationId, replyHash: "" }))) this.charged += amount
  }

  /** `old`: by how many events the host is behind. */
  settle(payment: number, old: number): void {
    const states = this.#states[payment] ?? []
    const order = states[Math.max(0, states.length - 1 - old)]?.order
    if (order?.status !== "captured") return
    const [paid, bonus] = lotsOf(order)
    this.#decide(Decisions.grantPaid(paid, bonus))
    this.#decide(Decisions.followPayment(paid.lotId, order.changes))
  }

  finish(): void {
    while (this.#open.length > 0) this.end("charge", 0)
    for (let i = 0; i < PAYMENTS; i++) this.settle(i, 0)
  }

  get expected(): number {
    return this.#standings.reduce((sum, standing) => sum + worthOf(standing), 0) - this.charged
  }

  get actual(): number {
    return Lots.available(this.account.purse.lots, this.now) + Lots.held(this.account.purse.lots) - Account.debt(this.account)
  }

  #observe(payment: number, standing: Standing): void {
    const states = this.#states[payment] ?? []
    const before = states.at(-1) ?? Payment.Payment.initial
    for (const event of Result.getOrThrow(Payment.observe(standing)(before)))
      states.push(Payment.Payment.evolve(states.at(-1) ?? before, event, this.now))
  }

  #decide<E>(decide: Decide<Account.Account, AccountEvent, E>): boolean {
    const events = Result.getOrUndefined(decide(this.account, this.now))
    for (const event of events ?? []) {
      this.seen.add(event._tag)
      this.account = Account.Account.evolve(this.account, event, this.now)
    }
    return events !== undefined && events.length > 0
  }
}

test("an account has what its payments are worth less what it was charged, whatever went back, and whichever host knew", () => {
  const seen = new Set<string>()
  let inDebt = 0
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) => {
      const world = new World()
      for (const step of steps) world.take(step)
      world.finish()
      expect(world.actual).toBe(world.expected)
      for (const tag of world.seen) seen.add(tag)
      if (world.actual < 0) inDebt++
    }),
    { numRuns: 2_000, seed: 1 }
  )
  expect([...seen].sort()).toEqual([
    "ClawbackReversed",
    "CreditReserved",
    "CreditsClawedBack",
    "CreditsGranted",
    "DebtRepaid",
    "OperationSucceeded",
    "Refunded"
  ])
  expect(inDebt).toBeGreaterThan(50)
})
