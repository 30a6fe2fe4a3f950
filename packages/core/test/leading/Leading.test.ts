/** Hosts of one cluster in this process, over real links. Each has layers of its own over shared stores in memory. */
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Schedule, Schema, Scope } from "effect"
import { describe, expect, test } from "vitest"
import * as FaultProxy from "../../../testing/src/FaultProxy.ts"
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
import { NotFound } from "../../src/work/OperationError.ts"
import { MASTER } from "../vault/Vaults.ts"

const LOOPBACK = { host: "127.0.0.1", port: 0 }
const PRICE = 1_000

interface Work {
  /** The name of the host that ran each text. */
  readonly ran: Map<string, Array<string>>
  answer: (text: string) => Effect.Effect<string, NotFound>
}

const operationAt = (name: string, work: Work) =>
  Operation.make("test.say", {
    summary: "Says",
    route: { method: "POST", path: "/say", body: { text: Schema.String } },
    price: PRICE / 1_000,
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
}

type Stores = Layer.Layer<EventStore.EventStore | StateStore.StateStore>

const hostOn = (stores: Stores, name: string, work: Work, { behind, listen = 0 }: Options = {}) =>
  Effect.gen(function* () {
    const operation = operationAt(name, work)
    const base = Layer.mergeAll(stores, Layer.orDie(MasterKey.layer(MASTER)))
    const address = behind === undefined ? LOOPBACK : { ...LOOPBACK, port: behind.port }
    const layer = Leading.layer([operation], { address, listen: { ...LOOPBACK, port: listen } }).pipe(
      Layer.provideMerge(Layer.fresh(Millrace.layer({ operations: [operation] }))),
      Layer.provideMerge(base)
    )
    const context = yield* Layer.build(Layer.fresh(layer))
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
type Host = Effect.Success<ReturnType<typeof hostOn>>

const until = (isIt: () => boolean) =>
  Effect.promise(async () => {
    while (!isIt()) await new Promise((resolve) => setTimeout(resolve, 10))
  })

const sees = (host: Host, count: number) => until(() => host.leading.hosts().filter(({ state }) => state === "open").length === count)

/** An account whose leader, as `host` sees it, is that host or another. */
const accountOf = (host: Host, isLed: boolean) =>
  Effect.gen(function* () {
    for (let n = 0; ; n++) {
      const accountId = `acc_${n}`
      if (host.leading.leads(accountId) !== isLed) continue
      yield* host.ledger.execute(accountId, Decisions.open({ sealedEmail: "sealed", emailHash: accountId }))
      yield* host.ledger.execute(accountId, Decisions.grant({ lotId: "lot", amount: Credits.of(10 * PRICE), source: "promotion" }))
      return accountId
    }
  })

const stores = Effect.gen(function* () {
  return Layer.mergeAll(
    Layer.succeed(EventStore.EventStore, yield* MemoryEventStore.make),
    Layer.succeed(StateStore.StateStore, yield* MemoryStateStore.make)
  )
})

const testing = (name: string, effect: Effect.Effect<void, unknown, Scope.Scope>) =>
  test(name, { timeout: 30_000 }, () => Effect.runPromise(Effect.scoped(effect)))

const twoHosts = Effect.gen(function* () {
  const shared = yield* stores
  const work: Work = { ran: new Map(), answer: (text) => Effect.succeed(text.toUpperCase()) }
  const one = yield* hostOn(shared, "one", work)
  const other = yield* hostOn(shared, "other", work)
  yield* Effect.all([sees(one, 1), sees(other, 1)])
  return { shared, work, one, other }
})

const balanceAt = ({ ledger }: Host, accountId: string) =>
  Effect.map(ledger.balance(accountId), ({ available, held }) => ({ available: Number(available), held: Number(held) }))

describe("two hosts", () => {
  testing(
    "run each call at the leader of its account, wherever it arrives, and answer alike",
    Effect.gen(function* () {
      const { one, other, work } = yield* twoHosts
      const led = yield* accountOf(one, true)
      const away = yield* accountOf(one, false)
      const here = yield* one.call(led, "a")
      const there = yield* one.call(away, "b")
      yield* other.call(led, "c")
      expect(Object.fromEntries(work.ran)).toEqual({ a: ["one"], b: ["other"], c: ["one"] })
      expect(there).toEqual({ ...here, requestId: "req_one_2", data: '{"text":"B"}' })
      expect(there.billed).toEqual({ charged: PRICE, balance: 9 * PRICE })
    })
  )

  testing(
    "answer errors, replays and refusals as the leader does",
    Effect.gen(function* () {
      const { one, work } = yield* twoHosts
      const away = yield* accountOf(one, false)
      const first = yield* one.call(away, "a", "key")
      expect(yield* one.call(away, "a", "key")).toEqual({ ...first, replayed: true })
      expect((yield* Effect.flip(one.call(away, "other", "key")))._tag).toBe("KeyReused")
      work.answer = () => Effect.fail(new NotFound({ resource: "word" }))
      expect(yield* Effect.flip(one.call(away, "b"))).toEqual(new NotFound({ resource: "word" }))
      expect((yield* Effect.flip(one.call("acc_none", "b")))._tag).toBe("AccountNotFound")
      expect(yield* balanceAt(one, away)).toEqual({ available: 9 * PRICE, held: 0 })
    })
  )

  testing(
    "end the work at the leader when its caller is gone",
    Effect.gen(function* () {
      const { one, other, work } = yield* twoHosts
      const away = yield* accountOf(one, false)
      const started = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      work.answer = () =>
        Deferred.succeed(started, undefined).pipe(
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
        )
      const calling = yield* Effect.forkChild(one.call(away, "a"))
      yield* Deferred.await(started)
      expect(yield* balanceAt(one, away)).toEqual({ available: 9 * PRICE, held: PRICE })
      yield* Fiber.interrupt(calling)
      yield* Deferred.await(interrupted)
      while ((yield* balanceAt(other, away)).held > 0) yield* Effect.sleep(10)
      expect(yield* balanceAt(one, away)).toEqual({ available: 10 * PRICE, held: 0 })
    })
  )

  testing(
    "share the accounts of a host that leaves, once the calls under way there have ended",
    Effect.gen(function* () {
      const shared = yield* stores
      const work: Work = { ran: new Map(), answer: (text) => Effect.succeed(text) }
      const one = yield* hostOn(shared, "one", work)
      const scope = yield* Scope.make()
      const other = yield* Effect.provideService(hostOn(shared, "other", work), Scope.Scope, scope)
      yield* Effect.all([sees(one, 1), sees(other, 1)])
      const away = yield* accountOf(one, false)
      const started = yield* Deferred.make<void>()
      const proceed = yield* Deferred.make<void>()
      work.answer = (text) => Effect.as(Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(proceed)), text)
      const calling = yield* Effect.forkChild(one.call(away, "a"))
      yield* Deferred.await(started)
      const leaving = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* until(() => one.leading.leads(away))
      work.answer = (text) => Effect.succeed(text)
      yield* one.call(away, "b")
      // Longer than until the row of the host is seen to be gone
      yield* Effect.sleep("2500 millis")
      expect(leaving.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(proceed, undefined)
      expect((yield* Fiber.join(calling)).data).toBe('{"text":"a"}')
      yield* Fiber.join(leaving)
      expect(Object.fromEntries(work.ran)).toEqual({ a: ["other"], b: ["one"] })
      expect(yield* balanceAt(one, away)).toEqual({ available: 8 * PRICE, held: 0 })
    })
  )
})

describe("a link that breaks", () => {
  const partitioned = Effect.gen(function* () {
    const shared = yield* stores
    const work: Work = { ran: new Map(), answer: (text) => Effect.succeed(text) }
    const one = yield* hostOn(shared, "one", work)
    // A port is found by listening on it
    const finding = yield* Scope.make()
    const { port } = yield* Effect.provideService(FaultProxy.make(1), Scope.Scope, finding)
    const proxy = yield* FaultProxy.make(port)
    yield* Scope.close(finding, Exit.void)
    const other = yield* hostOn(shared, "other", work, { behind: proxy, listen: port })
    yield* Effect.all([sees(one, 1), sees(other, 1)])
    return { one, other, proxy, work, away: yield* accountOf(one, false) }
  })

  for (const key of [undefined, "key"]) {
    testing(
      `after a call was sent: its outcome is unknown, and it is never run again (${key ?? "without a key"})`,
      Effect.gen(function* () {
        const { away, one, other, proxy, work } = yield* partitioned
        proxy.set({ down: { _tag: "reset" } })
        const exit = yield* Effect.exit(one.call(away, "a", key))
        expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toMatchObject({ _tag: "OutcomeUnknown" })
        expect(work.ran.get("a")).toEqual(["other"])
        yield* until(() => one.leading.leads(away))
        if (key === undefined) {
          const [promised] = yield* one.callsInDoubt.page()
          expect(promised).toMatchObject({ accountId: away, requestId: "req_one_1" })
          if (promised !== undefined) expect(yield* one.charge.makeFree(promised)).toBe(true)
          expect(yield* balanceAt(one, away)).toEqual({ available: 10 * PRICE, held: 0 })
        } else {
          const retried = yield* Effect.retry(one.call(away, "a", key), { times: 50, schedule: Schedule.spaced("20 millis") })
          expect(retried.data).toBe('{"text":"a"}')
          expect(yield* balanceAt(other, away)).toEqual({ available: 9 * PRICE, held: 0 })
        }
      })
    )
  }

  testing(
    "before a call is sent: it runs here, and the link opens again",
    Effect.gen(function* () {
      const { away, one, proxy, work } = yield* partitioned
      proxy.set({ up: { _tag: "reset" }, down: { _tag: "reset" } })
      proxy.reset()
      yield* until(() => one.leading.leads(away))
      yield* one.call(away, "a")
      proxy.set()
      yield* sees(one, 1)
      yield* one.call(away, "b")
      expect(Object.fromEntries(work.ran)).toEqual({ a: ["one"], b: ["other"] })
    })
  )
})
