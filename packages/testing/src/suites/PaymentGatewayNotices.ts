/** The contract of payment gateways: their notices, which are only hints, and which nobody else can send. */
import assert from "node:assert/strict"
import type { PaymentGateway } from "@millrace/core"
import { Effect } from "effect"
import fc from "fast-check"
import { assertGrew, begun, outcome, pending } from "./PaymentGatewayFixtures.ts"
import type { GatewayContract } from "./PaymentProvider.ts"

type Notice = PaymentGateway.Notice

const without = ({ body, headers }: Notice, name: string): Notice => ({ body, headers: { ...headers, [name]: undefined } })

/** One bit of the body differs. */
const altered = ({ body, headers }: Notice, at: number): Notice => {
  const bytes = Buffer.from(body)
  bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ 1
  return { headers, body: bytes }
}

export const notices: GatewayContract = {
  *"each thing that happens sends a notice that names the payment"(subject) {
    const [gateway, provider] = subject
    const known = yield* begun(subject, "notices")
    yield* provider.notices
    const named = Effect.fnUntraced(function* (what: string) {
      const all = yield* Effect.forEach(yield* provider.notices, gateway.notice)
      assert(
        all.some((references) => references.includes(known.reference)),
        `No notice of ${what}`
      )
      assert(
        all.flat().every((reference) => reference === known.reference),
        `A notice of ${what} names another payment`
      )
    })
    yield* provider.approve(known.reference)
    yield* named("the approval")
    yield* gateway.capture(known)
    yield* named("the capture")
    yield* gateway.refund(known, { refundId: "refund", minor: 5 })
    yield* named("a refund")
    yield* provider.refund(known.reference, 6)
    yield* named("a refund at the gateway")
    const dispute = yield* provider.dispute(known.reference, 7)
    yield* named("a dispute")
    yield* provider.close(dispute, "won")
    yield* named("the end of a dispute")
  },

  *"a notice that is altered, unsigned, or signed by somebody else is refused"(subject) {
    const [gateway, provider] = subject
    const known = yield* begun(subject, "forged")
    yield* provider.approve(known.reference)
    for (const notice of yield* provider.notices) {
      assert.equal(yield* outcome(gateway.notice(notice)), "success")
      assert.equal(yield* outcome(gateway.notice(provider.forge(notice))), "NoticeForged")
      assert.equal(yield* outcome(gateway.notice({ headers: {}, body: notice.body })), "NoticeForged")
      for (const name of Object.keys(notice.headers).filter((name) => name !== "content-type"))
        assert.equal(yield* outcome(gateway.notice(without(notice, name))), "NoticeForged", `without ${name}`)
      for (const at of fc.sample(fc.nat(notice.body.length - 1), { seed: 3, numRuns: 20 }))
        assert.equal(yield* outcome(gateway.notice(altered(notice, at))), "NoticeForged")
    }
  },

  *"notices that come twice, late, in any order, or never lead to the same standing"(subject) {
    const [gateway, provider] = subject
    const known = yield* begun(subject, "disorder")
    yield* provider.approve(known.reference)
    yield* gateway.capture(known)
    yield* provider.refund(known.reference, 300)
    yield* provider.close(yield* provider.dispute(known.reference, 200), "lost")
    const last = yield* gateway.standing(known)
    const sent = yield* provider.notices
    const orders = fc.shuffledSubarray([...sent, ...sent])
    for (const order of fc.sample(orders, { seed: 5, numRuns: 10 })) {
      let before: PaymentGateway.Standing = pending
      for (const notice of order)
        for (const reference of yield* gateway.notice(notice)) {
          const now = yield* gateway.standing({ ...known, reference })
          assertGrew(before, now)
          before = now
        }
      assert.deepEqual(yield* gateway.standing(known), last)
    }
  }
}
