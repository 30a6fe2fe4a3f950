import { Account, type AccountEvent, AccountSnapshot, Decisions, Lots, lotIdOfPayment, Memory, NewestEntries } from "@millrace/core"
import { Aggregate, EventStore, MemoryEventStore } from "@millrace/event-sourcing"
import { Effect, Equal, HashMap, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { credits } from "./Examples.ts"
import { Book } from "./Replay.ts"

const Saved = Schema.fromJsonString(Aggregate.savedSchema(AccountSnapshot.accountSnapshots.state))
const encode = Schema.encodeSync(Saved)
const save = (state: Account.Account): string => encode({ hash: "h".repeat(43), at: 0, state })
const load = (text: string): Account.Account => Schema.decodeUnknownSync(Saved)(text).state

const ulid = (n: number) => String(n).padStart(26, "0")
const START = Date.UTC(2026, 0, 1)
const SECOND = 1_000

const keyOf = (i: number) => `${i}`.padStart(43, "k")

/** Half an hour of an account that makes four keyed calls a second, with thirty calls open at any time. */
const busy = (): Book => {
  const book = new Book()
  book.tell({ _tag: "Open" }, START)
  book.tell({ _tag: "Verify", signUp: 200_000, lotId: `lot_${ulid(0)}` }, START)
  const tell = (decide: Parameters<Book["decide"]>[0], now: number) => expect(book.decide(decide, now)).toBeUndefined()
  for (let i = 0; i < 7_200; i++) {
    const now = START + i * 250
    if (i % 120 === 0) {
      const terms = { lotId: `lot_${ulid(i + 1)}`, amount: 900_000, source: "topup", priority: 40 } as const
      book.tell({ _tag: "Grant", ...terms, expiresAt: now + 3_600 * SECOND }, now)
    }
    const key = { hash: keyOf(i), fingerprint: `${i}`.padStart(43, "f"), since: book.account.memory.recorded }
    const call = { requestId: `req_${i}`, operation: "grammar.check", priceVersion: 1, lifetime: 60 * SECOND, key }
    tell(Decisions.reserve({ reservationId: `res_${ulid(i)}`, quantity: 10, unitPrice: credits(600), ...call }), now)
    const past = `res_${ulid(i - 30)}`
    if (i % 9 === 0) book.tell({ _tag: "Release", reservationId: past, reason: "service_error" }, now)
    else book.tell({ _tag: "Settle", reservationId: past, quantity: 9 }, now)
    if (i % 360 === 2) book.tell({ _tag: "Refund", reservationId: `res_${ulid(i - 40)}`, reason: "goodwill", amount: 600 }, now)
  }
  return book
}

describe("the snapshot of a busy account", () => {
  const { account, log } = busy()
  const { memory, purse } = account

  test("is of an account with many remembered calls", () => {
    expect(log.length).toBeGreaterThan(14_000)
    expect([...purse.holds]).toHaveLength(30)
    expect(HashMap.size(purse.paidLots)).toBe(60)
    expect(HashMap.size(purse.refunds)).toBeGreaterThan(15)
    expect(memory.recorded - memory.forgotten).toBeGreaterThan(1_000)
    expect(purse.lots.length).toBeGreaterThan(20)
  })

  test("has at most 64 KiB", () => {
    expect(Buffer.byteLength(save(account))).toBeLessThanOrEqual(64 * 1024)
  })

  test("restores the account, with older successes marked as forgotten", () => {
    const there = load(save(account))
    expect(Equal.equals({ ...there, memory: 0 }, { ...account, memory: 0 })).toBe(true)
    expect(Equal.equals(AccountSnapshot.save(there), AccountSnapshot.save(account))).toBe(true)
    expect(there.memory.recorded).toBe(memory.recorded)
    expect(there.memory.forgotten).toBe(memory.recorded - Memory.SAVED_SUCCESSES)
    expect(Lots.left(there.purse.lots)).toBe(Lots.left(purse.lots))
  })

  test("gives the same state of each key as the whole account, or a stale lookup", () => {
    const there = load(save(account))
    const now = log.at(-1)?.at ?? 0
    let stale = 0
    for (let i = 0; i < 7_200; i++) {
      for (const since of [0, memory.recorded - 65, memory.recorded - 64, memory.recorded - 1, memory.recorded]) {
        const all = Memory.keyState(memory, { hash: keyOf(i), since }, now)
        const some = Memory.keyState(there.memory, { hash: keyOf(i), since }, now)
        if (some?._tag === "stale") stale++
        else if (since >= there.memory.forgotten) {
          // The reply store knows the successes before the lookup
          const told = all?._tag === "succeeded" && all.number <= there.memory.forgotten ? undefined : all
          expect(some).toEqual(told)
        }
      }
    }
    expect(stale).toBeGreaterThan(1_000)
  })
})

describe("an account in memory", () => {
  test("stays small after any sequence of events", () => {
    const { memory, purse } = busy().account
    for (const generation of [memory.outcomes.newer, memory.outcomes.older])
      expect(NewestEntries.entriesOf(generation).length).toBeLessThanOrEqual(Memory.OUTCOMES)
    for (const generation of [memory.successes.newer, memory.successes.older])
      expect(HashMap.size(generation)).toBeLessThanOrEqual(Memory.SUCCESSES)
    expect(purse.lots.every((lot) => lot.left + lot.held > 0)).toBe(true)
    expect([...memory.openKeys]).toHaveLength(30)
  })
})

describe("an account with 5,000 top-ups", () => {
  test("has a snapshot of about 68 bytes for each", () => {
    let account = Account.initial
    const fold = (event: AccountEvent, at: number) => {
      account = Account.Account.evolve(account, event, at)
    }
    fold({ _tag: "AccountOpened", sealedEmail: "sealed", emailHash: "hash" }, START)
    for (let i = 0; i < 5_000; i++) {
      const paymentRef = `pi_3${String(i).padStart(23, "P")}`
      const [lotId, amount] = [lotIdOfPayment(paymentRef), credits(5_000_000)]
      const at = START + i * 3_600 * SECOND
      fold({ _tag: "CreditsGranted", lotId, amount, source: "topup", priority: 40, expiresAt: null, paymentRef }, at)
      const hold = {
        reservationId: `res_${i}`,
        requestId: "r",
        operation: "o",
        quantity: 1,
        priceVersion: 1,
        amount,
        lots: [{ lotId, amount }]
      }
      fold({ _tag: "CreditReserved", ...hold, expiresAt: at + 1 }, at)
      fold({ _tag: "OperationSucceeded", reservationId: `res_${i}`, charged: amount, quantity: 1, lots: hold.lots, replyHash: "h" }, at)
    }
    const text = save(account)
    expect(Buffer.byteLength(text)).toBeLessThan(5_000 * 70)
    expect(Buffer.byteLength(text)).toBeLessThan(Aggregate.MAX_SNAPSHOT_FACTOR * Aggregate.SNAPSHOT_CHARS)
    expect(Equal.equals(load(text).purse, account.purse)).toBe(true)
  })
})

/** Twice as long as an account remembers anything: from then on, nothing that it has or reads grows. */
const SECONDS = (2 * Memory.KEY_MEMORY) / SECOND
const CALLS = 100 * SECONDS

describe("the start of an account that makes 100 keyed calls a second", () => {
  test(
    "reads at most one snapshot and 1,000 events",
    () =>
      Effect.gen(function* () {
        const inner = yield* MemoryEventStore.make
        const reads = { snapshots: 0, events: 0 }
        const store: EventStore.EventStore["Service"] = {
          ...inner,
          loadSnapshot: (name) => Effect.tap(inner.loadSnapshot(name), (found) => Effect.sync(() => void (found && reads.snapshots++))),
          readStream: (name, options) => Stream.tap(inner.readStream(name, options), () => Effect.sync(() => void reads.events++))
        }
        const open = Effect.provideService(
          Aggregate.make(Account.Account, { snapshots: AccountSnapshot.accountSnapshots }),
          EventStore.EventStore,
          store
        )
        const accounts = yield* open
        yield* accounts.execute("1", Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
        yield* accounts.execute("1", Decisions.grant({ lotId: "lot_1", amount: credits(1_000_000_000), source: "promotion" }))
        for (let second = 0; second < SECONDS; second++) {
          yield* Effect.forEach(
            Array.from({ length: 100 }, (_, i) => second * 100 + i),
            (i) => {
              const key = { hash: keyOf(i), fingerprint: `${i}`.padStart(43, "f"), since: accounts.known("1")?.memory.recorded ?? 0 }
              const call = { requestId: `req_${i}`, operation: "grammar.check", quantity: 1, priceVersion: 1, lifetime: 60 * SECOND, key }
              const reservationId = `res_${ulid(i)}`
              return Effect.andThen(
                accounts.execute("1", Decisions.reserve({ reservationId, unitPrice: credits(10), ...call })),
                accounts.execute("1", Decisions.settle({ reservationId, replyHash: "h".repeat(43) }))
              )
            },
            { concurrency: "unbounded", discard: true }
          )
          yield* TestClock.adjust(SECOND)
        }
        const { revision, state } = yield* accounts.read("1")
        expect(revision).toBe(2 + 2 * CALLS - 1)
        expect(state.memory.recorded).toBe(CALLS)
        Object.assign(reads, { snapshots: 0, events: 0 })
        const started = yield* (yield* open).read("1")
        expect(started.revision).toBe(revision)
        expect(Equal.equals(started.state.purse, state.purse)).toBe(true)
        expect(reads.snapshots).toBe(1)
        // Including the event of the snapshot
        expect(reads.events).toBeLessThanOrEqual(1_000)
      }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise),
    240_000 * (SECONDS / 600)
  )
})
