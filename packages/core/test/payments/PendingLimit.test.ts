/** How many payments of an account may be pending at a time, however many are asked for at once, here and at other hosts. */
import { Decisions } from "@millrace/core"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { stores, testing } from "../accounts/Hosts.ts"
import { outcome } from "../vault/Vaults.ts"
import { PENDING, ScriptedGateway, terms } from "./Gateways.ts"
import { host } from "./Hosts.ts"

type Host = Effect.Success<ReturnType<typeof host>>

const LIMIT = 20
const MANY = 64

const idOf = (i: number): string => `pay_01M7YKD46JCP6VGMKADN3JS${String(i).padStart(3, "0")}`

const orderOf = (i: number, accountId = "acc_1") => {
  const { expiresAt: _, gateway: __, ...asked } = terms
  return { ...asked, accountId, paymentId: idOf(i), description: "10,000 credits" }
}

const buy = ({ checkout }: Pick<Host, "checkout">, i: number, accountId?: string) =>
  outcome(Effect.as(checkout.buy(orderOf(i, accountId)), "success"))

const all = (count: number, run: (i: number) => Effect.Effect<string>) =>
  Effect.forEach(
    Array.from({ length: count }, (_, i) => i),
    run,
    { concurrency: "unbounded" }
  )

const count = (outcomes: ReadonlyArray<string>, one: string): number => outcomes.filter((other) => other === one).length

const opened = Effect.gen(function* () {
  const gateway = new ScriptedGateway()
  const shared = yield* stores
  const here = yield* host(shared, gateway.layer)
  for (const id of ["acc_1", "acc_2"]) yield* here.ledger.execute(id, Decisions.open({ sealedEmail: "", emailHash: id }))
  return { gateway, shared, here }
})

testing(
  "admits exactly as many as may be pending, of many at once, and nothing is written for the others",
  Effect.gen(function* () {
    const { gateway, here } = yield* opened
    const outcomes = yield* all(MANY, (i) => buy(here, i))
    expect([count(outcomes, "success"), count(outcomes, "TooManyPending")]).toEqual([LIMIT, MANY - LIMIT])
    expect(yield* here.book.list({ accountId: "acc_1" })).toHaveLength(LIMIT)
    expect(gateway.calls).toHaveLength(LIMIT)
    // Another account has a limit of its own, and what the host itself requests has none
    expect(yield* buy(here, 100, "acc_2")).toBe("success")
    expect(yield* outcome(Effect.as(here.checkout.request(orderOf(101)), "success"))).toBe("success")
    // A payment that was requested before is the same payment
    const mine = outcomes.indexOf("success")
    expect(yield* buy(here, mine)).toBe("success")
  })
)

testing(
  "has room again as soon as a payment is paid, fails or lapses",
  Effect.gen(function* () {
    const { gateway, here } = yield* opened
    yield* all(LIMIT, (i) => buy(here, i))
    expect(yield* buy(here, LIMIT)).toBe("TooManyPending")
    gateway.standing = { ...PENDING, status: "captured", captured: 1_000 }
    yield* here.checkout.ask(idOf(0))
    expect(yield* buy(here, LIMIT)).toBe("success")
    expect(yield* buy(here, LIMIT + 1)).toBe("TooManyPending")
    gateway.standing = { ...PENDING, status: "failed", reason: "declined" }
    yield* here.checkout.ask(idOf(1))
    expect(yield* buy(here, LIMIT + 1)).toBe("success")
    gateway.standing = PENDING
    yield* TestClock.adjust("1 day")
    yield* here.checkout.lapse(idOf(2))
    const again = yield* all(5, (i) => buy(here, 30 + i))
    expect(count(again, "success")).toBe(1)
  })
)

testing(
  "counts what other hosts admitted",
  Effect.gen(function* () {
    const { gateway, here, shared } = yield* opened
    const there = yield* host(shared, gateway.layer)
    for (let i = 0; i < LIMIT; i++) expect(yield* buy(i % 2 === 0 ? here : there, i)).toBe("success")
    expect([yield* buy(here, 50), yield* buy(there, 51)]).toEqual(["TooManyPending", "TooManyPending"])
    // A host that starts later reads the list as it is stored
    const later = yield* host(shared, gateway.layer)
    expect(yield* buy(later, 52)).toBe("TooManyPending")
  })
)
