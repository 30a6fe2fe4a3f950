import { Clock, Effect, Exit, Fiber, Latch, Layer, Option, Result, Schema, Scope, Stream, Struct } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../testing/src/FaultyEventStore.ts"
import * as Aggregate from "../src/Aggregate.ts"
import { appendBytes, EventStore, MAX_APPEND_BYTES, type RecordedEvent, StoreUnavailable, WrongRevision } from "../src/EventStore.ts"
import * as HashChain from "../src/HashChain.ts"
import * as MemoryEventStore from "../src/MemoryEventStore.ts"
import { audit, decode, forgetful, logOf, run, skewed } from "./Schedule.ts"
import { pass, settle } from "./Simulated.ts"
import { empty, Full, pay, Till, type TillEvent, till } from "./Till.ts"

/** `MILLRACE_SOAK` multiplies the number of schedules. */
const SCHEDULES = 2_000 * Number(process.env["MILLRACE_SOAK"] ?? 1)
const CHUNKS = 4

type Store = EventStore["Service"]
type Till_ = Aggregate.Aggregate<Till, TillEvent>

const testing = (name: string, body: Effect.Effect<unknown, unknown, EventStore | Scope.Scope>) =>
  test(name, () =>
    Effect.runPromise(Effect.asVoid(body).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(MemoryEventStore.layer, TestClock.layer()))))
  )

const over = (store: Store, options?: Aggregate.Options<Till>) => Effect.provideService(Aggregate.make(till, options), EventStore, store)

const paid = (key: string, amount: number): TillEvent => ({ _tag: "Paid", key, amount })

/** Lets the test clock advance by itself. */
const ticking = Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(50), Effect.yieldNow)))

/** Starts all effects at once, in this order. */
const together = <A, E>(...commands: ReadonlyArray<Effect.Effect<A, E>>) =>
  Effect.forEach(commands, Effect.exit, { concurrency: "unbounded" })

const tagOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string =>
  Exit.isSuccess(exit) ? "ok" : Option.match(Exit.findErrorOption(exit), { onNone: () => "defect", onSome: ({ _tag }) => _tag })

const keysIn = (log: ReadonlyArray<RecordedEvent>) => log.map(decode).map((event) => (event._tag === "Paid" ? event.key : ""))

/** A store whose appends take this long. */
const slow = (store: Store, millis: number): Store => ({ ...store, append: (...append) => Effect.delay(store.append(...append), millis) })

describe("any schedule", () => {
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    const seeds = Array.from({ length: SCHEDULES / CHUNKS }, (_, i) => 1 + i * CHUNKS + chunk)
    test(
      `keeps every acknowledged outcome: seeds ${chunk + 1}, ${chunk + 1 + CHUNKS}, ... (${seeds.length})`,
      async () => {
        const all: Record<string, number> = {}
        for (const seed of seeds) {
          const { told } = await Effect.runPromise(run(seed))
          for (const [what, times] of Object.entries(told)) all[what] = (all[what] ?? 0) + times
        }
        // Shows that the schedules still meet these cases
        for (const what of ["written", "nothing", "Full", "Busy", "StoreUnavailable", "AppendInDoubt", "ConditionFailed", "conditional"])
          expect(all[what]).toBeGreaterThan(0)
      },
      600_000 * Number(process.env["MILLRACE_SOAK"] ?? 1)
    )
  }

  test("is repeated exactly by the same seed", async () => {
    for (const seed of [3, 14, 159]) expect(await Effect.runPromise(run(seed))).toEqual(await Effect.runPromise(run(seed)))
  })
})

describe("a refusal that tells the newer events", () => {
  /** Two processes take turns at one till, so every command meets the other's events. Returns what each process answered last. */
  const contest = Effect.fnUntraced(function* (store: Store) {
    let reads = 0
    const counting: Store = {
      ...store,
      readStream: (...of) => {
        reads++
        return store.readStream(...of)
      }
    }
    const [one, two] = [yield* over(counting), yield* over(counting)]
    yield* ticking
    yield* one.execute("a", pay("one", 1))
    yield* two.execute("a", pay("two", 1))
    reads = 0
    const answers = []
    for (let n = 0; n < 10; n++) answers.push(yield* (n % 2 === 0 ? one : two).execute("a", pay(`${n}`, 1, 1 + (n % 3))))
    const states = audit(yield* logOf(store, "a"), "till-a")
    for (const { state, revision } of answers) expect(state).toEqual(states[revision + 1])
    return reads
  })

  /** The store with what it tells changed. */
  const telling = (store: Store, change: (newer: ReadonlyArray<RecordedEvent>) => ReadonlyArray<RecordedEvent>): Store => ({
    ...store,
    append: (...of) =>
      Effect.mapError(store.append(...of), (error) =>
        error._tag === "WrongRevision" && error.newer !== undefined
          ? new WrongRevision({ stream: error.stream, actual: error.actual, newer: change(error.newer) })
          : error
      )
  })

  testing(
    "leads to the same states and the same hash chain as reading the stream, and nothing is read",
    Effect.gen(function* () {
      expect(yield* contest(yield* EventStore)).toBe(0)
    })
  )

  for (const [what, change] of [
    ["is empty", () => []],
    ["has a gap", (newer) => newer.slice(1)],
    ["has other data", (newer) => newer.map((event) => ({ ...event, data: `${event.data.replace("Paid", "paid")} ` }))],
    ["is of another stream", (newer) => newer.map((event) => ({ ...event, stream: "till-b" as const }))]
  ] satisfies ReadonlyArray<readonly [string, (newer: ReadonlyArray<RecordedEvent>) => ReadonlyArray<RecordedEvent>]>)
    testing(
      `is not used where it ${what}: the stream is read`,
      Effect.gen(function* () {
        expect(yield* contest(telling(yield* EventStore, change))).toBeGreaterThan(0)
      })
    )

  testing(
    "may leave out the last events: then the next append is refused in turn",
    Effect.gen(function* () {
      yield* contest(telling(yield* EventStore, (newer) => newer.slice(0, 1)))
    })
  )
})

describe("a fault at every single call", () => {
  type Said = readonly [tag: string, total: number, events: number]

  /** Two processes take turns at two tills. A command that fails with `StoreUnavailable` is retried. */
  const script = (options: FaultyEventStore.Options, wrap: (store: Store) => Store = (store) => store) =>
    Effect.gen(function* () {
      const memory = yield* EventStore
      yield* ticking
      const faulty = FaultyEventStore.make(wrap(memory), { lateBy: 300, ...options })
      const snapshots = { version: 1, state: Till, every: 2 }
      const a = yield* over(faulty, { snapshots })
      const b = yield* over(faulty, { snapshots, idleAfter: 30 })
      const said: Array<Said> = []
      const failures: Array<string> = []
      const ask = (host: Till_, id: string, decide: ReturnType<typeof pay>) =>
        host.execute(id, decide).pipe(
          Effect.tapError((error) => Effect.sync(() => error._tag !== "Full" && failures.push(error._tag))),
          Effect.retry({ while: (error) => error._tag === "StoreUnavailable", times: 3 }),
          Effect.matchEffect({
            onFailure: (error) => Effect.sync(() => said.push([error._tag, error._tag === "Full" ? error.total : -1, 0])),
            onSuccess: ({ state, events }) => Effect.sync(() => said.push(["ok", state.total, events.length]))
          })
        )
      yield* ask(a, "x", pay("1", 40))
      yield* ask(b, "x", pay("2", 20, 2))
      yield* ask(a, "x", pay("2", 20))
      yield* ask(a, "y", pay("1", 5))
      yield* ask(a, "x", pay("3", 30))
      yield* ask(b, "x", pay("3", 10))
      yield* ask(b, "y", pay("4", 5, 3))
      yield* ask(a, "x", empty)
      yield* Effect.sleep(100)
      yield* ask(b, "x", empty)
      yield* ask(b, "x", pay("5", 100))
      yield* ask(a, "y", pay("5", 1))
      yield* Effect.sleep(1_000)
      const logs = [yield* logOf(memory, "x"), yield* logOf(memory, "y")] as const
      audit(logs[0], "till-x")
      audit(logs[1], "till-y")
      return { said, failures, keys: logs.map(keysIn), appends: faulty.trace.filter(({ call }) => call === "append").length }
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(MemoryEventStore.layer, TestClock.layer())))

  const rival = FaultyEventStore.rival(() => ({ type: "Paid", data: JSON.stringify({ key: "rival", amount: 0 }) }))

  test("changes neither answers nor log once each command is retried", async () => {
    const plain = await Effect.runPromise(script({}))
    expect(plain.failures).toEqual([])
    expect(plain.appends).toBeGreaterThan(8)
    for (let n = 1; n <= plain.appends; n++)
      for (const fault of FaultyEventStore.faults) {
        const { said, failures, keys } = await Effect.runPromise(script({ plan: { appends: { [n]: fault } } }))
        expect({ n, fault, said, keys }).toEqual({ n, fault, said: plain.said, keys: plain.keys })
        expect(failures).toEqual(fault === "before" ? ["StoreUnavailable"] : [])
      }
  })

  test("changes neither when the resent append fails too, even at a store that does not recognize a resent append", async () => {
    const plain = await Effect.runPromise(script({}))
    for (let n = 1; n <= plain.appends; n++)
      for (const first of ["after", "lost", "unanswered"] as const)
        for (const second of FaultyEventStore.faults)
          for (const wrap of [undefined, forgetful]) {
            const { said, failures, keys } = await Effect.runPromise(script({ plan: { appends: { [n]: first, [n + 1]: second } } }, wrap))
            expect({ n, first, second, said, keys }).toEqual({ n, first, second, said: plain.said, keys: plain.keys })
            expect(failures).toEqual([])
          }
  })

  test("reads what another writer appended first, and decides the command again", async () => {
    const plain = await Effect.runPromise(script({}))
    for (let n = 1; n <= plain.appends; n++) {
      const { said, failures, keys } = await Effect.runPromise(script({ plan: { appends: { [n]: "conflict" } }, rival }))
      expect({ n, said, keys: keys.map((all) => all.filter((key) => key !== "rival")) }).toEqual({ n, said: plain.said, keys: plain.keys })
      expect(keys.flat().filter((key) => key === "rival")).toHaveLength(1)
      expect(failures).toEqual([])
    }
  })

  test("fails the commands that waited for a failed read, and none after them", async () => {
    const plain = await Effect.runPromise(script({}))
    let met = 0
    for (let n = 1; n <= 40; n++) {
      const { said, failures, keys } = await Effect.runPromise(script({ plan: { others: [n] } }))
      expect({ n, said, keys }).toEqual({ n, said: plain.said, keys: plain.keys })
      expect(failures.length).toBeLessThanOrEqual(1)
      met += failures.length
    }
    expect(met).toBeGreaterThan(10)
  })
})

describe("an answer", () => {
  testing(
    "comes after one append for all commands of a tick, each with its own events and state",
    Effect.gen(function* () {
      const store = FaultyEventStore.make(yield* EventStore)
      const host = yield* over(store)
      const commands = Array.from({ length: 20 }, (_, i) => host.execute("x", pay(`${i}`, 1, 2)))
      const exits = yield* together(...commands)
      expect(store.trace).toHaveLength(1)
      exits.forEach((exit, i) => {
        const { events, revision, state } = Result.getOrThrow(Result.fromOption(Exit.getSuccess(exit), () => `${i}`))
        expect(events).toEqual([
          { _tag: "Paid", key: `${i}`, amount: 1 },
          { _tag: "Paid", key: `${i}`, amount: 1 }
        ])
        expect([revision, state.total]).toEqual([2 * i + 1, 2 * i + 2])
      })
    })
  )

  testing(
    "takes at most `batchLimit` commands for one append",
    Effect.gen(function* () {
      const store = FaultyEventStore.make(yield* EventStore)
      const host = yield* over(store, { batchLimit: 6 })
      yield* together(...Array.from({ length: 20 }, (_, i) => host.execute("x", pay(`${i}`, 1))))
      expect(store.trace).toHaveLength(4)
      expect(keysIn(yield* logOf(store, "x"))).toEqual(Array.from({ length: 20 }, (_, i) => `${i}`))
    })
  )

  testing(
    "includes at once what another process wrote: in a read, a refusal and a repeated command",
    Effect.gen(function* () {
      const store = yield* EventStore
      const [a, b] = [yield* over(store), yield* over(store)]
      expect((yield* b.read("x")).revision).toBe(-1)
      yield* a.execute("x", pay("1", 60))
      expect((yield* b.read("x")).state.total).toBe(60)
      yield* a.execute("x", pay("2", 40))
      expect(yield* Effect.flip(b.execute("x", pay("3", 1)))).toEqual(new Full({ total: 100, count: 2 }))
      yield* a.execute("x", empty)
      expect((yield* b.execute("x", pay("3", 1))).revision).toBe(3)
      yield* a.execute("x", pay("4", 1))
      expect(yield* b.execute("x", pay("4", 1))).toMatchObject({ events: [], revision: 4, state: { total: 2 } })
    })
  )

  testing(
    "that wrote nothing asks the store once where the stream ends, whatever the number of commands",
    Effect.gen(function* () {
      const store = yield* EventStore
      let asked = 0
      const counting: Store = {
        ...store,
        lastRevision: (stream) =>
          Effect.andThen(
            Effect.sync(() => asked++),
            store.lastRevision(stream)
          )
      }
      const host = yield* over(counting)
      yield* host.execute("x", pay("1", 100))
      expect(asked).toBe(0)
      yield* together(...Array.from({ length: 10 }, () => host.execute("x", pay("1", 100))), host.execute("x", pay("2", 1)))
      expect(asked).toBe(1)
    })
  )

  testing(
    "to a read does not wait for an append that is under way, and includes all that was answered before",
    Effect.gen(function* () {
      const store = yield* EventStore
      const gate = yield* Latch.make(false)
      const slow: Store = { ...store, append: (...of) => Effect.andThen(gate.await, store.append(...of)) }
      yield* (yield* over(store)).execute("x", pay("1", 1))
      const host = yield* over(slow)
      yield* host.read("x")
      const paying = yield* Effect.forkChild(host.execute("x", pay("2", 1)))
      yield* Effect.yieldNow
      expect((yield* host.read("x")).state.total).toBe(1)
      yield* (yield* over(store)).execute("x", pay("3", 1))
      // The state in memory is older than that payment, so this read waits for its turn
      const reading = yield* Effect.forkChild(host.read("x"))
      yield* gate.open
      yield* Fiber.join(paying)
      expect((yield* Fiber.join(reading)).state.total).toBe(3)
    })
  )

  testing(
    "at once is that of a read, or none: not of a stream that is not in memory or is newer in the store, nor of a store that must be waited for",
    Effect.gen(function* () {
      const store = yield* EventStore
      const [a, b] = [yield* over(store), yield* over(store)]
      yield* a.execute("x", pay("1", 1))
      expect(b.readNow("x")).toBeUndefined()
      yield* b.read("x")
      expect(b.readNow("x")).toEqual(yield* b.read("x"))
      yield* a.execute("x", pay("2", 1))
      expect(a.readNow("x")).toMatchObject({ revision: 1, state: { total: 2 } })
      expect(b.readNow("x")).toBeUndefined()
      yield* b.read("x")
      expect(b.readNow("x")).toEqual(yield* a.read("x"))
      const waiting = yield* over({ ...store, lastRevision: (stream) => store.lastRevision(stream) })
      yield* waiting.read("x")
      expect(waiting.readNow("x")).toBeUndefined()
    })
  )

  testing(
    "is a failure when the batch it depends on could not be written",
    Effect.gen(function* () {
      const store = FaultyEventStore.make(yield* EventStore, { plan: { appends: { 1: "before" } } })
      const host = yield* over(store)
      const asked = together(
        Effect.asVoid(host.execute("x", pay("1", 100))),
        Effect.asVoid(host.execute("x", pay("2", 1))),
        Effect.asVoid(host.read("x"))
      )
      expect((yield* asked).map(tagOf)).toEqual(["StoreUnavailable", "StoreUnavailable", "StoreUnavailable"])
      expect((yield* host.read("x")).revision).toBe(-1)
      expect((yield* asked).map(tagOf)).toEqual(["ok", "Full", "ok"])
    })
  )

  testing(
    "is AppendInDoubt while the store cannot tell; the next command reads the outcome",
    Effect.gen(function* () {
      const memory = yield* EventStore
      yield* ticking
      const all = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [i + 1, "unanswered" as const]))
      const host = yield* over(FaultyEventStore.make(memory, { plan: { appends: all }, lateBy: 60_000 }))
      expect(yield* Effect.flip(host.execute("x", pay("1", 100)))).toMatchObject({ _tag: "AppendInDoubt", stream: "till-x" })
      const at = yield* Clock.currentTimeMillis
      expect(at).toBeGreaterThanOrEqual(5_000)
      expect(at).toBeLessThan(10_000)
      yield* Effect.sleep("1 minute")
      expect((yield* host.read("x")).state.total).toBe(100)
      expect(keysIn(yield* logOf(memory, "x"))).toEqual(["1"])
    })
  )

  testing(
    "is the defect for the command whose decision throws, and for no other",
    Effect.gen(function* () {
      const store = FaultyEventStore.make(yield* EventStore)
      const host = yield* over(store)
      const exits = yield* together(
        host.execute("x", pay("1", 1)),
        host.execute("x", () => {
          throw new Error("a bug")
        }),
        host.execute("x", () => Result.succeed([paid("half", 1), paid("no event", 1.5)])),
        host.execute("x", pay("2", 1))
      )
      expect(exits.map(tagOf)).toEqual(["ok", "defect", "defect", "ok"])
      expect(store.trace).toHaveLength(1)
      expect(keysIn(yield* logOf(store, "x"))).toEqual(["1", "2"])
      audit(yield* logOf(store, "x"), "till-x")
    })
  )

  testing(
    "does not read a stream that begins, unless it has events",
    Effect.gen(function* () {
      const memory = yield* EventStore
      let reads = 0
      const readStream: Store["readStream"] = (...read) =>
        Stream.suspend(() => {
          reads++
          return memory.readStream(...read)
        })
      const [host, other] = [yield* over({ ...memory, readStream }), yield* over({ ...memory, readStream })]
      yield* host.begin("x", pay("1", 1))
      yield* host.execute("x", pay("2", 1))
      expect(reads).toBe(0)
      // Another process takes the stream for new, too. The refusal of its append tells the events
      expect((yield* other.begin("x", pay("3", 1))).state.total).toBe(3)
      expect(reads).toBe(0)
      expect(tagOf(yield* Effect.exit(host.begin("x", pay("1", 1))))).toBe("ok")
      expect(keysIn(yield* logOf(memory, "x"))).toEqual(["1", "2", "3"])
      audit(yield* logOf(memory, "x"), "till-x")
      // A decision without events is confirmed as well
      const third = yield* over({ ...memory, readStream })
      expect((yield* third.begin("x", pay("1", 1))).events).toEqual([])
      expect(reads).toBe(1)
    })
  )

  testing(
    "records the request's metadata beside the time and the hash",
    Effect.gen(function* () {
      const store = yield* EventStore
      const host = yield* over(store)
      yield* TestClock.adjust(1_000)
      yield* host.execute("x", pay("1", 1), { $correlationId: "r", $causationId: "c", actor: "me", reason: "why" })
      yield* host.execute("x", empty)
      const metadata = (yield* logOf(store, "x")).map(HashChain.metadataOf)
      const at = "1970-01-01T00:00:01.000Z"
      expect(metadata).toEqual([{ at, $correlationId: "r", $causationId: "c", actor: "me", reason: "why" }, { at }])
    })
  )

  testing(
    "has a time that never goes back, even when the clock does",
    Effect.gen(function* () {
      const store = yield* EventStore
      const clock = yield* Clock.Clock
      let skew = 10_000
      const host = yield* Effect.provideService(
        over(store),
        Clock.Clock,
        skewed(clock, () => skew)
      )
      const seen: Array<number> = []
      const paying = (key: string) =>
        host.execute("x", (state, now) => {
          seen.push(now)
          return pay(key, 1)(state, now)
        })
      const first = yield* paying("1")
      skew = 1_000
      const second = yield* paying("2")
      const read = yield* host.read("x")
      const other = yield* (yield* over(store)).execute("x", pay("3", 1))
      skew = 20_000
      const last = yield* paying("4")
      expect(seen).toEqual([10_000, 10_000, 20_000, 20_000]) // the last command decided twice, because the other process appended first
      expect([first, second, read, other, last].map(({ at }) => at)).toEqual([10_000, 10_000, 10_000, 10_000, 20_000])
      const log = yield* logOf(store, "x")
      expect(log.map((event) => Date.parse(HashChain.atOf(event)))).toEqual([10_000, 10_000, 10_000, 20_000])
    })
  )
})

describe("a caller", () => {
  testing(
    "that is interrupted while it waits writes nothing; one whose append was sent does",
    Effect.gen(function* () {
      const memory = yield* EventStore
      const host = yield* over(slow(memory, 100))
      const sent = yield* Effect.forkChild(host.execute("x", pay("sent", 1)))
      yield* TestClock.adjust(1)
      const waiting = yield* Effect.forkChild(host.execute("x", pay("waiting", 1)))
      const next = yield* Effect.forkChild(host.execute("x", pay("next", 1)))
      yield* TestClock.adjust(1)
      yield* Fiber.interrupt(sent)
      yield* Fiber.interrupt(waiting)
      yield* TestClock.adjust(1_000)
      expect((yield* Fiber.join(next)).revision).toBe(1)
      expect(keysIn(yield* logOf(memory, "x"))).toEqual(["sent", "next"])
    })
  )

  testing(
    "gets `Busy` when too many commands wait for its stream; callers of other streams do not",
    Effect.gen(function* () {
      const memory = yield* EventStore
      const host = yield* over(slow(memory, 100), { queueLimit: 2 })
      const paying = (key: string) => Effect.forkChild(Effect.exit(host.execute("x", pay(key, 1))))
      const sent = yield* paying("1")
      yield* TestClock.adjust(1)
      const waiting = [yield* paying("2"), yield* paying("3")]
      yield* TestClock.adjust(1)
      expect(yield* Effect.flip(host.execute("x", pay("4", 1)))).toEqual(new Aggregate.Busy({ stream: "till-x" }))
      const other = yield* Effect.forkChild(host.execute("y", pay("4", 1)))
      yield* TestClock.adjust(1_000)
      expect((yield* Effect.forEach([sent, ...waiting], Fiber.join)).map(tagOf)).toEqual(["ok", "ok", "ok"])
      expect((yield* Fiber.join(other)).revision).toBe(0)
      expect(keysIn(yield* logOf(memory, "x"))).toEqual(["1", "2", "3"])
    })
  )

  testing(
    "gets `Busy` when another writer is always first, and is served once that writer rests",
    Effect.gen(function* () {
      const rival = FaultyEventStore.rival(() => ({ type: "Paid", data: `{"key":"rival","amount":0}` }))
      const store = FaultyEventStore.make(yield* EventStore, { rates: { conflict: 1 }, rival })
      const host = yield* over(store)
      const refused = yield* Effect.forkChild(Effect.flip(host.execute("x", pay("1", 1))))
      // It waits longer after each conflict, two seconds in all at most
      yield* pass(20)
      expect(refused.pollUnsafe()).toBeUndefined()
      for (let i = 0; i < 100; i++) yield* pass(20)
      expect(yield* Fiber.join(refused)).toEqual(new Aggregate.Busy({ stream: "till-x" }))
      const rivals = (yield* logOf(store, "x")).length
      expect(rivals).toBeGreaterThanOrEqual(50)
      store.calm()
      expect((yield* host.execute("x", pay("1", 1))).revision).toBe(rivals)
    })
  )

  testing(
    "that only reads a stream which another process keeps writing never gets `Busy`",
    Effect.gen(function* () {
      const store = yield* EventStore
      const [writer, reader] = [yield* over(store), yield* over(store)]
      for (let i = 0; i < 120; i++) {
        yield* writer.execute("x", pay(`${i}`, 0))
        expect((yield* reader.read("x")).revision).toBe(i)
      }
    })
  )
})

describe("a read at once", () => {
  testing(
    "answers what a read would, and nothing where it would have to wait or to read the stream",
    Effect.gen(function* () {
      const store = yield* EventStore
      const { lastRevision } = store
      const [here, there] = [yield* over(store), yield* over(store)]
      const answer = { unread: here.readNow("x"), written: 0, stale: here.readNow("x"), again: 0, waiting: here.readNow("x") }
      yield* here.execute("x", pay("1", 1))
      answer.written = here.readNow("x")?.state.total ?? -1
      yield* there.execute("x", pay("2", 2))
      answer.stale = here.readNow("x")
      yield* here.read("x")
      answer.again = here.readNow("x")?.state.total ?? -1
      const remote = yield* over({ ...store, lastRevision: (stream) => lastRevision(stream) })
      yield* remote.read("x")
      answer.waiting = remote.readNow("x")
      expect(answer).toEqual({ unread: undefined, written: 1, stale: undefined, again: 3, waiting: undefined })
      expect(here.readNow("x")).toEqual(yield* here.read("x"))
    })
  )

  testing(
    "keeps its stream in memory",
    Effect.gen(function* () {
      const host = yield* over(yield* EventStore, { idleAfter: "1 minute" })
      yield* host.execute("x", pay("1", 1))
      for (let i = 0; i < 4; i++) {
        yield* TestClock.adjust("50 seconds")
        expect(host.readNow("x")?.state.total).toBe(1)
      }
      expect(host.live()).toBe(1)
    })
  )
})

describe("a stream in memory", () => {
  testing(
    "is dropped after `idleAfter` without use, and read again when used",
    Effect.gen(function* () {
      const host = yield* over(yield* EventStore, { idleAfter: "1 minute" })
      yield* host.execute("x", pay("1", 1))
      yield* host.execute("y", pay("1", 2))
      expect(host.live()).toBe(2)
      for (let i = 0; i < 4; i++) {
        yield* TestClock.adjust("50 seconds")
        expect((yield* host.read("y")).state.total).toBe(2)
      }
      expect(host.live()).toBe(1)
      yield* TestClock.adjust("2 minutes")
      expect(host.live()).toBe(0)
      expect((yield* host.execute("x", pay("2", 3))).state.total).toBe(4)
    })
  )

  testing(
    "needs a timer, and a host without streams in memory has none",
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      let timers = 0
      const counting: Clock.Clock = {
        ...clock,
        sleep: (duration) =>
          Effect.suspend(() =>
            Effect.andThen(
              Effect.sync(() => void timers++),
              clock.sleep(duration)
            )
          )
      }
      const host = yield* Effect.provideService(over(yield* EventStore, { idleAfter: "1 minute" }), Clock.Clock, counting)
      yield* TestClock.adjust("1 day")
      expect(timers).toBe(0)
      yield* host.execute("x", pay("1", 1))
      yield* TestClock.adjust("1 day")
      expect([timers, host.live()]).toEqual([2, 0])
      yield* host.read("x")
      yield* TestClock.adjust("1 day")
      expect([timers, host.live()]).toEqual([4, 0])
    })
  )

  testing(
    "is known without asking the store, as this host last saw it",
    Effect.gen(function* () {
      const store = FaultyEventStore.make(yield* EventStore)
      const [host, other] = [yield* over(store, { idleAfter: "1 minute" }), yield* over(store)]
      expect(host.known("x")).toBeUndefined()
      yield* host.execute("x", pay("1", 1))
      yield* other.execute("x", pay("2", 2))
      const calls = store.trace.length
      expect([host.known("x")?.total, other.known("x")?.total, host.known("y")]).toEqual([1, 3, undefined])
      expect([store.trace.length, host.live()]).toEqual([calls, 1])
      yield* host.read("x")
      expect(host.known("x")?.total).toBe(3)
      yield* TestClock.adjust("3 minutes")
      expect(host.known("x")).toBeUndefined()
    })
  )

  testing(
    "is known without events that the store has not confirmed",
    Effect.gen(function* () {
      const host = yield* over(slow(yield* EventStore, 1_000))
      const paying = yield* Effect.forkChild(host.execute("x", pay("1", 1)))
      yield* pass(500)
      expect(host.known("x")?.total).toBe(0)
      yield* pass(500)
      yield* Fiber.join(paying)
      expect(host.known("x")?.total).toBe(1)
    })
  )

  testing(
    "is not kept when it has no events or could not be read, so made-up names cost no memory",
    Effect.gen(function* () {
      const memory = yield* EventStore
      let isDown = false
      const host = yield* over({
        ...memory,
        readStream: (...asked) => (isDown ? Stream.fail(new StoreUnavailable({ reason: "down" })) : memory.readStream(...asked))
      })
      for (let i = 0; i < 100; i++) {
        expect(yield* host.read(`read ${i}`)).toMatchObject({ revision: -1, state: { count: 0 } })
        expect(tagOf(yield* Effect.exit(host.execute(`refused ${i}`, pay("1", 1_000))))).toBe("Full")
      }
      // A caller is answered before the writer becomes idle
      yield* Effect.yieldNow
      expect(host.live()).toBe(0)
      isDown = true
      expect(tagOf(yield* Effect.exit(host.read("unread")))).toBe("StoreUnavailable")
      yield* Effect.yieldNow
      expect(host.live()).toBe(0)
      isDown = false
      // Commands that arrive together before the first event still find the stream
      const exits = yield* together(host.execute("x", pay("1", 1)), host.read("x"), host.execute("x", pay("1", 1)))
      expect(exits.map(tagOf)).toEqual(["ok", "ok", "ok"])
      expect(host.live()).toBe(1)
      expect(yield* host.read("x")).toMatchObject({ revision: 0, state: { total: 1 } })
    })
  )

  testing(
    "is kept while a command is under way, however long it takes",
    Effect.gen(function* () {
      const memory = yield* EventStore
      const host = yield* over(slow(memory, 600_000), { idleAfter: "1 minute" })
      const paying = yield* Effect.forkChild(host.execute("x", pay("1", 1)))
      yield* TestClock.adjust("9 minutes")
      expect(host.live()).toBe(1)
      const waiting = yield* Effect.forkChild(host.execute("x", pay("1", 1)))
      yield* TestClock.adjust("2 minutes")
      expect([(yield* Fiber.join(paying)).events.length, (yield* Fiber.join(waiting)).events.length]).toEqual([1, 0])
    })
  )
})

describe("a snapshot", () => {
  const snapshots = { version: 1, state: Till, every: 3 }
  const name = "tillSnapshot.v1-x"
  const marked: Till = { total: 7, keys: ["marked"], count: 5, lastAt: 0 }

  /** Writes ten payments without snapshots, then counts the events that a new process reads. */
  const reading = (change: (store: Store, log: ReadonlyArray<RecordedEvent>) => Effect.Effect<unknown, unknown>) =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const writer = yield* over(store)
      for (let i = 0; i < 10; i++) yield* writer.execute("x", pay(`${i}`, 1))
      yield* change(store, yield* logOf(store, "x"))
      const read = yield* (yield* over(store, { snapshots })).read("x")
      expect(read).toMatchObject({ revision: 9, position: yield* store.head })
      return read.state
    })
  const hashAt = (log: ReadonlyArray<RecordedEvent>, revision: number) => HashChain.hashOf(log[revision]!)

  testing(
    "is loaded first, then the events after it",
    Effect.gen(function* () {
      const state = yield* reading((store, log) =>
        store.saveSnapshot(name, { revision: 4, data: JSON.stringify({ hash: hashAt(log, 4), at: 0, state: marked }) })
      )
      expect(state).toEqual({ total: 12, keys: ["marked", "5", "6", "7", "8", "9"], count: 10, lastAt: 0 })
    })
  )

  const bad: Record<string, (log: ReadonlyArray<RecordedEvent>) => { readonly revision: number; readonly data: string }> = {
    "that is no JSON": () => ({ revision: 4, data: "{" }),
    "of another shape": (log) => ({ revision: 4, data: JSON.stringify({ hash: hashAt(log, 4), at: 0, state: { total: "7" } }) }),
    "of another stream": () => ({ revision: 4, data: JSON.stringify({ hash: HashChain.start("till-y"), at: 0, state: marked }) }),
    "of another event": (log) => ({ revision: 4, data: JSON.stringify({ hash: hashAt(log, 3), at: 0, state: marked }) }),
    "of another time": (log) => ({ revision: 4, data: JSON.stringify({ hash: hashAt(log, 4), at: 1e15, state: marked }) }),
    "beyond the end": (log) => ({ revision: 10, data: JSON.stringify({ hash: hashAt(log, 9), at: 0, state: marked }) })
  }
  for (const [which, snapshot] of Object.entries(bad))
    testing(
      `${which} is ignored`,
      Effect.gen(function* () {
        const state = yield* reading((store, log) => store.saveSnapshot(name, snapshot(log)))
        expect(state).toMatchObject({ total: 10, count: 10 })
      })
    )

  testing(
    "of another version of the fold is ignored",
    Effect.gen(function* () {
      const state = yield* reading((store, log) =>
        store.saveSnapshot("tillSnapshot.v2-x", { revision: 4, data: JSON.stringify({ hash: hashAt(log, 4), at: 0, state: marked }) })
      )
      expect(state.total).toBe(10)
    })
  )

  testing(
    "is saved each `every` events, also by the next process",
    Effect.gen(function* () {
      const store = yield* EventStore
      const saved: Array<number> = []
      const spy: Store = {
        ...store,
        saveSnapshot: (name, snapshot) =>
          Effect.andThen(
            Effect.sync(() => saved.push(snapshot.revision)),
            store.saveSnapshot(name, snapshot)
          )
      }
      const host = yield* over(spy, { snapshots })
      for (let i = 0; i < 7; i++) yield* host.execute("x", pay(`${i}`, 1))
      const next = yield* over(spy, { snapshots })
      for (let i = 7; i < 10; i++) yield* next.execute("x", pay(`${i}`, 1))
      yield* Effect.yieldNow
      expect(saved).toEqual([2, 5, 8])
      expect((yield* store.loadSnapshot(name))?.revision).toBe(8)
      expect((yield* (yield* over(store, { snapshots })).read("x")).state).toMatchObject({ total: 10, count: 10 })
    })
  )

  testing(
    "that cannot be made or saved delays no command, and its stream is listed as unsaved until it is",
    Effect.gen(function* () {
      const store = yield* EventStore
      let isDown = true
      const failing: Store = {
        ...store,
        saveSnapshot: (...snapshot) =>
          Effect.suspend(() => (isDown ? Effect.fail(new StoreUnavailable({ reason: "no snapshots" })) : store.saveSnapshot(...snapshot)))
      }
      const host = yield* over(failing, { snapshots: { ...snapshots, every: 2 } })
      yield* host.execute("x", pay("1", 1))
      expect(host.unsaved()).toEqual([])
      yield* host.execute("x", pay("2", 1))
      yield* settle
      expect(host.unsaved()).toEqual(["till-x"])
      yield* host.execute("y", pay("1", 1, 2))
      yield* settle
      expect(host.unsaved()).toEqual(["till-x", "till-y"])
      isDown = false
      yield* host.execute("x", pay("3", 1, 2))
      yield* settle
      expect(host.unsaved()).toEqual(["till-y"])
      expect((yield* store.loadSnapshot(name))?.revision).toBe(3)
      yield* TestClock.adjust("3 minutes")
      expect([host.live(), host.unsaved()]).toEqual([0, []])
    })
  )

  testing(
    "that cannot be encoded is listed as unsaved",
    Effect.gen(function* () {
      const store = yield* EventStore
      const strict = Till.check(Schema.makeFilter(({ total }) => total < 5))
      const host = yield* over(store, { snapshots: { version: 2, state: strict, every: 1 } })
      yield* host.execute("y", pay("1", 9))
      expect((yield* host.execute("y", pay("2", 1))).state.total).toBe(10)
      yield* settle
      expect(host.unsaved()).toEqual(["till-y"])
      expect(yield* store.loadSnapshot("tillSnapshot.v2-y")).toBeUndefined()
    })
  )

  /** Pays once with a key of this many characters, then `payments` times. Returns the revisions of the saved snapshots and of all encoded states. */
  const savedOf = (chars: number, payments: number) =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const saved: Array<number> = []
      const encoded: Array<number> = []
      const state = Till.check(Schema.makeFilter(({ count }) => encoded.push(count - 1) > 0))
      const spy: Store = {
        ...store,
        saveSnapshot: (name, snapshot) =>
          Effect.tap(store.saveSnapshot(name, snapshot), () => Effect.sync(() => saved.push(snapshot.revision)))
      }
      const host = yield* over(spy, { snapshots: { ...snapshots, state } })
      yield* host.execute("x", pay("l".repeat(chars), 1))
      for (let i = 0; i < payments; i++) yield* Effect.andThen(host.execute("x", pay(`${i}`, 1)), settle)
      return { host, saved, encoded, store: spy }
    })

  testing(
    "of a state n times as large is saved after n times as many events",
    Effect.gen(function* () {
      const { encoded, host, saved, store } = yield* savedOf(2.5 * Aggregate.SNAPSHOT_CHARS, 30)
      expect(saved).toEqual([8, 17, 26])
      // Once to see its size, then not before it may be saved
      expect(encoded).toEqual([2, 8, 11, 17, 20, 26, 29])
      expect(host.unsaved()).toEqual([])
      const read: Array<number | undefined> = []
      const readStream: Store["readStream"] = (name, options) => {
        read.push(options?.from)
        return store.readStream(name, options)
      }
      expect((yield* (yield* over({ ...store, readStream }, { snapshots })).read("x")).state).toMatchObject({ total: 31, count: 31 })
      expect(read).toEqual([26, 27])
    })
  )

  testing(
    "of a state that is too large for any store is not saved, and its stream is listed as unsaved",
    Effect.gen(function* () {
      const { host, saved } = yield* savedOf(Aggregate.MAX_SNAPSHOT_FACTOR * Aggregate.SNAPSHOT_CHARS, 60)
      expect(saved).toEqual([])
      expect(host.unsaved()).toEqual(["till-x"])
    })
  )
})

describe("a stream that this host cannot read", () => {
  const foreign = (store: Store, type: string, data: string) => FaultyEventStore.rival(() => ({ type, data }))(store, "till-x")

  for (const [what, type, data] of [
    ["an event it does not know", "Stolen", `{"amount":1}`],
    ["an event that is not what its type promises", "Paid", `{"key":1}`],
    ["an event that is no object", "Paid", "null"]
  ] as const)
    testing(
      `for ${what} is refused, listed, and alone`,
      Effect.gen(function* () {
        const store = yield* EventStore
        const host = yield* over(store)
        yield* host.execute("x", pay("1", 1))
        yield* foreign(store, type, data)
        // Found once by an append, and once by a read from the start
        for (let i = 0; i < 2; i++) {
          const refused = yield* Effect.flip(host.execute("x", pay("2", 1)))
          expect(refused).toMatchObject({ _tag: "StreamRefused", stream: "till-x", revision: 1 })
          expect(host.refused()).toEqual([refused])
        }
        expect(tagOf(yield* Effect.exit(host.read("x")))).toBe("StreamRefused")
        expect((yield* host.execute("y", pay("1", 1))).revision).toBe(0)
        expect(yield* logOf(store, "x")).toHaveLength(2)
      })
    )

  testing(
    "for an invalid time is refused",
    Effect.gen(function* () {
      const store = yield* EventStore
      const event = { id: "0190163d-8694-739b-aea5-966c26f8ad91", type: "Emptied", data: "{}" }
      const hosts = ["not a time by any means.", "+275760-09-13T00:00:00Z "].map((at, i) =>
        Effect.gen(function* () {
          const name = `till-${i}` as const
          yield* store.append(name, "noStream", [HashChain.seal(HashChain.start(name), name, 0, event, at, "{}")])
          return tagOf(yield* Effect.exit((yield* over(store)).execute(`${i}`, pay("1", 1))))
        })
      )
      expect(yield* Effect.all(hosts)).toEqual(["StreamRefused", "StreamRefused"])
    })
  )

  const tampers: Record<string, (log: ReadonlyArray<RecordedEvent>) => ReadonlyArray<RecordedEvent>> = {
    "changed data": (log) => log.map((event) => (event.revision === 1 ? { ...event, data: event.data.replace("2", "9") } : event)),
    "a missing event": (log) => log.filter(({ revision }) => revision !== 1),
    "a missing event, the rest moved up": (log) =>
      log.filter(({ revision }) => revision !== 1).map((event, revision) => ({ ...event, revision })),
    "events in another order": (log) => [...log].reverse(),
    "unsealed metadata": (log) => log.map((event) => ({ ...event, metadata: "{}" }))
  }
  for (const [what, tamper] of Object.entries(tampers))
    testing(
      `for ${what} is refused until it is repaired`,
      Effect.gen(function* () {
        const store = yield* EventStore
        const writer = yield* over(store)
        for (let i = 0; i < 3; i++) yield* writer.execute("x", pay(`${i}`, i + 1))
        let broken = true
        const host = yield* over({
          ...store,
          readStream: (stream, how) =>
            Stream.unwrap(
              Effect.map(Stream.runCollect(store.readStream(stream, how)), (log) =>
                Stream.fromIterable(broken && stream === "till-x" ? tamper(log) : log)
              )
            )
        })
        expect(host.refused()).toEqual([])
        expect(tagOf(yield* Effect.exit(host.execute("x", pay("4", 1))))).toBe("StreamRefused")
        expect(host.refused()).toMatchObject([{ stream: "till-x", reason: "the hash chain is broken" }])
        broken = false
        expect((yield* host.execute("x", pay("4", 1))).state.total).toBe(7)
        expect(host.refused()).toEqual([])
      })
    )

  const FAULTS = {
    "is right": undefined,
    "is unknown": "Stolen: ",
    "has no time": "the time it was decided cannot be read",
    "was changed": "the hash chain is broken"
  } as const
  const faults = fc.array(fc.constantFrom(...Struct.keys(FAULTS)), { minLength: 1, maxLength: 9 })

  /** Events with these faults, each linked to the one before it. Those that are to be changed are not changed yet. */
  const faulty = (kinds: ReadonlyArray<keyof typeof FAULTS>) => {
    let hash = HashChain.start("till-x")
    return kinds.map((fault, revision) => {
      const data = JSON.stringify({ key: `${revision}`, amount: 1 })
      const event = { id: `0190163d-8694-739b-aea5-966c26f8ad9${revision}`, type: fault === "is unknown" ? "Stolen" : "Paid", data }
      const at = fault === "has no time" ? "not a time by any means." : "2026-01-31T00:00:00.000Z"
      const sealed = HashChain.seal(hash, "till-x", revision, event, at, "{}")
      hash = HashChain.hashOf(sealed)
      return sealed
    })
  }

  test("is refused for the first event that is not right, in whatever pages it is read", () =>
    fc.assert(
      fc.asyncProperty(faults, fc.integer({ min: 1, max: 9 }), async (kinds, size) => {
        const changed = (event: RecordedEvent) =>
          kinds[event.revision] === "was changed" ? { ...event, data: `{"key":"x","amount":2}` } : event
        const reading = Effect.gen(function* () {
          const store = yield* EventStore
          const [one, ...others] = faulty(kinds)
          if (one !== undefined) yield* store.append("till-x", "noStream", [one, ...others])
          const readStream: Store["readStream"] = (...which) =>
            Stream.unwrap(
              Effect.map(Stream.runCollect(store.readStream(...which)), (events) =>
                Stream.fromArrays(...events.flatMap((_, i) => (i % size === 0 ? [events.slice(i, i + size).map(changed)] : [])))
              )
            )
          return yield* Effect.result((yield* over({ ...store, readStream })).read("x"))
        })
        const read = await Effect.runPromise(reading.pipe(Effect.scoped, Effect.provide(MemoryEventStore.layer)))
        const first = kinds.findIndex((kind) => FAULTS[kind] !== undefined)
        const reason = expect.stringContaining(FAULTS[kinds[first] ?? "is right"] ?? "")
        if (first === -1) expect(read).toMatchObject({ success: { revision: kinds.length - 1, state: { total: kinds.length } } })
        else expect(read).toMatchObject({ failure: { _tag: "StreamRefused", revision: first, reason } })
      })
    ))

  testing(
    "although it could before is served again once it is repaired",
    Effect.gen(function* () {
      const store = yield* EventStore
      let broken = true
      const host = yield* over({
        ...store,
        readStream: (stream, how) =>
          Stream.map(store.readStream(stream, how), (event) =>
            broken && event.revision === 1 ? { ...event, data: `{"key":"2","amount":99}` } : event
          )
      })
      yield* host.execute("x", pay("1", 1))
      yield* (yield* over(store)).execute("x", pay("2", 2))
      const refused = yield* Effect.flip(host.read("x"))
      expect(refused).toMatchObject({ _tag: "StreamRefused", revision: 1 })
      expect(host.refused()).toEqual([refused])
      broken = false
      expect((yield* host.execute("x", pay("3", 3))).state.total).toBe(6)
      expect(host.refused()).toEqual([])
    })
  )
})

describe("an append", () => {
  testing(
    "is at most as large as every store accepts; the remaining commands go into the next one",
    Effect.gen(function* () {
      const store = yield* EventStore
      const sizes: Array<number> = []
      const spy: Store = {
        ...store,
        append: (stream, expected, events) => {
          sizes.push(appendBytes(events))
          return store.append(stream, expected, events)
        }
      }
      const host = yield* over(spy)
      const keys = Array.from({ length: 12 }, (_, i) => `${i}${"\u20ac".repeat(40_000 + 10_000 * i)}`)
      const exits = yield* together(...keys.map((key) => host.execute("x", pay(key, 1))))
      expect(exits.map(tagOf)).toEqual(keys.map(() => "ok"))
      expect(keysIn(yield* logOf(store, "x"))).toEqual(keys)
      audit(yield* logOf(store, "x"), "till-x")
      expect(sizes.length).toBeGreaterThan(3)
      expect(sizes.length).toBeLessThan(10)
      for (const size of sizes) expect(size).toBeLessThanOrEqual(MAX_APPEND_BYTES)
    })
  )

  testing(
    "that one command makes too large fails that command only",
    Effect.gen(function* () {
      const store = yield* EventStore
      const host = yield* over(store)
      const reading = Effect.asVoid(host.read("x"))
      const paying = (key: string) => Effect.asVoid(host.execute("x", pay(key, 1)))
      const huge = "h".repeat(1_100_000)
      const around = yield* together(paying("1"), reading, paying(huge), reading, paying("2"), reading)
      expect(around.map(tagOf)).toEqual(["ok", "ok", "AppendTooLarge", "ok", "ok", "ok"])
      const alone = yield* together(reading, paying(huge), reading, paying("1"))
      expect(alone.map(tagOf)).toEqual(["ok", "AppendTooLarge", "ok", "ok"])
      expect(keysIn(yield* logOf(store, "x"))).toEqual(["1", "2"])
    })
  )
})

describe("closing", () => {
  const closed = new StoreUnavailable({ reason: "closed" })

  testing(
    "answers the commands that wait, and refuses later ones",
    Effect.gen(function* () {
      const memory = yield* EventStore
      const scope = yield* Scope.make()
      const host = yield* Scope.provide(over(slow(memory, 100), { batchLimit: 1 }), scope)
      const asked = yield* Effect.forkChild(
        together(host.execute("x", pay("1", 1)), host.execute("x", pay("2", 1)), host.execute("y", pay("3", 1)))
      )
      yield* TestClock.adjust(1)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* TestClock.adjust(50)
      expect(yield* Effect.flip(host.execute("x", pay("4", 1)))).toEqual(closed)
      expect(yield* Effect.flip(host.read("z"))).toEqual(closed)
      expect(closing.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(200)
      expect((yield* Fiber.join(asked)).map(tagOf)).toEqual(["ok", "ok", "ok"])
      yield* Fiber.join(closing)
      expect(keysIn(yield* logOf(memory, "x"))).toEqual(["1", "2"])
    })
  )

  testing(
    "does not wait forever for a store that does not answer",
    Effect.gen(function* () {
      const store = FaultyEventStore.make(yield* EventStore, { rates: { silent: 1 } })
      const scope = yield* Scope.make()
      const host = yield* Scope.provide(over(store), scope)
      yield* Effect.forkChild(host.execute("x", pay("1", 1)))
      yield* TestClock.adjust(1)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* TestClock.adjust("9 seconds")
      expect(closing.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("2 seconds")
      expect(closing.pollUnsafe()).toEqual(Exit.void)
    })
  )

  testing(
    "ends at once when nothing is under way",
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const host = yield* Scope.provide(over(yield* EventStore), scope)
      yield* host.execute("x", pay("1", 1))
      yield* Scope.close(scope, Exit.void)
      expect(yield* Effect.flip(host.read("x"))).toEqual(closed)
    })
  )
})
