/** Failures that take a store which misbehaves, or a reply that is too long: what the caller is told, and what it costs. */
import { Account, Ledger, Product, ProductIdentity } from "@millrace/core"
import { EventStore, MemoryEventStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Fiber, Layer, Metric, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { type Answer, eventually, host, testing } from "./Host.ts"

const told = ({ status, json, headers }: Answer) => ({ status, json, retry: headers["x-should-retry"], after: headers["retry-after"] })

const problem = (status: number, code: string, retry: "true" | "false", after?: string) => ({
  status,
  json: { error: { code, message: expect.any(String), request_id: expect.any(String) } },
  retry,
  after
})

testing(
  "a host refuses only the stream with an event that it cannot read",
  Effect.gen(function* () {
    const hosts = yield* host()
    const [broken, whole] = [yield* hosts.account(), yield* hosts.account()]
    yield* hosts.run(
      Effect.gen(function* () {
        const events = yield* EventStore.EventStore
        const stream = StreamName.make(Account.Account.category, broken.accountId)
        const last = yield* events.lastRevision(stream)
        yield* events.append(stream, last, [{ id: crypto.randomUUID(), type: "FromTheFuture", data: "{}", metadata: "{}" }])
      })
    )
    const refused = yield* hosts.call("/api/v1/bin/457173", { headers: broken.bearer })
    expect(told(refused)).toEqual(problem(503, "account_unavailable", "false", "60"))
    expect((yield* hosts.call("/api/v1/bin/457173", { headers: whole.bearer })).status).toBe(200)
    const { status, json } = yield* hosts.call("/ready")
    expect([status, json]).toMatchObject([200, { refused: [`account-${broken.accountId}`] }])
  })
)

testing(
  "a host refuses the price history with an event that it cannot read, for free, and answers the others",
  Effect.gen(function* () {
    const hosts = yield* host()
    const { accountId, bearer } = yield* hosts.account()
    const available = hosts.run(Ledger.use((ledger) => Effect.map(ledger.balance(accountId), ({ available }) => available)))
    const before = yield* available
    const id = Product.idOf(ProductIdentity.identityOf({ asin: "B00BROKEN" }) ?? "")
    yield* hosts.run(
      EventStore.EventStore.use((events) =>
        events.append(StreamName.make(Product.Product.category, id), "noStream", [
          { id: crypto.randomUUID(), type: "FromTheFuture", data: "{}", metadata: "{}" }
        ])
      )
    )
    const refused = yield* hosts.call("/api/v1/products/price-history?asin=B00BROKEN", { headers: bearer })
    expect([refused.status, refused.json]).toMatchObject([503, { error: { code: "upstream_unavailable" } }])
    expect(yield* available).toBe(before)
    const { status, json } = yield* hosts.call("/ready")
    expect([status, json]).toMatchObject([200, { refused: [`product-${id}`] }])
    expect((yield* hosts.call("/api/v1/products/price-history?asin=B00WHOLE", { headers: bearer })).status).toBe(200)
  })
)

testing(
  "a host reports, counts and serves an account whose snapshot cannot be stored",
  Effect.gen(function* () {
    const events = Layer.effect(
      EventStore.EventStore,
      Effect.map(MemoryEventStore.make, (store) =>
        EventStore.EventStore.of({
          ...store,
          saveSnapshot: (name, snapshot) =>
            name.startsWith("account")
              ? Effect.fail(new EventStore.StoreUnavailable({ reason: "a test" }))
              : store.saveSnapshot(name, snapshot)
        })
      )
    )
    const { account, call, run } = yield* host({ events })
    const { accountId, bearer } = yield* account()
    const before = yield* call("/ready")
    expect([before.status, before.json]).toMatchObject([200, { status: "ready", unsaved: [] }])
    const suspensions = Array.from({ length: 500 }, () => [{ _tag: "AccountSuspended" }, { _tag: "AccountReinstated" }] as const).flat()
    yield* run(Effect.flatMap(Ledger, (ledger) => ledger.execute(accountId, () => Result.succeed(suspensions))))
    const after = yield* eventually(call("/ready"), ({ body }) => body.includes(accountId))
    expect([after.status, after.json]).toMatchObject([200, { status: "ready", reasons: [], unsaved: [`account-${accountId}`] }])
    const gauges = yield* run(Effect.map(Metric.snapshot, (metrics) => metrics.filter(({ id }) => id === "millrace.streams.unsaved")))
    expect(gauges).toMatchObject([{ state: { value: 1 } }])
    expect((yield* call("/api/v1/bin/457173", { headers: bearer })).status).toBe(200)
  })
)

testing(
  "a call stays open when the store does not answer, and is free without an idempotency key",
  Effect.gen(function* () {
    let isGone = false
    const gone = Effect.fail(new EventStore.StoreUnavailable({ reason: "silence" }))
    const unlessGone = <A, E>(answer: Effect.Effect<A, E>) =>
      Effect.suspend((): Effect.Effect<A, E | EventStore.StoreUnavailable> => (isGone ? gone : answer))
    const events = Layer.effect(
      EventStore.EventStore,
      Effect.map(MemoryEventStore.make, (store) =>
        EventStore.EventStore.of({
          ...store,
          append: (stream, expected, events) =>
            unlessGone(
              Effect.flatMap(store.append(stream, expected, events), (appended) => {
                // Written, but nobody hears of it, nor of anything else
                isGone = events.some(({ type }) => type === "OperationSucceeded")
                return isGone ? Effect.fail(new EventStore.AppendInDoubt({ stream, reason: "silence" })) : Effect.succeed(appended)
              })
            ),
          lastRevision: (stream) => unlessGone(store.lastRevision(stream)),
          readStream: (...given) => (isGone ? Stream.fromEffect(gone) : store.readStream(...given))
        })
      )
    )
    const { call, account, balance } = yield* host({ events })
    const { accountId, bearer } = yield* account()
    const calling = yield* Effect.forkChild(call("/api/v1/bin/457173", { headers: bearer }))
    yield* eventually(
      Effect.sync(() => calling.pollUnsafe()),
      (exit) => exit !== undefined
    )
    const answer = yield* Fiber.join(calling)
    expect(told(answer)).toEqual(problem(503, "outcome_unknown", "true", "2"))
    expect(answer.headers).not.toHaveProperty("x-credits-charged")
    isGone = false
    yield* eventually(balance(accountId), ({ available, held }) => available === 200_000 && held === 0)
  })
)

testing(
  "a reply that is too long is not kept, and its call does not run again",
  Effect.gen(function* () {
    const { call, account, balance, bench } = yield* host()
    const { accountId, bearer } = yield* account()
    const send = call("/api/v1/test/room/work", {
      method: "POST",
      headers: { ...bearer, "idempotency-key": "long" },
      body: { how: "pages" }
    })
    const first = yield* send
    expect([first.status, first.body.length > 1_048_576]).toEqual([201, true])
    expect(told(yield* send)).toEqual(problem(409, "reply_unavailable", "false"))
    expect(bench.started).toHaveLength(1)
    expect((yield* balance(accountId)).available).toBe(198_000)
    yield* TestClock.adjust("1 minute")
  })
)
