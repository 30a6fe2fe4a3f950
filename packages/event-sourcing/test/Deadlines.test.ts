import { Clock, Effect, Exit, Random, Scope, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Deadlines from "../src/Deadlines.ts"
import { type Batch, EventStore, type RecordedEvent } from "../src/EventStore.ts"
import { StateStore, StateUnavailable } from "../src/StateStore.ts"
import * as StreamName from "../src/StreamName.ts"
import { pass, SEED, SOAK, settle, simulated, testing } from "./Simulated.ts"

const TTL = 9_000
const SWEEP = 30_000
const options = { ttl: TTL, poll: 500, sweepEvery: SWEEP }

const passUntil = (time: number) => Effect.flatMap(Clock.currentTimeMillis, (now) => pass(time - now))

let ids = 0
const write = Effect.fnUntraced(function* (...changes: ReadonlyArray<Deadlines.Change>) {
  const store = yield* EventStore
  for (const change of changes) {
    const stream = StreamName.make("hold", change.key)
    const event = { id: `${ids++}`, type: change._tag, data: JSON.stringify(change), metadata: "{}" }
    const last = yield* store.lastRevision(stream)
    yield* Effect.orDie(store.append(stream, last, [event]))
  }
})
const set = (key: string, dueAt: number, payload?: string): Deadlines.Change => ({
  _tag: "set",
  key,
  dueAt,
  ...(payload === undefined ? {} : { payload })
})
const clear = (key: string): Deadlines.Change => ({ _tag: "clear", key })

const schedule = (event: RecordedEvent): ReadonlyArray<Deadlines.Change> => [JSON.parse(event.data)]

/** Records which deadlines were acted on, and when. */
const noting = () => {
  const noted: Array<readonly [key: string, at: number]> = []
  const onDue = ({ key }: Deadlines.Deadline) => Effect.map(Clock.currentTimeMillis, (now) => void noted.push([key, now]))
  return { noted, onDue, definition: { name: "expiry", version: 1, schedule, onDue } }
}

/** A process that can shut down or crash. */
const makeHost = Effect.gen(function* () {
  const states = yield* StateStore
  const scope = yield* Scope.make()
  let up = true
  const guarded = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | StateUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | StateUnavailable> => (up ? effect : Effect.fail(new StateUnavailable({ reason: "gone" }))))
  const make = <E, R>(definition: Deadlines.Definition<E, R>, more: Deadlines.Options = {}) =>
    Deadlines.make(definition, { ...options, ...more }).pipe(
      Scope.provide(scope),
      Effect.provideService(StateStore, {
        get: (...args) => guarded(states.get(...args)),
        list: (...args) => guarded(states.list(...args)),
        write: (...args) => guarded(states.write(...args))
      })
    )
  const close = Scope.close(scope, Exit.void)
  const crash = Effect.suspend(() => {
    up = false
    return close
  })
  return { make, close, crash }
})

describe("deadlines of several hosts", () => {
  testing(
    "are followed by the host that sweeps, and by another one from its crash on",
    Effect.gen(function* () {
      const store = yield* EventStore
      const open = [0, 0]
      const begin = Effect.fnUntraced(function* (i: number) {
        const host = yield* makeHost
        const subscribe: typeof store.subscribe = (...of) =>
          Stream.unwrap(
            Effect.sync(() => {
              open[i] = (open[i] ?? 0) + 1
              return Stream.ensuring(
                store.subscribe(...of),
                Effect.sync(() => {
                  open[i] = (open[i] ?? 0) - 1
                })
              )
            })
          )
        const { noted, definition } = noting()
        const deadlines = yield* Effect.provideService(host.make(definition), EventStore, { ...store, subscribe })
        yield* pass(1_000)
        return { ...host, noted, deadlines }
      })
      const [first, second] = [yield* begin(0), yield* begin(1)]
      yield* write(set("a", 200_000), set("b", 20_000))
      yield* pass(100_000)
      expect(open).toEqual([1, 0])
      expect((yield* second.deadlines.list()).map(({ key }) => key)).toEqual(["b", "a"])
      yield* pass(180_000)
      expect(open).toEqual([1, 0])
      yield* first.crash
      yield* write(set("c", 300_000))
      yield* pass(4 * TTL)
      expect(open).toEqual([0, 1])
      expect(second.noted.map(([key]) => key).sort()).toEqual(["a", "b", "c"])
    })
  )
})

describe("a deadline that lapses", () => {
  const lapsing = (key: string, dueAt: number, until: number): Deadlines.Change => ({ _tag: "set", key, dueAt, until })

  testing(
    "is acted on once where the action succeeds, and is not due from its end on",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      const { overdue } = yield* Deadlines.make(definition, options)
      yield* write(lapsing("a", 60_000, 600_000), set("b", 580_000))
      yield* passUntil(570_000)
      expect(noted).toEqual([["a", 60_000]])
      expect((yield* overdue(599_999)).map(({ key }) => key)).toEqual(["a", "b"])
      expect((yield* overdue(600_000)).map(({ key }) => key)).toEqual(["b"])
    })
  )

  testing(
    "is acted on again by another host, and by none after its end",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      const first = yield* makeHost
      yield* first.make(definition)
      yield* write(lapsing("a", 60_000, 600_000))
      yield* passUntil(100_000)
      yield* first.close
      const second = yield* makeHost
      yield* second.make(definition)
      yield* passUntil(300_000)
      expect(noted.map(([key]) => key)).toEqual(["a", "a"])
      yield* second.close
      yield* passUntil(700_000)
      yield* (yield* makeHost).make(definition)
      yield* passUntil(900_000)
      expect(noted).toHaveLength(2)
    })
  )

  test("is dropped from memory when later ones are set, and survives its stored form until then", () => {
    const open = new Deadlines.OpenDeadlines()
    for (let i = 0; i < 5_000; i++) open.set({ key: `${i}`, dueAt: i, payload: "", until: i + 10 }, i)
    expect(open.size).toBeLessThan(1_100)
    expect(open.at(4_999).due.map(({ key }) => key)).toEqual(Array.from({ length: 10 }, (_, i) => `${4_990 + i}`))
  })
})

describe("a deadline", () => {
  testing(
    "is acted on when it is due and not before, even if sweeps are rare",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      yield* Deadlines.make(definition, { ...options, sweepEvery: "1 day" })
      yield* pass(1_000)
      yield* write(set("b", 7_200_000), set("a", 3_600_000))
      yield* passUntil(3_599_999)
      expect(noted).toEqual([])
      yield* passUntil(10_000_000)
      expect(noted).toEqual([
        ["a", 3_600_000],
        ["b", 7_200_000]
      ])
    })
  )

  testing(
    "that was due before the start is acted on at once",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      yield* pass(10_000)
      yield* write(set("a", 5_000))
      yield* Deadlines.make(definition, options)
      yield* settle
      yield* write(set("b", 6_000))
      yield* settle
      expect(noted).toEqual([
        ["a", 10_000],
        ["b", 10_000]
      ])
    })
  )

  testing(
    "that the log has cleared is not acted on, also not at a start",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      yield* write(set("a", 5_000), set("b", 5_000), set("c", 5_000))
      yield* write(clear("a"), set("b", 20_000), set("b", 9_000))
      yield* pass(8_000)
      yield* write(clear("c"))
      yield* Deadlines.make(definition, options)
      yield* pass(20_000)
      expect(noted).toEqual([["b", 9_000]])
    })
  )

  testing(
    "is not acted on until the log is read to its end",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      const store = yield* EventStore
      yield* write(set("a", 1_000), set("b", 1_000), clear("a"))
      yield* pass(2_000)
      const slow: typeof store = {
        ...store,
        subscribe: (after) =>
          Stream.flatMap(store.subscribe(after), (batch) => {
            if (batch.live) return Stream.succeed(batch)
            const one = (event: RecordedEvent): Batch => ({ events: [event], live: false })
            return Stream.mapEffect(Stream.fromIterable(batch.events), (event) => Effect.delay(Effect.succeed(one(event)), 1_000))
          })
      }
      yield* Effect.provideService(Deadlines.make(definition, options), EventStore, slow)
      yield* pass(10_000)
      expect(noted).toEqual([["b", 5_000]])
    })
  )

  testing(
    "is due at the time that was set last, whether earlier or later",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      yield* Deadlines.make(definition, options)
      yield* write(set("a", 20_000), set("b", 20_000))
      yield* pass(1_000)
      yield* write(set("a", 5_000), set("b", 25_000))
      yield* passUntil(26_000)
      expect(noted).toEqual([
        ["a", 5_000],
        ["b", 25_000]
      ])
    })
  )

  testing(
    "is acted on sweep after sweep until an event clears it",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      yield* Deadlines.make(definition, options)
      yield* write(set("a", 10_000))
      yield* passUntil(10_000 + 2 * SWEEP + 1_000)
      expect(noted.map(([, at]) => at)).toEqual([10_000, 10_000 + SWEEP, 10_000 + 2 * SWEEP])
      yield* write(clear("a"))
      yield* pass(10 * SWEEP)
      expect(noted).toHaveLength(3)
    })
  )

  testing(
    "is handed over with its payload",
    Effect.gen(function* () {
      const seen: Array<Deadlines.Deadline> = []
      yield* Deadlines.make(
        { name: "expiry", version: 1, schedule, onDue: (deadline) => Effect.sync(() => void seen.push(deadline)) },
        options
      )
      yield* write(set("a", 1_000, "of lot 7"), set("b", 2_000))
      yield* pass(2_000)
      expect(seen).toEqual([
        { key: "a", dueAt: 1_000, payload: "of lot 7" },
        { key: "b", dueAt: 2_000, payload: "" }
      ])
    })
  )
})

describe("a sweep", () => {
  testing(
    "acts in order of time, on a few at once",
    Effect.gen(function* () {
      const begun: Array<string> = []
      let running = 0
      let most = 0
      const onDue = ({ key }: Deadlines.Deadline) =>
        Effect.gen(function* () {
          begun.push(key)
          most = Math.max(most, ++running)
          yield* Effect.sleep(100)
          running--
        })
      for (const key of ["6", "3", "1", "5", "2", "4"]) yield* write(set(key, 1_000 * Number(key)))
      yield* pass(10_000)
      yield* Deadlines.make({ name: "expiry", version: 1, schedule, onDue }, { ...options, concurrency: 2 })
      yield* pass(1_000)
      expect(begun).toEqual(["1", "2", "3", "4", "5", "6"])
      expect(most).toBe(2)
    })
  )

  testing(
    "continues when an action fails, dies or hangs; each action is retried with a growing pause",
    Effect.gen(function* () {
      const { noted, onDue } = noting()
      const tried: Record<string, number> = {}
      let healthy = false
      const deadlines = yield* Deadlines.make(
        {
          name: "expiry",
          version: 1,
          schedule,
          onDue: (deadline): Effect.Effect<void, string> => {
            const { key } = deadline
            tried[key] = (tried[key] ?? 0) + 1
            if (healthy || key === "well")
              return Effect.andThen(onDue(deadline), Effect.orDie(write(clear(key))).pipe(Effect.provideService(EventStore, store)))
            return key === "fails" ? Effect.fail("not today") : key === "dies" ? Effect.die("a bug") : Effect.never
          }
        },
        { ...options, timeout: "5 seconds" }
      )
      const store = yield* EventStore
      yield* write(set("fails", 1_000), set("dies", 1_001), set("hangs", 1_002), set("well", 1_003))
      yield* pass(30 * 60_000)
      expect(noted).toEqual([["well", 1_003]])
      // 30 seconds, 1, 2, 4, 8 minutes, then each 10 minutes
      for (const key of ["fails", "dies", "hangs"]) expect(tried[key]).toBe(7)
      const { failing, leader } = yield* deadlines.status
      expect(leader).toBe(true)
      expect(failing.map(({ deadline, reason }) => [deadline.key, reason])).toEqual([
        ["fails", "not today"],
        ["dies", "a bug"],
        ["hangs", expect.stringContaining("Timeout")]
      ])
      healthy = true
      yield* pass(10 * 60_000)
      expect(noted).toHaveLength(4)
      yield* pass(SWEEP)
      expect((yield* deadlines.status).failing).toEqual([])
      expect(yield* deadlines.list()).toEqual([])
    })
  )

  testing(
    "runs at one host at a time; another takes over when that one leaves or crashes, and acts on open deadlines again",
    Effect.gen(function* () {
      const [first, second, third] = [yield* makeHost, yield* makeHost, yield* makeHost]
      const [one, two, three] = [noting(), noting(), noting()]
      yield* first.make(one.definition)
      yield* settle
      yield* second.make(two.definition)
      yield* write(set("a", 1_000), set("b", 12_000), set("c", 40_000))
      yield* passUntil(2_000)
      yield* first.close
      yield* passUntil(13_000)
      expect(one.noted).toEqual([["a", 1_000]])
      expect(two.noted.map(([key]) => key)).toEqual(["a", "b"])
      expect(two.noted[1]?.[1]).toBe(12_000)
      yield* second.crash
      yield* third.make(three.definition)
      yield* passUntil(39_999)
      expect(three.noted.map(([key]) => key)).toEqual(["a", "b"])
      yield* passUntil(40_000)
      expect(three.noted.at(-1)).toEqual(["c", 40_000])
    })
  )

  testing(
    "waits for a projection that stopped, and reports it",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      let throws = true
      const deadlines = yield* Deadlines.make(
        {
          ...definition,
          schedule: (event) => {
            if (throws) throw new Error("no such type")
            return schedule(event)
          }
        },
        options
      )
      yield* write(set("a", 1_000))
      yield* pass(60_000)
      expect(noted).toEqual([])
      const { trouble, projection } = yield* deadlines.status
      expect(trouble?.reason).toContain("no such type")
      expect(projection.stopped).toBeDefined()
      throws = false
      yield* deadlines.rebuild
      yield* pass(10_000)
      expect(noted).toHaveLength(1)
      expect((yield* deadlines.status).trouble).toBeUndefined()
    })
  )
})

describe("listing deadlines", () => {
  testing(
    "lists the open and the overdue deadlines, the earliest first",
    Effect.gen(function* () {
      const { definition } = noting()
      const deadlines = yield* Deadlines.make(definition, options)
      const within = Effect.map((yield* EventStore).head, (atLeast) => ({ atLeast }))
      yield* write(set("c", 3_000), set("a", 1_000), set("d", 500), set("b", 2_000), clear("d"))
      const keys = (all: ReadonlyArray<Deadlines.Deadline>) => all.map(({ key }) => key)
      expect(keys(yield* deadlines.list(yield* within))).toEqual(["a", "b", "c"])
      expect(keys(yield* deadlines.list({ limit: 2 }))).toEqual(["a", "b"])
      expect(keys(yield* deadlines.overdue(2_000))).toEqual(["a", "b"])
    })
  )
})

describe("open deadlines", () => {
  const change = fc.oneof(
    { weight: 3, arbitrary: fc.record({ key: fc.nat({ max: 12 }), dueAt: fc.nat({ max: 20 }), ask: fc.nat({ max: 20 }) }) },
    { weight: 2, arbitrary: fc.record({ key: fc.nat({ max: 12 }), dueAt: fc.constant(-1), ask: fc.nat({ max: 20 }) }) }
  )
  const byTime = (a: Deadlines.Deadline, b: Deadlines.Deadline) => a.dueAt - b.dueAt || (a.key < b.key ? -1 : 1)

  test("are the same as those of a plain list", () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 120, size: "max" }), (changes) => {
        const open = new Deadlines.OpenDeadlines()
        const model = new Map<string, Deadlines.Deadline>()
        for (const { key, dueAt, ask } of changes) {
          const deadline = { key: `${key}`, dueAt, payload: "" }
          if (dueAt < 0) {
            open.clear(deadline.key)
            model.delete(deadline.key)
          } else {
            open.set(deadline)
            model.set(deadline.key, deadline)
          }
          const all = [...model.values()].sort(byTime)
          expect(open.at(ask)).toEqual({
            due: all.filter(({ dueAt }) => dueAt <= ask),
            next: all.find(({ dueAt }) => dueAt > ask)?.dueAt ?? Number.POSITIVE_INFINITY
          })
          expect([...open.values()].sort(byTime)).toEqual(all)
        }
      }),
      { numRuns: 300 * SOAK, seed: SEED }
    )
  })

  test("stay correct when the heap is rebuilt after many moves and clears", () => {
    const open = new Deadlines.OpenDeadlines()
    const model = new Map<string, number>()
    for (let i = 0; i < 20_000; i++) {
      const key = `${(i * 7_919) % 601}`
      const dueAt = (i * 104_729) % 10_007
      if (i % 5 === 0) {
        open.clear(key)
        model.delete(key)
      } else {
        open.set({ key, dueAt, payload: "" })
        model.set(key, dueAt)
      }
      if (i % 500 !== 0) continue
      const times = [...model.values()].sort((a, b) => a - b)
      const now = times[times.length >> 1] ?? 0
      const { due, next } = open.at(now)
      expect(due.map(({ dueAt }) => dueAt)).toEqual(times.filter((time) => time <= now))
      expect(next).toBe(times.find((time) => time > now) ?? Number.POSITIVE_INFINITY)
    }
  })

  test("refuse a due time that is not a number", () => {
    expect(() => new Deadlines.OpenDeadlines().set({ key: "a", dueAt: Number.NaN, payload: "" })).toThrow("a due at NaN")
  })
})

describe("any schedule", () => {
  const step = fc.record({
    act: fc.constantFrom("set", "set", "set", "clear", "pass", "pass", "leave", "crash", "fail"),
    key: fc.constantFrom("a", "b", "c", "d"),
    size: fc.integer({ min: 1, max: 50 })
  })

  const play = (steps: ReadonlyArray<{ readonly act: string; readonly key: string; readonly size: number }>) =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const open = new Map<string, number>()
      const fired: Array<string> = []
      let failures = 0
      const onDue = ({ key, dueAt }: Deadlines.Deadline) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          expect(now).toBeGreaterThanOrEqual(dueAt)
          fired.push(`${key} ${dueAt}`)
          yield* Effect.sleep(Math.ceil((yield* Random.next) * 500))
          if (failures > 0) return yield* Effect.fail(failures--)
          // Decides on the current state, as a command does
          if (open.get(key) !== dueAt) return
          open.delete(key)
          yield* write(clear(key))
        }).pipe(Effect.provideService(EventStore, store))
      const definition = { name: "expiry", version: 1, schedule, onDue }
      const begin = Effect.gen(function* () {
        const host = yield* makeHost
        return { ...host, deadlines: yield* host.make(definition) }
      })
      const hosts = [yield* begin, yield* begin]
      const expected = new Set<string>()
      for (const { act, key, size } of steps) {
        const now = yield* Clock.currentTimeMillis
        if (act === "set") {
          const dueAt = now + (size - 10) * 500
          open.set(key, dueAt)
          yield* write(set(key, dueAt))
        }
        if (act === "clear" && open.delete(key)) yield* write(clear(key))
        if (act === "pass") yield* pass(size * 300)
        if (act === "fail") failures += size % 3
        if (act === "leave" || act === "crash") {
          const place = size % hosts.length
          const host = hosts[place]
          if (host !== undefined) yield* act === "leave" ? host.close : host.crash
          hosts[place] = yield* begin
        }
      }
      failures = 0
      for (const [key, dueAt] of open) expected.add(`${key} ${dueAt}`)
      yield* pass(10 * 60_000)
      expect([...open]).toEqual([])
      for (const each of expected) expect(fired).toContain(each)
      for (const { deadlines } of hosts) expect(yield* deadlines.list()).toEqual([])
      for (const { close } of hosts) yield* close
      return fired.length
    })

  test("a due deadline is acted on until it is cleared, and never early, despite failures and crashes", async () => {
    let fired = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40, size: "max" }), async (steps) => {
        fired += await simulated(play(steps))
      }),
      { numRuns: 80 * SOAK, seed: SEED }
    )
    expect(fired).toBeGreaterThan(150)
  })
})
