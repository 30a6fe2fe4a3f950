/**
 * The short life of an account, decided by the real ledger on a store behind a network that fails. For each append of that life, the
 * request or the answer is lost, in each way in which a network can lose it. Every decision must have been taken exactly once.
 */
import assert from "node:assert/strict"
import { Audit } from "@millrace/audit"
import {
  CallsInDoubt,
  Charge,
  CircuitBreaker,
  Credits,
  Decisions,
  Jobs,
  Ledger,
  MasterKey,
  PricePlan,
  Recovery,
  Replies,
  Standard,
  Vault
} from "@millrace/core"
import { EventIds, EventStore, HashChain, MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import type { FaultProxy } from "@millrace/testing"
import { Clock, Effect, Exit, Layer, Schema, type Scope, Stream } from "effect"

export type Store = EventStore.EventStore["Service"]

/** One log, reached in two ways. */
export interface Ways {
  readonly proxy: FaultProxy.FaultProxy
  /** Through the proxy. Its deadline is {@link DEADLINE}. */
  readonly store: Store
  /** Not through the proxy. */
  readonly direct: Store
}

/** Milliseconds. A store may count its deadline in steps; an answer after {@link TOO_LATE} is late for any store. */
export const DEADLINE = 1_000
const TOO_LATE = 2 * DEADLINE

interface Loss {
  readonly faults: FaultProxy.Faults
  /** Whether the append was carried out when the ledger is told that there is no answer; left out where that is a race. */
  readonly written?: boolean
}

/** Bytes: fewer than any append has, and than any answer has. */
const [PART_OF_REQUEST, PART_OF_ANSWER] = [60, 3]

/** How an append is lost: its request, before it is carried out, or its answer, after it was. */
export const LOSSES: Readonly<Record<string, Loss>> = {
  "the request is reset": { faults: { up: { _tag: "reset" } }, written: false },
  "the request is cut short": { faults: { up: { _tag: "cut", after: PART_OF_REQUEST } }, written: false },
  "the request finds the connection half open": { faults: { up: { _tag: "halfOpen" } }, written: false },
  "the request is swallowed": { faults: { up: { _tag: "blackHole" } }, written: false },
  "the request comes too late": { faults: { up: { _tag: "delay", millis: TOO_LATE } } },
  "the answer is reset": { faults: { down: { _tag: "reset" } }, written: true },
  "the answer is cut short": { faults: { down: { _tag: "cut", after: PART_OF_ANSWER } }, written: true },
  "the answer finds the connection half open": { faults: { down: { _tag: "halfOpen" } }, written: true },
  "the answer is swallowed": { faults: { down: { _tag: "blackHole" } }, written: true },
  "the answer comes too late": { faults: { down: { _tag: "delay", millis: TOO_LATE } }, written: true }
}

/**
 * The appends of {@link life}: prices, opening, verification, grant, two appends each of a call that is settled, of one that is refunded,
 * and of one whose host died, whose hold the sweep refunds.
 */
const APPENDS = 10

const SIGN_UP = 2_000
const TOP_UP = 5_000
const LIFETIME = 60_000
const account = "acc_01JA"
const stream = `account-${account}` as const

/** An append of this event is refused, because its stream has no event. */
const WARM: EventStore.EventData = { id: "00000000-0000-7000-9000-000000000000", type: "Warmed", data: "{}", metadata: "{}" }

/** Milliseconds since 1970. */
const CALLED = Date.parse("2026-01-30T20:00:00.000Z")

/** A clock that stands still, so that each run writes the same bytes. Sleep is real. */
const standingAt = (now: number): Layer.Layer<never> =>
  Layer.effect(
    Clock.Clock,
    Effect.map(Clock.Clock, (clock) => ({
      currentTimeMillisUnsafe: () => now,
      currentTimeMillis: Effect.succeed(now),
      currentTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
      currentTimeNanos: Effect.succeed(BigInt(now) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      sleep: (duration) => clock.sleep(duration)
    }))
  )

/** The ledger and the prices of a host, with the same event ids in each run. */
const ledgerOf = (host: number, store: Store) => {
  let ids = 0
  const newId = () => `00000000-0000-7000-800${host}-${(++ids).toString(16).padStart(12, "0")}`
  return Layer.mergeAll(Ledger.layer(), Layer.orDie(PricePlan.PriceBook.layerOf(PricePlan.ownOf(Standard.operations)))).pipe(
    Layer.provide([Layer.succeed(EventIds, newId), Layer.succeed(EventStore.EventStore, store)])
  )
}

/** Answers the price of a call. */
const calls = Effect.gen(function* () {
  const ledger = yield* Ledger
  const operation = "grammar.check"
  const { unitPrice, version } = yield* PricePlan.PriceBook.use((book) => book.quote(operation))
  const reserve = (reservationId: string) => {
    const requestId = `request of ${reservationId}`
    return Decisions.reserve({ reservationId, requestId, operation, quantity: 1, priceVersion: version, unitPrice, lifetime: LIFETIME })
  }
  const settle = Decisions.settle({ reservationId: "res_1", replyHash: "reply" })
  const release = Decisions.release("res_2", "service_error")
  yield* ledger.execute(account, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
  yield* ledger.execute(account, Decisions.verify(Credits.of(SIGN_UP), "lot_signup"))
  yield* ledger.execute(
    account,
    Decisions.grant({ lotId: "lot_topup", amount: Credits.of(TOP_UP), source: "topup", expiresAt: null, paymentRef: "pay_1" })
  )
  yield* ledger.execute(account, reserve("res_1"))
  yield* ledger.execute(account, settle)
  yield* ledger.execute(account, reserve("res_2"))
  yield* ledger.execute(account, release)
  // A repeated command decides nothing more
  for (const again of [settle, release]) assert.deepEqual((yield* ledger.execute(account, again)).events, [])
  yield* ledger.execute(account, reserve("res_3"))
  return unitPrice
})

const patiently = <A, E, R>(look: Effect.Effect<A, E, R>, is: (found: A) => boolean): Effect.Effect<A, E, R> =>
  Effect.timeoutOrElse(Effect.repeat(Effect.delay(look, 5), { until: (found) => is(found) }), {
    duration: "60 seconds",
    orElse: () => Effect.die(new Error("Left hanging"))
  })

/** Another host, at the instant at which the hold of the first host is due. Waits until its sweep has ended the hold. */
const sweep = (store: Store, direct: Store) => {
  const billing = Recovery.layer([]).pipe(
    Layer.provide(Charge.Charge.layer()),
    Layer.provide(Layer.mergeAll(Replies.layer, CallsInDoubt.layer, CircuitBreaker.layer(), Jobs.layer())),
    Layer.provide(Layer.orDie(Vault.Vault.layer)),
    // Only the ledger uses the store that fails
    Layer.provide([Layer.succeed(EventStore.EventStore, direct), MemoryStateStore.layer, Layer.orDie(MasterKey.layer("5a".repeat(32)))]),
    Layer.provideMerge(ledgerOf(2, store))
  )
  const due = CALLED + LIFETIME
  const ended = (before: EventStore.ExpectedRevision) =>
    Effect.gen(function* () {
      const { overdue } = yield* Recovery
      yield* patiently(direct.lastRevision(stream), (last) => last !== before)
      yield* patiently(overdue(due), ({ length }) => length === 0)
    })
  return Effect.flatMap(direct.lastRevision(stream), (before) =>
    Effect.provide(ended(before), Layer.fresh(Layer.provide(billing, standingAt(due))))
  )
}

/** The whole life of the account, on a store that may fail. */
const life = (store: Store, direct: Store) =>
  Effect.gen(function* () {
    const price = yield* Effect.provide(calls, Layer.fresh(Layer.provide(ledgerOf(1, store), standingAt(CALLED))))
    yield* sweep(store, direct)
    return price
  })

/** The log without its positions, which differ between stores. */
const logOf = (store: Store) =>
  Effect.map(Stream.runCollect(store.readAll(EventStore.start)), (events) => events.map(({ position: _, ...event }) => event))

/** The log of a life in which nothing fails. */
const untroubled = Effect.gen(function* () {
  const store = yield* MemoryEventStore.make
  yield* life(store, store)
  return yield* logOf(store)
})

/** The store, which loses one append when it is first sent. `told` is what the ledger was told of it, first and last. */
const losing = ({ direct, proxy, store }: Ways, nth: number, { faults, written }: Loss) => {
  const batches: Array<string> = []
  const told: { written?: boolean; first?: string; last?: string } = {}
  const append: Store["append"] = (stream, expected, events) =>
    Effect.suspend(() => {
      const { id } = events[0]
      const send = store.append(stream, expected, events)
      if (batches.includes(id)) {
        return id === batches[nth] ? Effect.onExit(send, (exit) => Effect.sync(() => Object.assign(told, { last: tagOf(exit) }))) : send
      }
      if (batches.push(id) !== nth + 1) return send
      proxy.set(faults, 1)
      const isThere = Effect.map(direct.lastRevision(stream), (last) => last === (expected === "noStream" ? -1 : expected) + events.length)
      return Effect.onExit(send, (exit) =>
        Effect.gen(function* () {
          proxy.set()
          const isWritten = yield* written === true ? patiently(isThere, (is) => is) : isThere
          Object.assign(told, { first: tagOf(exit), ...(written === undefined ? {} : { written: isWritten }) })
        })
      )
    })
  return { lossy: { ...store, append }, batches, told }
}

const tagOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string =>
  Exit.isSuccess(exit) ? "appended" : exit.cause.reasons.map((reason) => (reason._tag === "Fail" ? reason.error._tag : reason._tag)).join()

const Hold = Schema.fromJsonString(Schema.Struct({ reservationId: Schema.String, expiresAt: Schema.String }))
const Ending = Schema.fromJsonString(Schema.Struct({ reservationId: Schema.String }))

/** How each reservation ended. Fails unless each ended once, and before its hold expired. */
const endingsOf = (log: ReadonlyArray<Omit<EventStore.RecordedEvent, "position">>) => {
  const open = new Map<string, string>()
  const endings: Array<string> = []
  for (const event of log) {
    const { data, type } = event
    if (type === "CreditReserved") {
      const { reservationId, expiresAt } = Schema.decodeUnknownSync(Hold)(data)
      open.set(reservationId, expiresAt)
    }
    if (type !== "OperationSucceeded" && type !== "Refunded") continue
    const { reservationId } = Schema.decodeUnknownSync(Ending)(data)
    const until = open.get(reservationId)
    assert(until !== undefined && open.delete(reservationId), `${reservationId} is not open, and ends`)
    assert(HashChain.atOf(event) <= until, `${reservationId} ends after its time`)
    endings.push(`${reservationId} ${type}`)
  }
  assert.deepEqual([...open.keys()], [], "a hold that nobody ends")
  return endings
}

/** Runs the life on a new log with one append lost, and checks that everything was decided once and that the log is sound. */
export const survive = (open: Effect.Effect<Ways, unknown, Scope.Scope>, nth: number, loss: Loss) =>
  Effect.gen(function* () {
    const ways = yield* open
    const { lossy, batches, told } = losing(ways, nth, loss)
    const expected = yield* untroubled
    // Connects first, so that the fault meets the append and not the connection
    yield* Effect.exit(ways.store.append("warm-1", 5, [WARM]))
    const price = yield* life(lossy, ways.direct)

    assert.equal(batches.length, APPENDS)
    const { faults: _, ...written } = loss
    assert.deepEqual(told, { ...written, first: "AppendInDoubt", last: "appended" })
    const log = yield* logOf(ways.direct)
    assert.deepEqual(log, expected)
    assert.deepEqual(endingsOf(log), ["res_1 OperationSucceeded", "res_2 Refunded", "res_3 Refunded"])
    const balance = Ledger.use(({ balance }) => balance(account)).pipe(
      Effect.provide(Layer.fresh(Layer.provide(ledgerOf(3, ways.direct), standingAt(CALLED + LIFETIME))))
    )
    const { available, debt, held, holds } = yield* balance
    assert.deepEqual({ available, debt, held, holds }, { available: SIGN_UP + TOP_UP - price, debt: 0, held: 0, holds: [] })
    const { ok, problems } = yield* Effect.provideService(Audit.run(), EventStore.EventStore, ways.direct)
    assert.deepEqual({ ok, problems }, { ok: true, problems: [] })
  })

/** Runs a life for each append of {@link life}, with that append lost: all lives at once. */
export const surviveAll = (open: Effect.Effect<Ways, unknown, Scope.Scope>, loss: Loss): Promise<void> => {
  const every = Array.from({ length: APPENDS }, (_, nth) =>
    Effect.mapError(Effect.scoped(survive(open, nth, loss)), (error) => new Error(`append ${nth}`, { cause: error }))
  )
  return Effect.runPromise(Effect.asVoid(Effect.all(every, { concurrency: "unbounded" })))
}
