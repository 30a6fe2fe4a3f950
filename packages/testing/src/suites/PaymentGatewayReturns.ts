/** The contract of payment gateways: money that goes back, by refunds and by disputes. */
import assert from "node:assert/strict"
import type { PaymentGateway } from "@millrace/core"
import { Effect } from "effect"
import fc from "fast-check"
import { atOnce, nth } from "./Contract.ts"
import { AMOUNT, assertGrew, begun, captured, outcome, pending, sum, whole } from "./PaymentGatewayFixtures.ts"
import type { GatewayContract } from "./PaymentProvider.ts"

export const refunds: GatewayContract = {
  *"a refund that is made twice under one id, also at once, is made once"(subject) {
    const [gateway, provider] = subject
    const known = yield* captured(subject, "refunded")
    const refund = { refundId: "refund_1", minor: 700 }
    const once = yield* gateway.refund(known, refund)
    assert.deepEqual({ ...once, refunds: once.refunds.map(({ minor }) => minor) }, { ...whole, refunds: [700] })
    const all = yield* Effect.forEach(Array.from({ length: 4 }), () => gateway.refund(known, refund), atOnce)
    for (const one of all) assert.deepEqual(one, once)
    assert.equal((yield* provider.made).refunds, 1)
  },

  *"refunds under several ids are several, up to the whole payment"(subject) {
    const [gateway, provider] = subject
    const known = yield* captured(subject, "parts")
    for (const minor of [1, 999, 1_500]) yield* gateway.refund(known, { refundId: `refund_${minor}`, minor })
    const { refunds, status } = yield* gateway.standing(known)
    assert.equal(status, "captured")
    assert.deepEqual(refunds.map(({ minor }) => minor).toSorted(), [1, 1_500, 999])
    assert.equal(yield* outcome(gateway.refund(known, { refundId: "more", minor: 1 })), "GatewayRefused")
    assert.equal((yield* provider.made).refunds, 3)
  },

  *"a refund of more than was captured is refused, and nothing goes back"(subject) {
    const [gateway] = subject
    const known = yield* captured(subject, "too-much")
    assert.equal(yield* outcome(gateway.refund(known, { refundId: "all", minor: AMOUNT.minor + 1 })), "GatewayRefused")
    assert.deepEqual(yield* gateway.standing(known), whole)
  },

  *"a refund of what was not captured is refused"(subject) {
    const [gateway] = subject
    const known = yield* begun(subject, "uncaptured")
    assert.equal(yield* outcome(gateway.refund(known, { refundId: "early", minor: 1 })), "GatewayRefused")
    assert.deepEqual(yield* gateway.standing(known), pending)
  },

  *"a refund that the payer's bank does not take has failed, and its money can go back anew"(subject) {
    const [gateway, provider] = subject
    const known = yield* captured(subject, "untaken")
    const made = yield* gateway.refund(known, { refundId: "first", minor: AMOUNT.minor })
    const reference = nth(made.refunds, 0).reference
    yield* provider.failRefund(reference)
    const failed = { reference, minor: AMOUNT.minor, status: "failed" }
    assert.deepEqual((yield* gateway.standing(known)).refunds, [failed])
    // Under its id it stays what it is
    assert.deepEqual((yield* gateway.refund(known, { refundId: "first", minor: AMOUNT.minor })).refunds, [failed])
    const again = yield* gateway.refund(known, { refundId: "second", minor: AMOUNT.minor })
    assert.deepEqual(sorted(again.refunds.map(({ status }) => (status === "failed" ? 0 : 1))), [0, 1])
    assert.equal((yield* provider.made).refunds, 2)
  },

  *"refunds of an operator at the gateway are listed, all of them"(subject) {
    const [gateway, provider] = subject
    const known = yield* captured(subject, "many")
    for (let i = 1; i <= 120; i++) yield* provider.refund(known.reference, 1 + (i % 3))
    const { refunds } = yield* gateway.standing(known)
    assert.equal(new Set(refunds.map(({ reference }) => reference)).size, 120)
    assert.equal(sum(refunds), 240)
  }
}

/** What happens to a captured payment. */
type Happening =
  | { readonly _tag: "refund" | "dispute"; readonly minor: number }
  | { readonly _tag: "close"; readonly which: number; readonly status: "won" | "lost" }
  | { readonly _tag: "failRefund"; readonly which: number }

const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({ _tag: fc.constantFrom("refund" as const, "dispute" as const), minor: fc.integer({ min: 1, max: 200 }) }),
  fc.record({ _tag: fc.constant("close" as const), which: fc.nat(9), status: fc.constantFrom("won" as const, "lost" as const) }),
  fc.record({ _tag: fc.constant("failRefund" as const), which: fc.nat(9) })
)

export const disputes: GatewayContract = {
  *"a dispute is open until it is won or lost"(subject) {
    const [gateway, provider] = subject
    const known = yield* captured(subject, "disputed")
    for (const status of ["won", "lost"] as const) {
      const reference = yield* provider.dispute(known.reference, 400)
      const find = ({ disputes }: PaymentGateway.Standing) => disputes.filter((dispute) => dispute.reference === reference)
      assert.deepEqual(find(yield* gateway.standing(known)), [{ reference, minor: 400, status: "open" }])
      yield* provider.close(reference, status)
      assert.deepEqual(find(yield* gateway.standing(known)), [{ reference, minor: 400, status }])
    }
    assert.equal((yield* gateway.standing(known)).status, "captured")
  },

  *"all disputes of a payment are listed"(subject) {
    const [gateway, provider] = subject
    const known = yield* captured(subject, "disputes")
    for (let i = 0; i < 120; i++) yield* provider.dispute(known.reference, 2)
    const { disputes } = yield* gateway.standing(known)
    assert.equal(new Set(disputes.map(({ reference }) => reference)).size, 120)
  },

  *"a dispute that was lost is won by an appeal"(subject) {
    const [gateway, provider] = subject
    const known = yield* captured(subject, "appealed")
    const reference = yield* provider.dispute(known.reference, 400)
    for (const status of ["lost", "won"] as const) {
      yield* provider.close(reference, status)
      assert.deepEqual((yield* gateway.standing(known)).disputes, [{ reference, minor: 400, status }])
    }
  },

  *"a standing has what happened so far, whatever it was, and only grows"(subject) {
    const [gateway] = subject
    for (const [run, happenings] of fc.sample(fc.array(happening, { maxLength: 12 }), { seed: 7, numRuns: 15 }).entries()) {
      const known = yield* captured(subject, `run-${run}`)
      const account = new Bank(subject, known.reference)
      let before = yield* gateway.standing(known)
      for (const one of happenings) {
        yield* account.happen(one, before)
        const now = yield* gateway.standing(known)
        assertGrew(before, now)
        assert.deepEqual(byReference(now.refunds), byReference(account.refunds(now)))
        assert.deepEqual(byReference(now.disputes), byReference(account.disputes))
        before = now
      }
    }
  }
}

/** What should be known of a payment, beside the gateway. */
class Bank {
  disputes: ReadonlyArray<PaymentGateway.Dispute> = []
  readonly #refunded: Array<number> = []
  readonly #failed = new Set<string>()
  readonly #subject: Parameters<GatewayContract[string]>[0]
  readonly #payment: string

  constructor(subject: Parameters<GatewayContract[string]>[0], payment: string) {
    this.#subject = subject
    this.#payment = payment
  }

  happen(one: Happening, before: PaymentGateway.Standing) {
    return Effect.gen({ self: this }, function* () {
      const [, provider] = this.#subject
      switch (one._tag) {
        case "refund":
          this.#refunded.push(one.minor)
          return yield* provider.refund(this.#payment, one.minor)
        case "failRefund": {
          if (before.refunds.length === 0) return
          const { reference } = nth(before.refunds, one.which % before.refunds.length)
          this.#failed.add(reference)
          return yield* provider.failRefund(reference)
        }
        case "dispute": {
          const reference = yield* provider.dispute(this.#payment, one.minor)
          this.disputes = [...this.disputes, { reference, minor: one.minor, status: "open" }]
          return
        }
        case "close": {
          // A loss is reversed by an appeal; nothing follows a win
          const closable = this.disputes.filter(({ status }) => status === "open" || (status === "lost" && one.status === "won"))
          if (closable.length === 0) return
          const { reference } = nth(closable, one.which % closable.length)
          this.disputes = this.disputes.map((dispute) => (dispute.reference === reference ? { ...dispute, status: one.status } : dispute))
          return yield* provider.close(reference, one.status)
        }
      }
    })
  }

  /** The refunds as they should be in a standing, which names them. */
  refunds({ refunds }: PaymentGateway.Standing): ReadonlyArray<PaymentGateway.Refund> {
    assert.deepEqual(sorted(refunds.map(({ minor }) => minor)), sorted(this.#refunded))
    return refunds.map((refund) => ({ ...refund, status: this.#failed.has(refund.reference) ? "failed" : "succeeded" }))
  }
}

const sorted = (numbers: ReadonlyArray<number>) => numbers.toSorted((a, b) => a - b)

const byReference = <One extends { readonly reference: string }>(all: ReadonlyArray<One>) =>
  all.toSorted((a, b) => a.reference.localeCompare(b.reference))
