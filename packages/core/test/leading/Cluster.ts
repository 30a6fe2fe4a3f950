/** Hosts of one cluster in this process, over real links. Each has layers of its own over shared stores. */
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Layer, Schema, type Scope } from "effect"
import { test } from "vitest"
import type * as FaultProxy from "../../../testing/src/FaultProxy.ts"
import { CallsInDoubt } from "../../src/billing/CallsInDoubt.ts"
import { Charge } from "../../src/billing/Charge.ts"
import { PriceBook } from "../../src/billing/PricePlan.ts"
import * as Credits from "../../src/Credits.ts"
import { Leading } from "../../src/leading/Leading.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import * as Millrace from "../../src/Millrace.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import * as Operation from "../../src/work/Operation.ts"
import type { NotFound } from "../../src/work/OperationError.ts"
import { MASTER } from "../vault/Vaults.ts"

const LOOPBACK = { host: "127.0.0.1", port: 0 }
export const PRICE = 1_000

export interface Work {
  /** The name of the host that ran each text. */
  readonly ran: Map<string, Array<string>>
  answer: (text: string) => Effect.Effect<string, NotFound>
}

const operationAt = (name: string, work: Work) =>
  Operation.make("test.say", {
    summary: "Says",
    route: { method: "POST", path: "/say", body: { text: Schema.String } },
    price: PRICE / 1_000,
    // Longer than a host that leaves waits
    timeout: "50 seconds",
    local: true,
    success: Schema.Struct({ text: Schema.String }),
    run: ({ text }) =>
      Effect.suspend(() => {
        work.ran.set(text, [...(work.ran.get(text) ?? []), name])
        return Effect.map(work.answer(text), (text) => ({ data: { text } }))
      })
  })

interface Options {
  /** A proxy before the host, at which the others reach it. */
  readonly behind?: FaultProxy.FaultProxy
  readonly listen?: number
  /** The clock of the host. */
  readonly clock?: Clock.Clock
}

type Stores = Layer.Layer<EventStore.EventStore | StateStore.StateStore>

export const hostOn = (stores: Stores, name: string, work: Work, { behind, clock, listen = 0 }: Options = {}) =>
  Effect.gen(function* () {
    const operation = operationAt(name, work)
    const base = Layer.mergeAll(stores, Layer.orDie(MasterKey.layer(MASTER)))
    const address = behind === undefined ? LOOPBACK : { ...LOOPBACK, port: behind.port }
    const layer = Leading.layer([operation], { address, listen: { ...LOOPBACK, port: listen } }).pipe(
      Layer.provideMerge(Layer.fresh(Millrace.layer({ operations: [operation] }))),
      Layer.provideMerge(base)
    )
    const built = Layer.build(Layer.fresh(layer))
    const context = yield* clock === undefined ? built : Effect.provideService(built, Clock.Clock, clock)
    const services = yield* Effect.provideContext(
      Effect.all({ charge: Charge, ledger: Ledger, leading: Leading, prices: PriceBook, callsInDoubt: CallsInDoubt }),
      context
    )
    let requests = 0
    const call = (accountId: string, text: string, key?: string) =>
      services.charge.run(
        operation,
        { text },
        {
          accountId,
          requestId: `req_${name}_${++requests}`,
          ...(key === undefined ? {} : { idempotency: { key, request: text } })
        }
      )
    return { ...services, name, call }
  })
export type Host = Effect.Success<ReturnType<typeof hostOn>>

export const until = (isIt: () => boolean) =>
  Effect.promise(async () => {
    while (!isIt()) await new Promise((resolve) => setTimeout(resolve, 10))
  })

export const sees = (host: Host, count: number) =>
  until(() => host.leading.hosts().filter(({ state }) => state === "open").length === count)

/** An account whose leader, as `host` sees it, is that host or another. */
export const accountOf = (host: Host, isLed: boolean) =>
  Effect.gen(function* () {
    for (let n = 0; ; n++) {
      const accountId = `acc_${n}`
      if (host.leading.leads(accountId) !== isLed) continue
      yield* host.ledger.execute(accountId, Decisions.open({ sealedEmail: "sealed", emailHash: accountId }))
      yield* host.ledger.execute(accountId, Decisions.grant({ lotId: "lot", amount: Credits.of(10 * PRICE), source: "promotion" }))
      return accountId
    }
  })

export const stores = Effect.gen(function* () {
  return Layer.mergeAll(
    Layer.succeed(EventStore.EventStore, yield* MemoryEventStore.make),
    Layer.succeed(StateStore.StateStore, yield* MemoryStateStore.make)
  )
})

export const testing = (name: string, effect: Effect.Effect<void, unknown, Scope.Scope>) =>
  test(name, { timeout: 30_000 }, () => Effect.runPromise(Effect.scoped(effect)))

export const twoHosts = Effect.gen(function* () {
  const shared = yield* stores
  const work: Work = { ran: new Map(), answer: (text) => Effect.succeed(text.toUpperCase()) }
  const one = yield* hostOn(shared, "one", work)
  const other = yield* hostOn(shared, "other", work)
  yield* Effect.all([sees(one, 1), sees(other, 1)])
  return { shared, work, one, other }
})

export const balanceAt = ({ ledger }: Host, accountId: string) =>
  Effect.map(ledger.balance(accountId), ({ available, held }) => ({ available: Number(available), held: Number(held) }))
