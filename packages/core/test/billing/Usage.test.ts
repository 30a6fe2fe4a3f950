import { EventStore, HashChain, MemoryEventStore, MemoryStateStore, StateStore, StreamName } from "@millrace/event-sourcing"
import { Deferred, Effect, Fiber, Layer, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Arbitraries from "../../../testing/src/Arbitraries.ts"
import { type DayUsage, type Month, monthOf, type OperationUsage, UsageBook, type UsageOptions } from "../../src/billing/Usage.ts"
import { MOVING } from "../../src/billing/UsageDays.ts"
import * as Credits from "../../src/Credits.ts"
import { Account, initial } from "../../src/ledger/Account.ts"
import type { AccountEvent } from "../../src/ledger/AccountEvent.ts"
import * as Postings from "../../src/ledger/Postings.ts"
import { toIso } from "../../src/Timestamp.ts"
import { opened, refunded, reserved, succeeded } from "../ledger/Examples.ts"
import { Book, type Logged } from "../ledger/Replay.ts"
import * as FaultyStateStore from "../vault/FaultyStateStore.ts"
import { checkAsync } from "../vault/Property.ts"
import { all, range, type Stores } from "./Bench.ts"

const ACCOUNT = "acc_1"
const STREAM = StreamName.make(Account.category, ACCOUNT)
const OCTOBER = Date.UTC(2026, 9, 31, 23, 59, 59, 999)
const NOVEMBER = Date.UTC(2026, 10, 1)
const KEY = `${ACCOUNT}/2026-11`
const OPERATIONS = ["bin.lookup", "dns.resolve", "email.validateBatch"]

const { codec } = Account
const stores: Effect.Effect<Stores> = Effect.all({ events: MemoryEventStore.make, states: MemoryStateStore.make })

/** The usage book of one process. */
const host = ({ events, states }: Stores, options: UsageOptions = {}) =>
  Effect.map(
    Layer.build(
      Layer.fresh(UsageBook.layer(options)).pipe(
        Layer.provide(Layer.mergeAll(Layer.succeed(EventStore.EventStore, events), Layer.succeed(StateStore.StateStore, states)))
      )
    ),
    (context) => ({
      read: (month?: Month) =>
        Effect.provideContext(
          Effect.flatMap(UsageBook, (book) => book.read(ACCOUNT, month)),
          context
        )
    })
  )

/** Writes events of the account with their times. */
const writer = ({ events }: Stores) => {
  let hash = HashChain.start(STREAM)
  let next = 0
  return (log: ReadonlyArray<Logged>) =>
    Effect.forEach(log, ({ at, event }) => {
      const revision = next++
      const sealed = HashChain.seal(hash, STREAM, revision, { id: `event ${revision}`, ...codec.encode(event) }, toIso(at), "{}")
      hash = HashChain.hashOf(sealed)
      return events.append(STREAM, revision === 0 ? "noStream" : revision - 1, [sealed])
    })
}

const at = (time: number, ...events: ReadonlyArray<AccountEvent>): ReadonlyArray<Logged> => events.map((event) => ({ at: time, event }))

/** The two events of a call. `amount` in thousandths. */
const call = (n: number, amount = 500, operation = "bin.lookup"): ReadonlyArray<AccountEvent> => [
  reserved(`res_${n}`, { lot: amount }, { operation, quantity: 1 }),
  succeeded(`res_${n}`, { lot: amount }, { quantity: 1 })
]

/** Records the reads of the log: their start and their number of events. */
const watched = (shared: Stores) => {
  const reads: Array<{ readonly from: number | undefined; read: number }> = []
  const readStream: EventStore.EventStore["Service"]["readStream"] = (stream, options) =>
    Stream.suspend(() => {
      const entry = { from: options?.from, read: 0 }
      reads.push(entry)
      return Stream.tap(shared.events.readStream(stream, options), () => Effect.sync(() => entry.read++))
    })
  return { stores: { ...shared, events: { ...shared.events, readStream } }, reads }
}

const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, () => Effect.runPromise(Effect.asVoid(body).pipe(Effect.scoped, Effect.provide(TestClock.layer()))))

const used = (operation: string, of: Partial<Record<"calls" | "units" | "charged" | "refunded" | "uncharged", number>>) => ({
  operation,
  calls: 0,
  units: 0,
  charged: 0,
  refunded: 0,
  uncharged: 0,
  ...of
})

// the model: every ending of the month searches the whole log for its hold

const modelOf = (log: ReadonlyArray<Logged>, month: Month): ReadonlyArray<OperationUsage> => {
  const operations = new Map<string, ReturnType<typeof used>>()
  for (const { at, event } of log) {
    if (monthOf(at) !== month || (event._tag !== "OperationSucceeded" && event._tag !== "Refunded")) continue
    const hold = log.find(
      ({ event: { _tag, ...of } }) => _tag === "CreditReserved" && "reservationId" in of && of.reservationId === event.reservationId
    )
    if (hold?.event._tag !== "CreditReserved") throw new Error("a call that was never held for")
    const usage = operations.get(hold.event.operation) ?? used(hold.event.operation, {})
    operations.set(hold.event.operation, usage)
    if (event._tag === "OperationSucceeded") {
      usage.calls++
      usage.units += event.quantity
      usage.charged += event.charged
    } else if (event.stage === "settled") usage.refunded += event.amount
    else usage.uncharged++
  }
  return [...operations.values()]
    .sort((a, b) => (a.operation < b.operation ? -1 : 1))
    .map(({ charged, refunded, ...usage }) => ({ ...usage, charged: Credits.of(charged), refunded: Credits.of(refunded) }))
}

/** The model of the days: what is posted to the account's credits, available and held, with the whole account known. */
const daysOf = (log: ReadonlyArray<Logged>, month: Month): ReadonlyArray<DayUsage> => {
  const days = new Map<string, { day: string; change: number; charged: number; granted: number }>()
  const own = [Postings.available(ACCOUNT), Postings.reserved(ACCOUNT)]
  let account = initial
  for (const { at, event } of log) {
    const posted = Postings.postings(ACCOUNT, account, event)
    account = Account.evolve(account, event, at)
    if (monthOf(at) !== month || !(MOVING as ReadonlyArray<string>).includes(event._tag)) continue
    const day = toIso(at).slice(0, 10)
    const usage = days.get(day) ?? { day, change: 0, charged: 0, granted: 0 }
    for (const { account, amount } of posted) if (own.includes(account)) usage.change -= amount
    if (event._tag === "OperationSucceeded") usage.charged += event.charged
    if (event._tag === "CreditsGranted") usage.granted += event.amount
    days.set(day, usage)
  }
  return [...days.values()].map(({ charged, granted, ...usage }) => ({
    ...usage,
    charged: Credits.of(charged),
    granted: Credits.of(granted)
  }))
}

/** A valid history of several operations across the beginning of a month. */
const history = fc
  .tuple(Arbitraries.script({ minLength: 10, maxLength: 80 }), fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([script, part]) => {
    const book = new Book()
    for (const { at, command } of script) book.tell(command, at)
    const first = book.log[0]?.at ?? 0
    const last = book.log.at(-1)?.at ?? 0
    const shift = NOVEMBER - Math.round(first + (last - first) * part)
    return book.log.map(({ at, event }): Logged => {
      const operation = event._tag === "CreditReserved" ? OPERATIONS[Number(event.reservationId.slice(4)) % 3] : undefined
      return { at: at + shift, event: event._tag === "CreditReserved" && operation !== undefined ? { ...event, operation } : event }
    })
  })

describe("the usage of a month", () => {
  test("equals the fold of the whole log, at every host, with or without stored rows", () =>
    checkAsync(
      fc.asyncProperty(
        history,
        fc.array(fc.record({ length: fc.nat(40), reader: fc.nat(2), month: fc.constantFrom("2026-10", "2026-11") }), { maxLength: 12 }),
        fc.integer({ min: 1, max: 12 }),
        (log, steps, storeEvery) =>
          Effect.gen(function* () {
            const shared = yield* stores
            const write = writer(shared)
            const readers = [yield* host(shared, { storeEvery }), yield* host(shared, { storeEvery: 2 * storeEvery })]
            let written = 0
            for (const { length, reader, month } of [...steps, { length: log.length, reader: 2, month: "2026-11" }]) {
              const part = log.slice(written, written + length)
              yield* write(part)
              written += part.length
              const now = log[written - 1]?.at ?? 0
              yield* TestClock.setTime(now)
              // The third is always a new one
              const { read } = readers[reader] ?? (yield* host(shared, { storeEvery }))
              const expected = modelOf(log.slice(0, written), month)
              const days = daysOf(log.slice(0, written), month)
              expect(yield* read(month)).toEqual({ month, operations: expected, days, asOf: now })
              expect(yield* read(month)).toEqual({ month, operations: expected, days, asOf: now })
            }
            for (const { key } of yield* shared.states.list("usage")) yield* shared.states.write([{ _tag: "remove", space: "usage", key }])
            for (const month of ["2026-10", "2026-11"])
              for (const { read } of readers) expect((yield* read(month)).operations).toEqual(modelOf(log, month))
          }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)
      ),
      60
    ))

  testing(
    "is that of the current month by default, and counts each event in its own month",
    Effect.gen(function* () {
      const shared = yield* stores
      yield* writer(shared)([
        ...at(OCTOBER, opened, ...call(1), ...call(2, 700, "dns.resolve"), reserved("res_3", { lot: 500 }, { operation: "dns.resolve" })),
        ...at(NOVEMBER, refunded("res_1", { lot: 300 }, { stage: "settled" }), succeeded("res_3", { lot: 500 }, { quantity: 1 })),
        ...at(NOVEMBER, reserved("res_4", { lot: 100 }, { operation: "topics.list" }), refunded("res_4", { lot: 100 }))
      ])
      const { read } = yield* host(shared)
      yield* TestClock.setTime(NOVEMBER)
      expect(yield* read()).toMatchObject({
        month: "2026-11",
        asOf: NOVEMBER,
        operations: [
          used("bin.lookup", { refunded: 300 }),
          used("dns.resolve", { calls: 1, units: 1, charged: 500 }),
          used("topics.list", { uncharged: 1 })
        ]
      })
      expect((yield* read("2026-10")).operations).toEqual([
        used("bin.lookup", { calls: 1, units: 1, charged: 500 }),
        used("dns.resolve", { calls: 1, units: 1, charged: 700 })
      ])
      for (const month of ["2026-09", "2026-12"]) expect((yield* read(month)).operations).toEqual([])
    })
  )

  testing(
    "is empty for an account without calls and for an unknown account",
    Effect.gen(function* () {
      const shared = yield* stores
      const { read } = yield* host(shared)
      expect(yield* read()).toEqual({ month: "1970-01", operations: [], days: [], asOf: 0 })
      yield* writer(shared)(at(OCTOBER, opened))
      expect((yield* read("2026-10")).operations).toEqual([])
      expect(yield* shared.states.list("usage")).toEqual([])
    })
  )
})

describe("the stored row", () => {
  testing(
    "saves reading events again, also in a later process; for a new month only its own events are read",
    Effect.gen(function* () {
      const shared = yield* stores
      const write = writer(shared)
      yield* write([
        ...at(OCTOBER, opened, ...range(500).flatMap((n) => call(n))),
        ...at(NOVEMBER, ...range(50).flatMap((n) => call(500 + n)))
      ])
      yield* TestClock.setTime(NOVEMBER)
      const { stores: ways, reads } = watched(shared)
      const first = yield* host(ways, { storeEvery: 100 })
      expect((yield* first.read()).operations).toMatchObject([{ calls: 50 }])
      expect(reads.at(-1)).toEqual({ from: 1_001, read: 100 })
      // The search for the beginning of the month reads single events
      expect(reads.length).toBeLessThan(14)
      yield* write(at(NOVEMBER, ...call(900)))
      const second = yield* host(ways, { storeEvery: 100 })
      for (const { read } of [first, second]) {
        reads.length = 0
        expect((yield* read()).operations).toMatchObject([{ calls: 51 }])
        expect(reads).toEqual([
          { from: 1_100, read: 1 },
          { from: 1_101, read: 2 }
        ])
      }
    })
  )

  testing(
    "of a month that is over is read alone, with events or without; a log that was cut back before its end is folded again",
    Effect.gen(function* () {
      const shared = yield* stores
      const past = [...at(Date.UTC(2026, 7, 1), opened), ...at(OCTOBER, ...call(1), ...call(2))]
      yield* writer(shared)([...past, ...at(NOVEMBER, ...call(3))])
      yield* TestClock.setTime(NOVEMBER)
      const { stores: ways, reads } = watched(shared)
      const first = yield* host(ways)
      const [october, september] = [yield* first.read("2026-10"), yield* first.read("2026-09")]
      expect([october.operations, september.operations]).toMatchObject([[{ calls: 2 }], []])
      const later = yield* host(ways)
      reads.length = 0
      expect(yield* later.read("2026-10")).toEqual(october)
      expect(yield* later.read("2026-09")).toEqual(september)
      // Only whether the log still has the event that each row was folded to
      expect(reads).toEqual([
        { from: 4, read: 1 },
        { from: 0, read: 1 }
      ])
      const restored = { events: yield* MemoryEventStore.make, states: shared.states }
      yield* writer(restored)(past.slice(0, 3))
      const after = yield* host(restored)
      expect((yield* after.read("2026-10")).operations).toMatchObject([{ calls: 1 }])
    })
  )

  testing(
    "expires after forty days without a change, without a loss",
    Effect.gen(function* () {
      const shared = yield* stores
      yield* TestClock.setTime(NOVEMBER)
      yield* writer(shared)(at(NOVEMBER, opened, ...call(1)))
      const { read } = yield* host(shared, { storeEvery: 1 })
      const before = (yield* read()).operations
      expect((yield* shared.states.list("usage")).map(({ key }) => key)).toEqual([KEY])
      yield* TestClock.adjust("40 days")
      expect(yield* shared.states.list("usage")).toEqual([])
      expect((yield* read("2026-11")).operations).toEqual(before)
    })
  )

  testing(
    "is discarded if it has another version or is malformed",
    Effect.gen(function* () {
      const shared = yield* stores
      yield* TestClock.setTime(NOVEMBER)
      yield* writer(shared)(at(NOVEMBER, opened, ...call(1)))
      const { read } = yield* host(shared, { storeEvery: 1 })
      const { operations } = yield* read()
      const text = Buffer.from((yield* shared.states.get("usage", KEY))?.value ?? []).toString()
      expect(text).toContain('"version":3')
      for (const other of [text.replace('"version":3', '"version":0').replace('"calls":1', '"calls":9'), "{}", "rubbish"]) {
        yield* shared.states.write([{ _tag: "put", space: "usage", key: KEY, value: Buffer.from(other) }])
        expect((yield* read()).operations).toEqual(operations)
        expect(Buffer.from((yield* shared.states.get("usage", KEY))?.value ?? []).toString()).toBe(text)
      }
    })
  )

  testing(
    "is discarded if the log was restored from a backup, also if it has grown since",
    Effect.gen(function* () {
      const { events, states } = yield* stores
      yield* TestClock.setTime(NOVEMBER)
      yield* writer({ events, states })(at(NOVEMBER, opened, ...range(20).flatMap((n) => call(n))))
      const before = yield* host({ events, states }, { storeEvery: 1 })
      expect((yield* before.read()).operations).toMatchObject([{ calls: 20 }])
      const restored = { events: yield* MemoryEventStore.make, states }
      const write = writer(restored)
      const after = yield* host(restored, { storeEvery: 1 })
      yield* write(at(NOVEMBER, opened, ...range(5).flatMap((n) => call(n))))
      expect((yield* after.read()).operations).toMatchObject([{ calls: 5 }])
      yield* states.write([{ _tag: "remove", space: "usage", key: KEY }])
      expect((yield* before.read()).operations).toMatchObject([{ calls: 20 }])
      yield* write(at(NOVEMBER, ...range(40).flatMap((n) => call(100 + n, 700))))
      expect((yield* after.read()).operations).toMatchObject([{ calls: 45, charged: 5 * 500 + 40 * 700 }])
    })
  )

  testing(
    "is written by the first of two concurrent folds, and both return the right usage",
    Effect.gen(function* () {
      const shared = yield* stores
      yield* TestClock.setTime(NOVEMBER)
      const write = writer(shared)
      yield* write(at(NOVEMBER, opened, ...call(1)))
      const other = yield* host(shared, { storeEvery: 1 })
      const meanwhile = Effect.andThen(write(at(NOVEMBER, ...call(2))), other.read())
      // Loads after the first call and stores after the second
      const states = FaultyStateStore.make(shared.states, { 2: meanwhile })
      const { read } = yield* host({ ...shared, states }, { storeEvery: 1 })
      expect((yield* read()).operations).toMatchObject([{ calls: 1 }])
      const text = Buffer.from((yield* shared.states.get("usage", KEY))?.value ?? []).toString()
      expect(text).toContain('"calls":2')
      expect((yield* read()).operations).toMatchObject([{ calls: 2 }])
    })
  )

  testing(
    "may fail to be written, and all events are folded again; but it must be readable",
    Effect.gen(function* () {
      const shared = yield* stores
      yield* TestClock.setTime(NOVEMBER)
      yield* writer(shared)(at(NOVEMBER, opened, ...call(1)))
      const states = FaultyStateStore.make(shared.states, { 2: "before", 4: "after", 6: "before" })
      const { read } = yield* host({ ...shared, states }, { storeEvery: 1 })
      for (const _ of range(2)) expect((yield* read()).operations).toMatchObject([{ calls: 1 }])
      expect((yield* read()).operations).toMatchObject([{ calls: 1 }])
      expect((yield* Effect.flip(read()))._tag).toBe("StateUnavailable")
    })
  )

  testing(
    "is returned with its time if the rest takes too long, and the next request continues from it",
    Effect.gen(function* () {
      const shared = yield* stores
      // The opening, then two events in each millisecond
      yield* writer(shared)([...at(NOVEMBER, opened), ...range(600).flatMap((n) => at(NOVEMBER + n, ...call(n)))])
      yield* TestClock.setTime(NOVEMBER + 600)
      let hangs = true
      const hung = yield* Deferred.make<void>()
      const readStream: EventStore.EventStore["Service"]["readStream"] = (stream, options) => {
        const events = shared.events.readStream(stream, options)
        const hanging = Stream.concat(
          Stream.take(events, 1_100),
          Stream.fromEffect(Effect.andThen(Deferred.succeed(hung, undefined), Effect.never))
        )
        return hangs && options?.limit === undefined ? hanging : events
      }
      const { stores: ways, reads } = watched({ ...shared, events: { ...shared.events, readStream } })
      const { read } = yield* host(ways, { storeEvery: 20, within: 5 })
      const waiting = yield* Effect.forkChild(read(), { startImmediately: true })
      yield* Deferred.await(hung)
      yield* TestClock.adjust(5)
      const kept = { calls: 499, units: 499, charged: 499 * 500 }
      expect(yield* Fiber.join(waiting)).toMatchObject({ month: "2026-11", operations: [used("bin.lookup", kept)], asOf: NOVEMBER + 499 })
      hangs = false
      expect(yield* read()).toMatchObject({ operations: [{ calls: 600 }], asOf: NOVEMBER + 605 })
      // The remaining events, and the reservation of the first ending
      expect(reads.slice(-2)).toEqual([
        { from: 1_000, read: 201 },
        { from: 999, read: 1 }
      ])
    })
  )

  testing(
    "is missing if the first fold takes too long: the usage is empty",
    Effect.gen(function* () {
      const shared = yield* stores
      yield* writer(shared)(at(NOVEMBER, opened, ...call(1)))
      yield* TestClock.setTime(NOVEMBER + 1)
      const { read } = yield* host({ ...shared, events: { ...shared.events, readStream: () => Stream.never } }, { within: 5 })
      const waiting = yield* Effect.forkChild(read(), { startImmediately: true })
      yield* TestClock.adjust(5)
      expect(yield* Fiber.join(waiting)).toMatchObject({ month: "2026-11", operations: [], asOf: NOVEMBER })
    })
  )

  testing(
    "is written by one or some of many concurrent requests, and all return the same",
    Effect.gen(function* () {
      const shared = yield* stores
      yield* TestClock.setTime(NOVEMBER)
      yield* writer(shared)(at(NOVEMBER, opened, ...range(30).flatMap((n) => call(n))))
      const { read } = yield* host(shared, { storeEvery: 1 })
      const answers = yield* Effect.forEach(range(32), () => read(), all)
      for (const { operations } of answers) expect(operations).toMatchObject([{ calls: 30, charged: 15_000 }])
    })
  )
})

describe("a malformed log", () => {
  const refusal = (...events: ReadonlyArray<AccountEvent>) =>
    Effect.gen(function* () {
      const shared = yield* stores
      yield* writer(shared)(at(NOVEMBER, ...events))
      const { read } = yield* host(shared)
      return yield* Effect.flip(read("2026-11"))
    })

  testing(
    "is refused if a call ends without a reservation",
    Effect.gen(function* () {
      for (const ending of [succeeded("res_9", { lot: 1 }), refunded("res_9", { lot: 1 }, { stage: "settled" })])
        expect(yield* refusal(opened, ...call(1), ending)).toMatchObject({
          _tag: "StreamRefused",
          stream: STREAM,
          revision: 3,
          reason: "Reservation res_9 was never made"
        })
    })
  )

  testing(
    "is refused if an event cannot be decoded",
    Effect.gen(function* () {
      const shared = yield* stores
      const [ending] = call(1).slice(1)
      const readStream: EventStore.EventStore["Service"]["readStream"] = (stream, options) =>
        Stream.map(shared.events.readStream(stream, options), (event) =>
          event.type === ending?._tag ? { ...event, data: '{"reservationId":1}' } : event
        )
      yield* writer(shared)(at(NOVEMBER, opened, ...call(1)))
      const { read } = yield* host({ ...shared, events: { ...shared.events, readStream } })
      expect(yield* Effect.flip(read("2026-11"))).toMatchObject({ _tag: "StreamRefused", stream: STREAM, revision: 2 })
    })
  )
})
