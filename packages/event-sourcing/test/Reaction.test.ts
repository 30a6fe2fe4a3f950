import { Effect, Exit, Random, Scope, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { EventStore, type RecordedEvent, StoreUnavailable, type start } from "../src/EventStore.ts"
import * as MemoryEventStore from "../src/MemoryEventStore.ts"
import * as Reaction from "../src/Reaction.ts"
import { StateStore, StateUnavailable } from "../src/StateStore.ts"
import * as StreamName from "../src/StreamName.ts"
import { pass, SEED, SOAK, settle, simulated, testing } from "./Simulated.ts"

const TTL = 9_000
const options = { ttl: TTL, poll: 500 }

const stream = StreamName.make("job", "1")

let ids = 0
const write = Effect.fnUntraced(function* (count: number, type = "Done") {
  const store = yield* EventStore
  for (let i = 0; i < count; i++)
    yield* store.append(stream, yield* store.lastRevision(stream), [{ id: `${ids++}`, type, data: "{}", metadata: "{}" }])
  return yield* store.head
})

/** A process: its connections to both stores, which can be cut, and the fibers that its end interrupts. */
const makeHost = Effect.gen(function* () {
  const events = yield* EventStore
  const states = yield* StateStore
  const scope = yield* Scope.make()
  const host = { eventsUp: true, statesUp: true }
  const subscribe: typeof events.subscribe = (after) =>
    Stream.suspend(() => (host.eventsUp ? events.subscribe(after) : Stream.fail(new StoreUnavailable({ reason: "no route" }))))
  const guarded = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | StateUnavailable> =>
    Effect.suspend(
      (): Effect.Effect<A, E | StateUnavailable> => (host.statesUp ? effect : Effect.fail(new StateUnavailable({ reason: "disk gone" })))
    )
  const make = <E>(definition: Reaction.Definition<E, never>, more: Reaction.Options = {}) =>
    Reaction.make(definition, { ...options, ...more }).pipe(
      Scope.provide(scope),
      Effect.provideService(StateStore, {
        get: (...args) => guarded(states.get(...args)),
        list: (...args) => guarded(states.list(...args)),
        write: (...args) => guarded(states.write(...args))
      }),
      Effect.provideService(EventStore, { ...events, subscribe })
    )
  const close = Scope.close(scope, Exit.void)
  /** Crashes: its finalizers write nothing. */
  const crash = Effect.suspend(() => {
    host.statesUp = false
    return close
  })
  return Object.assign(host, { make, close, crash })
})

/** Records the revisions of the events. */
const noting = () => {
  const noted: Array<number> = []
  const definition = {
    name: "noting",
    start: "beginning",
    react: ({ revision }: RecordedEvent) => Effect.sync(() => void noted.push(revision))
  } as const
  return { noted, definition }
}

describe("reacting", () => {
  testing(
    "reacts to each event once and in order, to earlier and later ones",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      yield* write(3)
      const { status } = yield* Reaction.make(definition, options)
      yield* settle
      const head = yield* write(2)
      yield* settle
      expect(noted).toEqual([0, 1, 2, 3, 4])
      expect(yield* status).toEqual({ position: head, leader: true, failing: undefined, trouble: undefined })
    })
  )

  testing(
    "skips unselected events, and does not read them again",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      yield* write(2_500, "Other")
      yield* write(1)
      yield* write(2, "Other")
      const host = yield* makeHost
      yield* host.make({ ...definition, types: ["Done"] })
      yield* pass(1)
      expect(noted).toEqual([2_500])
      yield* host.close
      const read: Array<string> = []
      const store = yield* EventStore
      const watched = {
        ...store,
        subscribe: (after: typeof start) => Stream.tap(store.subscribe(after), () => Effect.sync(() => read.push(after)))
      }
      yield* Effect.provideService(Reaction.make(definition, options), EventStore, watched)
      yield* pass(TTL)
      expect(read[0]).toBe(yield* store.head)
    })
  )

  testing(
    "begins at `start` when it has no checkpoint, even if it ended before the first event",
    Effect.gen(function* () {
      const middle = yield* write(2)
      yield* write(2)
      const all = [
        { start: "beginning", expected: [0, 1, 2, 3, 4] },
        { start: middle, expected: [2, 3, 4] },
        { start: "now", expected: [4] }
      ] as const
      const kinds = all.map((kind) => ({ ...kind, ...noting() }))
      const begin = Effect.forEach(kinds, ({ start, definition }) =>
        Effect.gen(function* () {
          const host = yield* makeHost
          yield* host.make({ ...definition, start, name: `from ${start}` })
          return host
        })
      )
      const hosts = yield* begin
      yield* pass(1)
      yield* Effect.forEach(hosts, ({ close }) => close)
      yield* write(1)
      yield* begin
      yield* pass(TTL)
      for (const { noted, expected } of kinds) expect(noted).toEqual(expected)
    })
  )

  for (const [kind, failure] of [
    ["a failure", Effect.fail({ _tag: "Unwilling", reason: "not today" })],
    ["a defect", Effect.die(new Error("not today"))]
  ] as const)
    testing(
      `retries an event after ${kind}, reports it, and skips no event`,
      Effect.gen(function* () {
        const { noted, definition } = noting()
        let willing = false
        const { status } = yield* Reaction.make(
          { ...definition, react: (event) => (event.revision === 1 && !willing ? failure : definition.react(event)) },
          options
        )
        yield* write(4)
        yield* pass(60_000)
        expect(noted).toEqual([0])
        const { failing, leader } = yield* status
        expect(leader).toBe(true)
        expect(failing).toMatchObject({ stream, revision: 1, type: "Done" })
        expect(failing?.reason).toContain("not today")
        // The pause grows up to ten seconds
        expect(failing?.attempts).toBeGreaterThan(10)
        expect(failing?.attempts).toBeLessThan(30)
        willing = true
        yield* pass(10_000)
        expect(noted).toEqual([0, 1, 2, 3])
        expect((yield* status).failing).toBeUndefined()
      })
    )

  testing(
    "continues after the event store failed, and reports the failure",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      const host = yield* makeHost
      host.eventsUp = false
      const { status } = yield* host.make(definition)
      yield* write(2)
      yield* pass(30_000)
      expect((yield* status).trouble?.reason).toBe("no route")
      host.eventsUp = true
      yield* pass(10_000)
      expect(noted).toEqual([0, 1])
      expect((yield* status).trouble).toBeUndefined()
    })
  )
})

describe("a checkpoint", () => {
  testing(
    "is written after each event, or after `checkpointEvery` events",
    Effect.gen(function* () {
      for (const [checkpointEvery, again] of [
        [1, []],
        [3, [3, 4]]
      ] as const) {
        const { noted, definition } = noting()
        const named = { ...definition, name: `every ${checkpointEvery}` }
        yield* write(checkpointEvery === 1 ? 5 : 0)
        const [first, second] = [yield* makeHost, yield* makeHost]
        yield* first.make(named, { checkpointEvery })
        yield* settle
        yield* first.crash
        yield* second.make(named, { checkpointEvery })
        yield* pass(TTL)
        expect(noted).toEqual([0, 1, 2, 3, 4, ...again])
        yield* second.close
      }
    })
  )

  testing(
    "is written on closing",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      yield* write(5)
      for (const host of [yield* makeHost, yield* makeHost]) {
        yield* host.make(definition, { checkpointEvery: 100 })
        yield* pass(TTL)
        yield* host.close
      }
      expect(noted).toEqual([0, 1, 2, 3, 4])
    })
  )

  testing(
    "past the end of the log belongs to another log: all events are reacted to again",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      yield* write(3)
      const host = yield* makeHost
      yield* host.make(definition)
      yield* pass(1)
      yield* host.close
      const restored = yield* MemoryEventStore.make
      yield* Effect.provideService(Effect.andThen(write(2), Reaction.make(definition, options)), EventStore, restored)
      yield* pass(TTL)
      expect(noted).toEqual([0, 1, 2, 0, 1])
    })
  )

  testing(
    "that cannot be read is reported, and no position is guessed",
    Effect.gen(function* () {
      const { noted, definition } = noting()
      const store = yield* StateStore
      yield* write(2)
      yield* store.write([{ _tag: "put", space: "reactions", key: "noting", value: Buffer.from("?") }])
      const { status } = yield* Reaction.make(definition, options)
      yield* pass(60_000)
      expect(noted).toEqual([])
      expect((yield* status).trouble?.attempts).toBeGreaterThan(3)
    })
  )
})

describe("several hosts", () => {
  testing(
    "one host reacts; when it leaves, another continues from its checkpoint",
    Effect.gen(function* () {
      const [one, two] = [noting(), noting()]
      const [first, second] = [yield* makeHost, yield* makeHost]
      const leader = yield* first.make(one.definition)
      yield* settle
      const other = yield* second.make(two.definition)
      yield* write(2)
      yield* pass(TTL)
      expect([(yield* leader.status).leader, (yield* other.status).leader]).toEqual([true, false])
      yield* first.close
      yield* write(2)
      yield* pass(options.poll)
      expect([(yield* leader.status).leader, (yield* other.status).leader]).toEqual([false, true])
      expect([one.noted, two.noted]).toEqual([
        [0, 1],
        [2, 3]
      ])
    })
  )

  testing(
    "a host that lost the lease while it worked does not move the checkpoint back",
    Effect.gen(function* () {
      const { definition, noted } = noting()
      const [old, heir] = [yield* makeHost, yield* makeHost]
      // Its work ignores the loss of its lease
      yield* old.make({ ...definition, react: () => Effect.uninterruptible(Effect.sleep(5 * TTL)) })
      const head = yield* write(3)
      yield* settle
      old.statesUp = false
      yield* heir.make(definition)
      yield* pass(2 * TTL)
      old.statesUp = true
      const store = yield* StateStore
      const checkpoint = Effect.map(store.get("reactions", "noting"), (entry) => Buffer.from(entry?.value ?? []).toString())
      expect(yield* checkpoint).toContain(head)
      yield* pass(10 * TTL)
      expect(yield* checkpoint).toContain(head)
      expect(noted).toEqual([0, 1, 2])
    })
  )
})

describe("any schedule", () => {
  const step = fc.record({
    act: fc.constantFrom("append", "append", "pass", "pass", "leave", "crash", "events", "states", "fail"),
    host: fc.nat({ max: 1 }),
    size: fc.integer({ min: 1, max: 5 })
  })

  const play = (steps: ReadonlyArray<{ readonly act: string; readonly host: number; readonly size: number }>) =>
    Effect.gen(function* () {
      const noted: Array<number> = []
      let failures = 0
      const begin = Effect.gen(function* () {
        const host = yield* makeHost
        const reaction = yield* host.make(
          {
            name: "noting",
            start: "beginning",
            react: ({ revision }) =>
              Effect.gen(function* () {
                yield* Effect.sleep(Math.ceil((yield* Random.next) * 1_000))
                if (failures > 0) return yield* Effect.fail(failures--)
                noted.push(revision)
                // Done, and not yet in the checkpoint
                yield* Effect.sleep(Math.ceil((yield* Random.next) * 1_000))
              })
          },
          { checkpointEvery: 2 }
        )
        return { host, reaction }
      })
      const hosts = [yield* begin, yield* begin]
      let written = 0
      for (const { act, host: either, size } of steps) {
        const statuses = yield* Effect.forEach(hosts, ({ reaction }) => reaction.status)
        const leader = statuses.findIndex(({ leader }) => leader)
        const index = act === "crash" && leader >= 0 ? leader : either
        const host = hosts[index]?.host
        if (host === undefined) continue
        if (act === "append") {
          yield* write(size)
          written += size
        }
        if (act === "pass") yield* pass(size * 2_500)
        if (act === "fail") failures += size
        if (act === "events") host.eventsUp = !host.eventsUp
        if (act === "states") host.statesUp = !host.statesUp
        if (act === "leave" || act === "crash") {
          yield* act === "leave" ? host.close : host.crash
          hosts[index] = yield* begin
        }
      }
      for (const { host } of hosts) Object.assign(host, { eventsUp: true, statesUp: true })
      failures = 0
      yield* pass(4 * TTL + written * 3_000)
      let done = -1
      for (const revision of noted) {
        expect(revision).toBeLessThanOrEqual(done + 1)
        done = Math.max(done, revision)
      }
      expect(done).toBe(written - 1)
      const statuses = yield* Effect.forEach(hosts, ({ reaction }) => reaction.status)
      expect(statuses.filter(({ leader }) => leader)).toHaveLength(1)
      expect(statuses.find(({ leader }) => leader)?.position).toBe(yield* (yield* EventStore).head)
      for (const { host } of hosts) yield* host.close
      return noted.length - written
    })

  test("every event is reacted to at least once and in order, despite failures and hosts that leave or crash", async () => {
    let again = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40, size: "max" }), async (steps) => {
        again += await simulated(play(steps))
      }),
      { numRuns: 200 * SOAK, seed: SEED }
    )
    // Shows that crashes happened between an event and its checkpoint
    expect(again).toBeGreaterThan(10)
  })
})
