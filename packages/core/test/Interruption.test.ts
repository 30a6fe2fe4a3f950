/** A caller that is interrupted, at whatever moment, takes nothing from later callers: a turn, a trial, a place, a wake. */
import { type EventStore, MemoryEventStore, MemoryStateStore, type StateStore } from "@millrace/event-sourcing"
import { Interruption } from "@millrace/testing"
import { Context, Effect, Layer, Result, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { expect, it } from "vitest"
import * as Decisions from "../src/ledger/Decisions.ts"
import { Ledger } from "../src/ledger/Ledger.ts"
import { AccountWatch } from "../src/live/AccountWatch.ts"
import { Checkout } from "../src/payments/Checkout.ts"
import { PaymentBook } from "../src/payments/PaymentBook.ts"
import { Payments } from "../src/payments/Payments.ts"
import { MasterKey } from "../src/vault/MasterKey.ts"
import { Vault } from "../src/vault/Vault.ts"
import { SmsReceiver } from "../src/verification/SmsReceiver.ts"
import { CircuitBreaker } from "../src/work/CircuitBreaker.ts"
import { Pace } from "../src/work/Pace.ts"
import { Watched } from "./billing/Bench.ts"
import { idOf, setting } from "./jobs/JobBench.ts"
import { PAYMENT, ScriptedGateway, terms } from "./payments/Gateways.ts"
import { MASTER } from "./vault/Vaults.ts"

const atEachOperation = (title: string, made: Effect.Effect<Interruption.Interrupted, unknown, Scope.Scope>) =>
  it(title, { timeout: 60_000 }, async () => {
    expect(await Effect.runPromise(Interruption.atEachOperation(made))).toBeGreaterThan(5)
  })

const stores = Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer)

/** Services on stores of their own. */
const build = <A, E>(layer: Layer.Layer<A, E, EventStore.EventStore | StateStore.StateStore>) =>
  Layer.build(Layer.fresh(Layer.provideMerge(layer, stores)))

atEachOperation(
  "the next request has its turn at an upstream",
  Effect.map(build(Pace.layer), (context) => {
    const turn = Context.get(context, Pace).turn("a", { every: "1 millis", patience: "5 seconds" })
    return { interrupted: turn, later: turn }
  })
)

it("the next call is the trial of a circuit", async () => {
  const made = Effect.gen(function* () {
    const { guard, record } = Context.get(yield* build(CircuitBreaker.layer({ failures: 1, openFor: 1_000 })), CircuitBreaker)
    yield* record("a", "failure")
    yield* TestClock.adjust(1_000)
    return { interrupted: guard("a", Effect.yieldNow), later: guard("a", Effect.void) }
  })
  expect(await Effect.runPromise(Effect.provide(Interruption.atEachOperation(made), TestClock.layer()))).toBeGreaterThan(5)
})

atEachOperation(
  "nobody waits for a text message any more",
  Effect.map(
    build(SmsReceiver.layer(["+15005550006"]).pipe(Layer.provide(Vault.layer), Layer.provide(MasterKey.layer(MASTER)))),
    (context) => {
      const { wait, waiting } = Context.get(context, SmsReceiver)
      const caller = { accountId: "acc_1", requestId: "req_1", reservationId: "res_01ARZ3NDEKTSV4RRFF00000000" }
      return {
        interrupted: wait({ number: "+15005550006", identifier: "example", timeout: "10 millis" }, caller),
        later: Effect.map(waiting, (count) => expect(count).toBe(0))
      }
    }
  )
)

const orderOf = (paymentId: string) => {
  const { expiresAt: _, gateway: __, ...asked } = terms
  return { ...asked, paymentId, description: "10,000 credits" }
}

atEachOperation(
  "a payment that was not requested takes no place of a pending one",
  Effect.gen(function* () {
    const layer = Checkout.layer({ pendingLimit: 1 }).pipe(
      Layer.provideMerge(Layer.mergeAll(Payments.layer, PaymentBook.layer, new ScriptedGateway().layer)),
      Layer.provideMerge(Ledger.layer())
    )
    const context = yield* build(layer)
    yield* Context.get(context, Ledger).execute("acc_1", Decisions.open({ sealedEmail: "", emailHash: "" }))
    const { buy } = Context.get(context, Checkout)
    const [one, other] = [orderOf(PAYMENT), orderOf(`${PAYMENT.slice(0, -1)}Q`)]
    const { order } = Context.get(context, Payments)
    return {
      interrupted: buy(one),
      later: Effect.gen(function* () {
        const isRequested = (yield* order(PAYMENT)) !== undefined
        expect(Result.isFailure(yield* Effect.result(buy(other)))).toBe(isRequested)
      })
    }
  })
)

atEachOperation(
  "the next who watches an account is woken",
  Effect.gen(function* () {
    const context = yield* build(Layer.merge(AccountWatch.layer, Ledger.layer()))
    const { watch } = Context.get(context, AccountWatch)
    const open = Context.get(context, Ledger).execute("acc_1", Decisions.open({ sealedEmail: "", emailHash: "" }))
    return {
      interrupted: Effect.scoped(watch("acc_1")),
      later: Effect.scoped(Effect.flatMap(watch("acc_1"), ({ woken }) => Effect.andThen(open, woken)))
    }
  })
)

it("the next job runs in the only place, and nothing stays held", { timeout: 120_000 }, async () => {
  const made = Effect.map(setting({ jobs: { concurrency: 1 } }), ({ accountId, here }) => ({
    interrupted: here.create(accountId),
    later: Effect.gen(function* () {
      const id = idOf(yield* here.create(accountId))
      yield* here.jobs.wait(id, "8 seconds")
      expect((yield* here.read(accountId, id)).status).toBe("succeeded")
      yield* Effect.repeat(Effect.delay(here.balance(accountId), 5), { until: ({ held }) => held === 0 })
    })
  }))
  const each = Effect.provideService(Interruption.atEachOperation(made), Watched, [])
  expect(await Effect.runPromise(each)).toBeGreaterThan(50)
})
