/** The decisions of a price alert: whatever comes in whatever order, they fold, and each fall is found once. */
import { Result } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { invariants } from "../../../testing/src/Invariants.ts"
import * as PriceAlert from "../../src/alerts/PriceAlert.ts"

const terms = (target: string): PriceAlert.Terms => ({ accountId: "acc_1", product: "p", target, sealed: "", reservationId: "res_1" })

const observed = (price: number, revision: number): PriceAlert.Observed => ({ price: `${price / 100}`, currency: null, revision })

type Decide = (alert: PriceAlert.PriceAlert, now: number) => Result.Result<ReadonlyArray<PriceAlert.PriceAlertEvent>, never>

/** Decides, and folds what was decided. */
class Stream {
  alert = PriceAlert.ABSENT
  now = 0
  readonly events: Array<{ readonly event: PriceAlert.PriceAlertEvent; readonly at: number }> = []

  readonly decide = (decision: Decide): ReadonlyArray<PriceAlert.PriceAlertEvent> => {
    const events = Result.getOrThrow(decision(this.alert, this.now))
    for (const event of events) {
      this.alert = PriceAlert.PriceAlert.evolve(this.alert, event, this.now)
      this.events.push({ event, at: this.now })
    }
    return events
  }

  get falls(): number {
    return this.events.filter(({ event }) => event._tag === "PriceAlertReached").length
  }
}

const price = fc.integer({ min: 1, max: 6 }).map((price) => price * 100)

describe("a price alert", () => {
  test("finds each fall once, however often and late prices come again", () =>
    fc.assert(
      fc.property(fc.array(price, { maxLength: 30 }), price, fc.infiniteStream(fc.nat(30)), (prices, target, replayed) => {
        const stream = new Stream()
        stream.decide(PriceAlert.register(terms(`${target / 100}`), null))
        let falls = 0
        let isLow = false
        prices.forEach((price, revision) => {
          if (price <= target && !isLow) falls++
          isLow = price <= target
          stream.decide(PriceAlert.observe(observed(price, revision)))
          // What was read before comes again, in any order
          for (const again of replayed.take(3)) {
            const before = prices[again]
            if (before !== undefined && again <= revision) stream.decide(PriceAlert.observe(observed(before, again)))
          }
        })
        expect(stream.falls).toBe(falls)
      })
    ))

  const mail = fc.record({ fall: fc.integer({ min: 1, max: 4 }), attempt: fc.integer({ min: 1, max: 3 }) })
  const act = fc.oneof(
    fc.record({ _tag: fc.constant("register" as const), price }),
    fc.record({ _tag: fc.constant("observe" as const), price, back: fc.nat(2) }),
    fc.record({ _tag: fc.constant("observe" as const), price, back: fc.constant(0) }),
    fc.record({ _tag: fc.constantFrom("send" as const, "sent" as const, "lost" as const, "refuse" as const), mail }),
    fc.record({
      _tag: fc.constantFrom(
        "sendDue" as const,
        "sendDue" as const,
        "refuseIt" as const,
        "doubt" as const,
        "withhold" as const,
        "end" as const
      )
    }),
    fc.record({ _tag: fc.constant("wait" as const), millis: fc.integer({ min: 0, max: 30 * 3_600_000 }) })
  )
  type Act = typeof act extends fc.Arbitrary<infer A> ? A : never

  /** What an act decides, with the newest revision. */
  const decisionOf = (act: Act, { alert }: Stream, revision: number): Decide => {
    switch (act._tag) {
      case "register":
        return PriceAlert.register(terms(`${act.price / 100}`), revision < 0 ? null : (alert.last ?? observed(act.price, revision)))
      case "observe":
        return PriceAlert.observe(observed(act.price, revision - act.back))
      case "send":
        return PriceAlert.send(act.mail)
      case "sent":
        return PriceAlert.conclude(act.mail, "AlertMailSent")
      case "lost":
        return PriceAlert.conclude(act.mail, "AlertMailInDoubt")
      case "refuse":
        return PriceAlert.refuse(act.mail, "EENVELOPE 451")
      case "sendDue":
        return PriceAlert.send(alert.waiting ?? { fall: 0, attempt: 0 })
      case "refuseIt":
        return PriceAlert.refuse(alert.sending ?? { fall: 0, attempt: 0 }, "ECONNECTION")
      case "withhold":
        return PriceAlert.withhold(alert.waiting?.fall ?? 0, "suspended")
      case "end":
        return PriceAlert.end("unsubscribed")
      default:
        return PriceAlert.doubt
    }
  }

  test("decides only what folds and breaks no invariant, in any order", () => {
    const met = new Set<string>()
    fc.assert(
      fc.property(fc.array(act, { maxLength: 60, size: "max" }), (acts) => {
        const stream = new Stream()
        let revision = -1
        for (const one of acts) {
          if (one._tag === "wait") stream.now += one.millis
          else {
            if (one._tag === "observe" && one.back === 0) revision++
            stream.decide(decisionOf(one, stream, revision))
          }
        }
        const recorded = stream.events.map(({ at, event }) => ({ stream: "priceAlert-a", event, at }))
        expect(invariants(recorded)).toEqual([])
        for (const { event } of stream.events) met.add(event._tag)
      }),
      { numRuns: 2_000, seed: 36 }
    )
    expect([...met].toSorted()).toEqual(Object.keys(PriceAlert.PriceAlertEvent.cases).toSorted())
  })

  test("that is armed knows a price above its target only", () => {
    const stream = new Stream()
    stream.decide(PriceAlert.register(terms("1"), observed(100, 0)))
    expect(stream.alert).toMatchObject({ armed: false, falls: 1, waiting: { fall: 1, attempt: 1 } })
    expect(stream.decide(PriceAlert.register(terms("1.00"), observed(100, 0)))).toHaveLength(1)
    expect(stream.decide(PriceAlert.register(terms("0.999999"), observed(100, 0))).map(({ _tag }) => _tag)).toEqual([
      "PriceAlertRegistered",
      "PriceAlertArmed"
    ])
    expect(stream.alert.waiting).toBeUndefined()
  })
})
