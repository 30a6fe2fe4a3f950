/** Hosts on one store, of which one has a wrong clock: it writes nothing, says why, and goes on once its clock is right. */
import { Credits, Decisions, Ledger } from "@millrace/core"
import { EventStore, HashChain } from "@millrace/event-sourcing"
import { KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { PostgresEventStore } from "@millrace/event-store-postgres"
import { WrongClock } from "@millrace/testing"
import { Clock, Context, Deferred, Effect, Fiber, Layer, Logger, type Scope } from "effect"
import { describe, expect, test } from "vitest"
import { KurrentDbStandIn } from "../../packages/event-store-kurrentdb/test/standin/index.ts"
import * as Postgres from "../../packages/event-store-postgres/test/Postgres.ts"
import { type Answer, type Host, host } from "../../packages/http/test/Host.ts"

type On = (apart: WrongClock.Apart) => Effect.Effect<Host, unknown, Scope.Scope>

type Events = Layer.Layer<EventStore.EventStore, unknown>

const onPostgres: Effect.Effect<Events, unknown, Scope.Scope> = Effect.map(Postgres.schema, PostgresEventStore.layer)
const onKurrentDb: Effect.Effect<Events, unknown, Scope.Scope> = Effect.map(KurrentDbStandIn.serve(), ({ url }) =>
  KurrentDbEventStore.layer({ connection: url })
)

/** On a store of its own; each host has its own clock. */
const testing = (
  name: string,
  body: (on: On) => Effect.Effect<unknown, unknown, Scope.Scope>,
  opened: Effect.Effect<Events, unknown, Scope.Scope> = onPostgres
) =>
  test(name, { timeout: 120_000 }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const events = yield* opened
        const on: On = (apart) =>
          Effect.flatMap(WrongClock.make(apart), (clock) =>
            Effect.provideService(host({ events: Layer.fresh(Layer.orDie(events)) }), Clock.Clock, clock)
          )
        yield* body(on)
      }).pipe(Effect.scoped, Effect.asVoid)
    )
  )

const eventually = <A>(question: Effect.Effect<A>, isIt: (answer: A) => boolean): Effect.Effect<A> =>
  Effect.gen(function* () {
    const giveUpAt = performance.now() + 20_000
    for (;;) {
      const answer = yield* question
      if (isIt(answer)) return answer
      if (performance.now() > giveUpAt) throw new Error(`It never came true: ${JSON.stringify(answer)}`)
      yield* Effect.sleep(20)
    }
  })

const finish = ({ bench }: Host) => Deferred.succeed(bench.finish, undefined)

const BIN = "/api/v1/bin/457173"
/** Thousandths. */
const BIN_PRICE = 500
const MINUTE = 60_000

const told = ({ status, headers, json }: Answer) => ({
  status,
  retryAfter: headers["retry-after"],
  shouldRetry: headers["x-should-retry"],
  json
})

const stopped = {
  status: 503,
  retryAfter: "2",
  shouldRetry: "true",
  json: { error: { code: "store_unavailable", message: "The clock of this server is wrong, so it writes nothing. Nothing was charged." } }
}

/** Once its lists have caught up, the clock is the only reason why a host is not ready. */
const isReady = (one: Host) => eventually(one.call("/ready"), ({ status }) => status === 200)

/** By as much as the way to the store and back leaves open. */
const reasonOf = (side: string) =>
  expect.stringMatching(
    new RegExp(`^the clock of this host is (?:59|60)\\.\\d s ${side} its store's: it writes nothing until they agree`, "u")
  )

describe("a host with a wrong clock", () => {
  for (const [store, opened] of Object.entries({ PostgreSQL: onPostgres, KurrentDB: onKurrentDb }))
    testing(
      `writes nothing and says why while ${store} is a minute behind it, and serves once it is set right`,
      (on) =>
        Effect.gen(function* () {
          const apart = { ahead: 0 }
          const one = yield* on(apart)
          const { accountId, bearer } = yield* one.account(200)
          expect((yield* one.call(BIN, { headers: bearer })).status).toBe(200)
          const before = (yield* one.log).length
          const balance = yield* one.balance(accountId)
          yield* isReady(one)
          apart.ahead = MINUTE
          expect(told(yield* one.call(BIN, { headers: bearer }))).toMatchObject(stopped)
          const ready = yield* one.call("/ready")
          expect([ready.status, ready.json]).toMatchObject([503, { status: "not_ready", reasons: [reasonOf("ahead of")] }])
          // What costs nothing is written nowhere
          expect((yield* one.call("/api/v1/account/limits", { headers: bearer })).status).toBe(200)

          // Nor does one begin to write that is started so; others serve
          const [late, right] = yield* Effect.all([on({ ahead: MINUTE }), on({ ahead: 0 })])
          expect(told(yield* late.call(BIN, { headers: bearer }))).toMatchObject(stopped)
          const began = yield* late.call("/ready")
          expect([began.status, began.json]).toMatchObject([503, { reasons: expect.arrayContaining([reasonOf("ahead of")]) }])
          expect((yield* one.log).length).toBe(before)
          expect((yield* right.call(BIN, { headers: bearer })).status).toBe(200)
          expect(yield* right.balance(accountId)).toMatchObject({ available: balance.available - BIN_PRICE, held: 0 })

          apart.ahead = 0
          expect((yield* one.call(BIN, { headers: bearer })).status).toBe(200)
          const again = yield* one.call("/ready")
          expect([again.status, again.json]).toMatchObject([200, { reasons: [] }])
          const times = (yield* one.log).map((event) => Date.parse(HashChain.atOf(event)))
          expect(Math.max(...times)).toBeLessThanOrEqual(Date.now())
        }),
      opened
    )

  testing("writes nothing if it is behind, either", (on) =>
    Effect.gen(function* () {
      const apart = { ahead: 0 }
      const one = yield* on(apart)
      const { accountId, bearer } = yield* one.account(200)
      yield* isReady(one)
      apart.ahead = -MINUTE
      const ready = yield* one.call("/ready")
      expect([ready.status, ready.json]).toMatchObject([503, { status: "not_ready", reasons: [reasonOf("behind")] }])
      const grant = Decisions.grant({ lotId: "lot_late", amount: Credits.of(1_000), source: "promotion" })
      const refused = yield* one.run(Effect.flip(Ledger.use(({ execute }) => execute(accountId, grant))))
      expect(refused).toMatchObject({ _tag: "StoreUnavailable", why: "clock", reason: reasonOf("behind") })
      // So far behind that there is a price by then
      apart.ahead = -4_000
      yield* eventually(one.call(BIN, { headers: bearer }), ({ body }) => !body.includes("operation_not_priced"))
      expect(told(yield* one.call(BIN, { headers: bearer }))).toMatchObject(stopped)
      apart.ahead = 0
      expect((yield* one.call(BIN, { headers: bearer })).status).toBe(200)
      expect(yield* one.balance(accountId)).toMatchObject({ available: 200_000 - BIN_PRICE })
    })
  )

  for (const key of [undefined, "once"])
    testing(
      `keeps no credits for a call that runs upstream, ${key === undefined ? "and answers at once" : "and the same key tells the outcome"}`,
      (on) =>
        Effect.gen(function* () {
          const apart = { ahead: 0 }
          const one = yield* on(apart)
          const right = yield* on({ ahead: 0 })
          const { accountId, bearer } = yield* one.account(200)
          const request = {
            method: "POST",
            headers: { ...bearer, ...(key === undefined ? {} : { "idempotency-key": key }) },
            body: { how: "when told" }
          }
          const running = yield* Effect.forkScoped(one.call("/api/v1/test/a/work", request))
          yield* eventually(
            Effect.sync(() => one.bench.started.length),
            (started) => started === 1
          )
          // Its hold stands, also by this clock
          apart.ahead = 10_000
          yield* finish(one)
          const answer = yield* Fiber.join(running)
          expect(told(answer)).toMatchObject({ status: 503, json: { error: { code: "outcome_unknown" } } })
          expect(yield* right.balance(accountId)).toMatchObject({ available: 198_000, held: 2_000 })

          apart.ahead = 0
          // Given back behind the caller's back, once
          yield* eventually(right.balance(accountId), ({ held }) => held === 0)
          expect(yield* right.balance(accountId)).toMatchObject({ available: 200_000 })
          yield* finish(right)
          const retried = yield* right.call("/api/v1/test/a/work", request)
          expect(retried.status).toBe(201)
          expect(yield* right.balance(accountId)).toMatchObject({ available: 198_000, held: 0 })
          const types = (yield* right.log).filter(({ stream }) => stream === `account-${accountId}`).map(({ type }) => type)
          expect(types.slice(-4)).toEqual(["CreditReserved", "Refunded", "CreditReserved", "OperationSucceeded"])
        })
    )
})

test("a read-only store does not check the host's clock", { timeout: 120_000 }, () =>
  Effect.runPromise(
    Effect.gen(function* () {
      const at = yield* Postgres.schema
      const opened = (options: { readonly readOnly?: boolean }) =>
        Effect.map(Layer.build(Layer.fresh(PostgresEventStore.layer({ ...at, ...options }))), Context.get(EventStore.EventStore))
      const wrong = yield* WrongClock.make({ ahead: MINUTE })
      const writing = yield* Effect.provideService(opened({}), Clock.Clock, wrong)
      expect(yield* Effect.map(writing.clock?.status ?? Effect.undefined, (status) => status?.trouble)).toEqual(reasonOf("ahead of"))
      const looking = yield* Effect.provideService(opened({ readOnly: true }), Clock.Clock, wrong)
      expect([looking.clock, yield* looking.head]).toEqual([undefined, ""])
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([])))
  )
)
