import { Effect, Exit, Fiber, Option, Schema, Scope, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { EventStore, position, type RecordedEvent, StoreUnavailable, start } from "../src/EventStore.ts"
import * as Following from "../src/Following.ts"
import * as MemoryEventStore from "../src/MemoryEventStore.ts"
import * as Projection from "../src/Projection.ts"
import { StateStore, StateUnavailable } from "../src/StateStore.ts"
import * as StreamName from "../src/StreamName.ts"
import { pass, SEED, SOAK, settle, simulated, testing } from "./Simulated.ts"

let ids = 0
/** Appends events to a stream in one append. */
const write = Effect.fnUntraced(function* (stream: StreamName.StreamName, type: string, count = 1) {
  const store = yield* EventStore
  const event = (i: number) => ({ id: `${ids++}`, type, data: String(i), metadata: "{}" })
  const rest = Array.from({ length: count - 1 }, (_, i) => event(i + 1))
  return yield* store.append(stream, yield* store.lastRevision(stream), [event(0), ...rest])
})

const a = StreamName.make("cart", "a")
const b = StreamName.make("user", "b")

/** Records every event in order, so that repeated and missing events show. */
const seen = (version = 1): Projection.Definition<ReadonlyArray<string>> => ({
  name: "seen",
  version,
  state: Schema.Array(Schema.String),
  initial: () => [],
  evolve: (state, event) => [...state, `${event.position} ${event.type}`]
})

/** The same with a mutable state, as a projection with a large state has. */
const seenInPlace = (version = 1): Projection.Definition<Array<string>> => ({
  ...seen(version),
  state: Schema.mutable(Schema.Array(Schema.String)),
  initial: () => [],
  evolve: (state, event) => {
    state.push(`${event.position} ${event.type}`)
    return state
  }
})

const logOf = (definition: Pick<Projection.Definition<unknown>, "types" | "categories">) =>
  Effect.gen(function* () {
    const { readAll } = yield* EventStore
    const log: ReadonlyArray<RecordedEvent> = yield* Stream.runCollect(readAll(start))
    return log.filter(Following.selects(definition)).map((event) => `${event.position} ${event.type}`)
  })

const stateOf = <State>({ caughtUp }: Projection.Projection<State>) => Effect.map(caughtUp(), ({ state }) => state)

/** Runs in a scope that closes as at the shutdown of a host. */
const during = <State, A, E, R>(
  definition: Projection.Definition<State>,
  use: (projection: Projection.Projection<State>) => Effect.Effect<A, E, R>,
  options?: Projection.Options
) => Effect.scoped(Effect.flatMap(Projection.make(definition, options), use))

/** A process: its connections to both stores, which can be cut, and the fibers that its end interrupts. */
const makeHost = Effect.gen(function* () {
  const events = yield* EventStore
  const states = yield* StateStore
  const host = { eventsUp: true, statesUp: true, scope: yield* Scope.make() }
  const subscribe: typeof events.subscribe = (after) =>
    Stream.suspend(() => (host.eventsUp ? events.subscribe(after) : Stream.fail(new StoreUnavailable({ reason: "no route" })))).pipe(
      Stream.mapEffect((batch) => (host.eventsUp ? Effect.succeed(batch) : Effect.fail(new StoreUnavailable({ reason: "cut" }))))
    )
  const guarded = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | StateUnavailable> =>
    Effect.suspend(
      (): Effect.Effect<A, E | StateUnavailable> => (host.statesUp ? effect : Effect.fail(new StateUnavailable({ reason: "disk gone" })))
    )
  const on = <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, Exclude<Exclude<Exclude<R, Scope.Scope>, StateStore>, EventStore>> =>
    effect.pipe(
      Scope.provide(host.scope),
      Effect.provideService(StateStore, {
        get: (...args) => guarded(states.get(...args)),
        list: (...args) => guarded(states.list(...args)),
        write: (...args) => guarded(states.write(...args))
      }),
      Effect.provideService(EventStore, { ...events, subscribe })
    )
  return Object.assign(host, { on, close: Effect.suspend(() => Scope.close(host.scope, Exit.void)) })
})

/** Counts the calls of `evolve`. */
const counting = <State>(definition: Projection.Definition<State>) => {
  const counter = { evolved: 0 }
  const evolve: typeof definition.evolve = (state, event) => {
    counter.evolved++
    return definition.evolve(state, event)
  }
  return { counter, definition: { ...definition, evolve } }
}

/** How many events a start folds until the state is complete. */
const foldedAtStart = Effect.fnUntraced(function* (version = 1) {
  const { definition, counter } = counting(seen(version))
  expect(yield* during(definition, stateOf)).toEqual(yield* logOf({}))
  return counter.evolved
})

/** The store with a count of its open subscriptions, which other fibers overtake. */
const counted = Effect.gen(function* () {
  const events = yield* EventStore
  const counter = { open: 0 }
  const subscribe: typeof events.subscribe = (...of) =>
    Stream.unwrap(
      Effect.sync(() => {
        counter.open++
        return events.subscribe(...of).pipe(
          Stream.tap(() => Effect.replicateEffect(Effect.yieldNow, 10)),
          Stream.ensuring(Effect.sync(() => counter.open--))
        )
      })
    )
  return { counter, events: { ...events, subscribe } }
})

describe("a projection that may sleep", () => {
  const IDLE = 60_000

  testing(
    "follows the log only after a read, and never answers without what was written before the read",
    Effect.gen(function* () {
      const { counter, events } = yield* counted
      const projection = yield* Effect.provideService(Projection.make(seen(), { idleAfter: IDLE }), EventStore, events)
      for (let round = 0; round < 3; round++) {
        yield* write(a, "Written", 5)
        yield* pass(IDLE)
        expect(counter.open).toBe(0)
        expect((yield* projection.status).caughtUp).toBe(true)
        // The stored state is derived and may be lost
        if (round === 2) yield* StateStore.use(({ write }) => write([{ _tag: "remove", space: "projections", key: "seen" }]))
        expect((yield* projection.read()).state).toEqual(yield* logOf({}))
        yield* write(b, "Written")
        yield* settle
        expect(counter.open).toBe(1)
        expect((yield* projection.read()).state).toEqual(yield* logOf({}))
        yield* pass(2 * IDLE + 1)
        expect(counter.open).toBe(0)
      }
    })
  )

  testing(
    "stays awake while it is read or kept",
    Effect.gen(function* () {
      const { counter, events } = yield* counted
      const projection = yield* Effect.provideService(Projection.make(seen(), { idleAfter: IDLE }), EventStore, events)
      for (let i = 0; i < 5; i++) {
        yield* projection.read()
        yield* pass(IDLE - 1)
        expect(counter.open).toBe(1)
      }
      const keeping = yield* Effect.forkScoped(projection.keep(Effect.never))
      yield* pass(10 * IDLE)
      expect(counter.open).toBe(1)
      yield* Fiber.interrupt(keeping)
      yield* pass(2 * IDLE)
      expect(counter.open).toBe(0)
    })
  )

  testing(
    "begins with the state that another process stored",
    Effect.gen(function* () {
      const keeper = yield* Projection.make(seen(), { idleAfter: IDLE, storeWithin: 1_000 })
      yield* Effect.forkScoped(keeper.keep(Effect.never))
      const { definition, counter } = counting(seen())
      const sleeper = yield* Projection.make(definition, { idleAfter: IDLE })
      yield* write(a, "Written", 50)
      yield* pass(2_000)
      yield* write(b, "Written", 3)
      expect((yield* sleeper.read()).state).toEqual(yield* logOf({}))
      expect(counter.evolved).toBe(3)
    })
  )

  testing(
    "is rebuilt although it sleeps",
    Effect.gen(function* () {
      const projection = yield* Projection.make(seen(), { idleAfter: IDLE })
      yield* write(a, "Written", 3)
      yield* projection.rebuild
      expect((yield* projection.read()).state).toEqual(yield* logOf({}))
    })
  )
})

describe("reading", () => {
  testing(
    "answers with the caller's own write when asked for its position",
    Effect.gen(function* () {
      const projection = yield* Projection.make(seen())
      for (let i = 0; i < 3; i++) {
        const { position } = yield* write(a, "Added")
        const folded = yield* projection.read({ atLeast: position })
        expect(folded.position).toBe(position)
        expect(folded.state).toHaveLength(i + 1)
      }
    })
  )

  testing(
    "at once answers as reading does, unless that would wait or fail",
    Effect.gen(function* () {
      const idleAfter = 60_000
      const sleeping = yield* Projection.make({ ...seen(), name: "sleeping" }, { idleAfter })
      const stopping = yield* Projection.make({
        ...seen(),
        evolve: () => {
          throw new Error("no")
        }
      })
      yield* write(a, "Added")
      expect(sleeping.readNow()).toBeUndefined()
      yield* settle
      // It was asked for, so it follows the log now
      expect(sleeping.readNow()).toEqual(yield* sleeping.read())
      expect(sleeping.readNow()?.state).toHaveLength(1)
      expect(stopping.readNow()).toBeUndefined()
      yield* pass(2 * idleAfter + 1)
      yield* write(a, "Added")
      // These stores answer within the call, so that a projection that is woken may have caught up
      const woken = sleeping.readNow()
      expect(woken?.state ?? (yield* sleeping.read()).state).toEqual(yield* logOf({}))
    })
  )

  testing(
    "waits no longer than `within`",
    Effect.gen(function* () {
      const projection = yield* Projection.make(seen())
      const reading = yield* Effect.forkScoped(Effect.flip(projection.read({ atLeast: position("9"), within: 700 })))
      yield* pass(699)
      expect(reading.pollUnsafe()).toBeUndefined()
      yield* pass(1)
      expect(yield* Fiber.join(reading)).toEqual(new Projection.ProjectionBehind({ projection: "seen", position: "", asked: "9" }))
    })
  )

  testing(
    "folds only the events that it selects, and moves past the others",
    Effect.gen(function* () {
      const byType = yield* Projection.make({ ...seen(), types: ["Added", "Sold"] })
      const byCategory = yield* Projection.make({ ...seen(), name: "users", categories: ["user"] })
      yield* write(a, "Added", 2)
      yield* write(b, "Added")
      const { position } = yield* write(b, "Renamed")
      expect((yield* byType.read({ atLeast: position })).state).toEqual(yield* logOf({ types: ["Added"] }))
      expect((yield* byCategory.read({ atLeast: position })).state).toEqual(yield* logOf({ categories: ["user"] }))
    })
  )

  testing(
    "past waits until a later event was folded",
    Effect.gen(function* () {
      const projection = yield* Projection.make(seen())
      const waiting = yield* Effect.forkScoped(projection.past(start))
      yield* pass(60_000)
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* write(a, "Added")
      yield* Fiber.join(waiting)
    })
  )

  testing(
    "until waits until its condition holds, also across events that are not selected",
    Effect.gen(function* () {
      const projection = yield* Projection.make({ ...seenInPlace(), types: ["Added"] })
      const looks: Array<number> = []
      const isThere = ({ state }: Projection.Folded<Array<string>>) => looks.push(state.length) > 0 && state.length === 2
      const waiting = yield* Effect.forkScoped(projection.until(isThere))
      yield* write(a, "Added")
      const { position } = yield* write(b, "Sold", 3)
      yield* projection.past(yield* write(b, "Sold").pipe(Effect.as(position)))
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* write(a, "Added")
      yield* Fiber.join(waiting)
      expect(looks.at(-1)).toBe(2)
      yield* projection.until(isThere)
    })
  )
})

describe("the stored state", () => {
  testing(
    "makes folding again after a shutdown unnecessary",
    Effect.gen(function* () {
      yield* write(a, "Added", 5)
      expect(yield* foldedAtStart()).toBe(5)
      yield* write(b, "Added", 2)
      expect(yield* foldedAtStart()).toBe(2)
      expect(yield* foldedAtStart()).toBe(0)
    })
  )

  testing(
    "is written after `storeWithin` and after `storeEvery` events",
    Effect.gen(function* () {
      const { status } = yield* Projection.make(seen(), { storeEvery: 10, storeWithin: "1 minute" })
      const crash = foldedAtStart()
      yield* write(a, "Added", 5)
      yield* pass(59_999)
      const [store, key] = [yield* StateStore, "seen"]
      expect(yield* store.get("projections", key)).toBeUndefined()
      yield* pass(1)
      expect(yield* crash).toBe(0)
      yield* write(a, "Added", 9)
      yield* settle
      const before = yield* store.get("projections", key)
      yield* write(a, "Added")
      yield* settle
      expect(yield* store.get("projections", key)).not.toEqual(before)
      expect(yield* crash).toBe(0)
      expect((yield* status).unstored).toBeUndefined()
    })
  )

  testing(
    "of another version is ignored and replaced",
    Effect.gen(function* () {
      yield* write(a, "Added", 3)
      for (const version of [2, 1, 3]) {
        expect(yield* foldedAtStart(version)).toBe(3)
        expect(yield* foldedAtStart(version)).toBe(0)
      }
    })
  )

  for (const [name, damage] of [
    ["that is not one", () => Buffer.from("?")],
    ["of another shape", (value: Uint8Array) => Buffer.from(`${Buffer.from(value).toString().split("\n", 1)}\n{"not":"it"}`)],
    ["cut off", (value: Uint8Array) => value.subarray(0, -2)],
    ["that lacks a piece", (value: Uint8Array) => Buffer.from(Buffer.from(value).toString().replace('"pieces":1', '"pieces":2'))]
  ] as const)
    testing(
      `${name} is folded anew, and replaced`,
      Effect.gen(function* () {
        const store = yield* StateStore
        yield* write(a, "Added", 3)
        yield* foldedAtStart()
        const entry = yield* store.get("projections", "seen")
        expect(entry).toBeDefined()
        const value = damage(entry?.value ?? new Uint8Array())
        expect(value).not.toEqual(entry?.value)
        yield* store.write([{ _tag: "put", space: "projections", key: "seen", value }])
        expect(yield* foldedAtStart()).toBe(3)
        expect(yield* foldedAtStart()).toBe(0)
      })
    )

  testing(
    "is stored in pieces when it is large; surplus pieces are removed when it is small again",
    Effect.gen(function* () {
      const store = yield* StateStore
      // Characters of three bytes, so that a cut falls into one
      const text: Projection.Definition<string> = {
        name: "text",
        version: 1,
        state: Schema.String,
        initial: () => "",
        evolve: (_, { type, data }) => (type === "Grown" ? "\u20ac".repeat(600_000) + data : "small")
      }
      yield* write(a, "Grown")
      const grown = yield* during(text, stateOf)
      expect(yield* store.list("projections")).toHaveLength(4)
      const { counter, definition } = counting(text)
      expect(yield* during(definition, stateOf)).toBe(grown)
      expect(counter.evolved).toBe(0)
      yield* write(a, "Shrunk")
      expect(yield* during(text, stateOf)).toBe("small")
      expect((yield* store.list("projections")).map(({ key }) => key)).toEqual(["text"])
    })
  )

  testing(
    "is read whole even if another process stores a newer one meanwhile",
    Effect.gen(function* () {
      const store = yield* StateStore
      const text: Projection.Definition<string> = {
        name: "text",
        version: 1,
        state: Schema.String,
        initial: () => "",
        evolve: (_, { type }) => type.repeat(600_000)
      }
      yield* write(a, "x")
      yield* during(text, stateOf)
      yield* write(a, "y")
      let stored = false
      const get: typeof store.get = (space, key) =>
        Effect.gen(function* () {
          if (key === "text/1" && !stored) {
            stored = true
            yield* Effect.orDie(during(text, stateOf)).pipe(
              Effect.provideService(StateStore, store),
              Effect.provideService(EventStore, events)
            )
          }
          return yield* store.get(space, key)
        })
      const events = yield* EventStore
      const { counter, definition } = counting(text)
      const state = yield* Effect.provideService(during(definition, stateOf), StateStore, { ...store, get })
      expect(stored).toBe(true)
      expect(state === "y".repeat(600_000)).toBe(true)
      expect(counter.evolved).toBe(0)
    })
  )

  testing(
    "is not replaced by an older state of another process",
    Effect.gen(function* () {
      const store = yield* StateStore
      const host = yield* makeHost
      const old = yield* host.on(Projection.make(seen()))
      yield* write(a, "Added")
      yield* old.caughtUp()
      host.eventsUp = false
      yield* write(a, "Added")
      yield* foldedAtStart()
      const newest = yield* store.get("projections", "seen")
      yield* host.close
      expect((yield* old.status).position < (yield* (yield* EventStore).head)).toBe(true)
      expect(yield* store.get("projections", "seen")).toEqual(newest)
    })
  )

  testing(
    "past the end of the log belongs to another log",
    Effect.gen(function* () {
      yield* write(a, "Added", 3)
      yield* foldedAtStart()
      const restored = yield* MemoryEventStore.make
      const folded = Effect.gen(function* () {
        yield* write(b, "Added")
        return yield* foldedAtStart()
      })
      expect(yield* Effect.provideService(folded, EventStore, restored)).toBe(1)
    })
  )

  testing(
    "that cannot be stored is reported, and stored later",
    Effect.gen(function* () {
      const host = yield* makeHost
      const { counter, definition } = counting(seen())
      const projection = yield* host.on(Projection.make(definition, { storeWithin: "1 minute" }))
      yield* settle
      host.statesUp = false
      const { position } = yield* write(a, "Added")
      yield* pass(61_000)
      expect((yield* projection.read({ atLeast: position })).state).toHaveLength(1)
      expect((yield* projection.status).unstored?.reason).toBe("disk gone")
      host.statesUp = true
      yield* pass(10_000)
      expect((yield* projection.status).unstored).toBeUndefined()
      expect(counter.evolved).toBe(1)
      expect(yield* foldedAtStart()).toBe(0)
    })
  )
})

describe("following", () => {
  testing(
    "resumes where it was after the store failed, and reports the failure",
    Effect.gen(function* () {
      const host = yield* makeHost
      const projection = yield* host.on(Projection.make(seen()))
      yield* write(a, "Added", 2)
      yield* settle
      expect(yield* projection.status).toMatchObject({ caughtUp: true, behind: undefined })
      host.eventsUp = false
      yield* write(a, "Added", 2)
      yield* pass(30_000)
      const status = yield* projection.status
      expect(status.caughtUp).toBe(false)
      expect(status.behind?.reason).toBe("no route")
      expect(status.behind?.attempts).toBeGreaterThan(3)
      expect((yield* projection.read()).state).toHaveLength(2)
      host.eventsUp = true
      yield* pass(10_000)
      expect(yield* projection.status).toMatchObject({ caughtUp: true, behind: undefined })
      expect((yield* projection.read()).state).toEqual(yield* logOf({}))
    })
  )

  testing(
    "begins once the stored state can be read",
    Effect.gen(function* () {
      yield* write(a, "Added", 2)
      yield* foldedAtStart()
      const host = yield* makeHost
      host.statesUp = false
      const { counter, definition } = counting(seen())
      const projection = yield* host.on(Projection.make(definition))
      const early = yield* Effect.forkScoped(Effect.flip(projection.read()))
      yield* pass(20_000)
      expect(yield* Fiber.join(early)).toBeInstanceOf(Projection.ProjectionBehind)
      expect((yield* projection.status).behind?.reason).toBe("disk gone")
      host.statesUp = true
      yield* pass(10_000)
      expect(yield* stateOf(projection)).toEqual(yield* logOf({}))
      expect(counter.evolved).toBe(0)
    })
  )

  testing(
    "stops at an event on which the fold throws, and names it to readers that wait",
    Effect.gen(function* () {
      const { evolve } = seen()
      const projection = yield* Projection.make({
        ...seen(),
        evolve: (state, event) => {
          if (event.type === "Odd") throw new Error("never heard of it")
          return evolve(state, event)
        }
      })
      yield* write(a, "Added", 3)
      const waiting = yield* Effect.forkScoped(Effect.flip(projection.read({ atLeast: position("9") })))
      const { position: at } = yield* write(a, "Odd")
      yield* write(b, "Added")
      const stopped = yield* Fiber.join(waiting)
      expect(stopped).toMatchObject({
        _tag: "ProjectionStopped",
        projection: "seen",
        position: at,
        stream: a,
        revision: 3,
        reason: "Error: never heard of it"
      })
      expect((yield* projection.status).stopped).toBe(stopped)
      expect(yield* Effect.flip(projection.read())).toBe(stopped)
      expect(yield* Effect.flip(projection.past(start))).toBe(stopped)
      expect(yield* Effect.flip(projection.until(() => false))).toBe(stopped)
      expect(yield* Effect.flip(projection.rebuild)).toEqual(stopped)
    })
  )

  testing(
    "does not store the state of an unfinished fold",
    Effect.gen(function* () {
      const { evolve, ...rest } = seenInPlace()
      const throwing: Projection.Definition<Array<string>> = {
        ...rest,
        evolve: (state, event) => {
          if (event.type === "Odd") throw new Error("never heard of it")
          return evolve(state, event)
        }
      }
      const host = yield* makeHost
      const projection = yield* host.on(Projection.make(throwing))
      yield* write(a, "Added")
      yield* projection.caughtUp()
      host.eventsUp = false
      yield* write(a, "Added")
      yield* write(a, "Odd")
      yield* pass(1_000)
      host.eventsUp = true
      yield* pass(20_000)
      expect((yield* projection.status).stopped).toBeDefined()
      yield* projection.store
      yield* host.close
      expect(yield* foldedAtStart()).toBe(3)
    })
  )
})

describe("rebuilding", () => {
  /** A fold that can be changed, and a log whose pages take a second each. */
  const relabelled = Effect.gen(function* () {
    const events = yield* EventStore
    const fold = { label: "old", throws: false }
    const projection = yield* Projection.make({
      ...seen(),
      evolve: (state, event) => {
        if (fold.throws) throw new Error("no")
        return [...state, `${fold.label} ${event.data}`]
      }
    }).pipe(
      Effect.provideService(EventStore, {
        ...events,
        subscribe: (after) => Stream.tap(events.subscribe(after), () => Effect.sleep("1 second"))
      })
    )
    return { fold, projection }
  })

  testing(
    "folds the log anew while the live state answers, then replaces it",
    Effect.gen(function* () {
      const { fold, projection } = yield* relabelled
      yield* write(a, "Added", 2)
      yield* pass(5_000)
      fold.label = "new"
      const rebuilding = yield* Effect.forkScoped(projection.rebuild)
      yield* pass(1_500)
      yield* write(b, "Added")
      yield* settle
      expect((yield* projection.status).rebuilding).toBe(true)
      expect((yield* projection.read()).state).toEqual(["old 0", "old 1"])
      yield* pass(10_000)
      yield* Fiber.join(rebuilding)
      expect((yield* projection.status).rebuilding).toBe(false)
      expect((yield* projection.read()).state).toEqual(["new 0", "new 1", "new 0"])
      yield* write(b, "Added")
      yield* pass(2_000)
      expect((yield* projection.read()).state).toEqual(["new 0", "new 1", "new 0", "new 0"])
    })
  )

  for (const [name, slow] of [
    ["is ahead of it", 1],
    ["is behind it", 2]
  ] as const)
    testing(
      `folds no event twice and never goes back when the new state ${name}`,
      Effect.gen(function* () {
        const events = yield* EventStore
        let subscriptions = 0
        const subscribe: typeof events.subscribe = (after) => {
          const number = ++subscriptions
          return Stream.tap(events.subscribe(after), () => Effect.sleep(number === slow ? 1_000 : 0))
        }
        const projection = yield* Effect.provideService(Projection.make(seenInPlace(), { storeEvery: 1 }), EventStore, {
          ...events,
          subscribe
        })
        yield* write(a, "Added", 2)
        yield* pass(5_000)
        yield* write(b, "Added")
        yield* settle
        const before = (yield* projection.read()).position
        const rebuilding = yield* Effect.forkScoped(projection.rebuild)
        yield* pass(slow === 1 ? 0 : 1_500)
        yield* write(b, "Added")
        for (let i = 0; i < 50; i++) {
          yield* pass(100)
          const { state, position } = yield* projection.read()
          expect(position >= before).toBe(true)
          expect(state).toEqual((yield* logOf({})).filter((line) => line <= `${position} Added`))
        }
        yield* Fiber.join(rebuilding)
        expect((yield* projection.read()).state).toHaveLength(4)
      })
    )

  testing(
    "changes nothing when it fails",
    Effect.gen(function* () {
      const { fold, projection } = yield* relabelled
      yield* write(a, "Added", 2)
      yield* pass(5_000)
      fold.throws = true
      const rebuilding = yield* Effect.forkScoped(Effect.flip(projection.rebuild))
      yield* pass(5_000)
      expect(yield* Fiber.join(rebuilding)).toBeInstanceOf(Projection.ProjectionStopped)
      expect((yield* projection.read()).state).toEqual(["old 0", "old 1"])
      expect(yield* projection.status).toMatchObject({ rebuilding: false, stopped: undefined })
    })
  )

  testing(
    "restarts a projection that had stopped",
    Effect.gen(function* () {
      const { fold, projection } = yield* relabelled
      fold.throws = true
      yield* write(a, "Added", 2)
      yield* pass(5_000)
      expect((yield* projection.status).stopped).toBeDefined()
      fold.throws = false
      const rebuilding = yield* Effect.forkScoped(projection.rebuild)
      yield* pass(5_000)
      yield* Fiber.join(rebuilding)
      yield* write(b, "Added")
      yield* pass(5_000)
      expect((yield* projection.read()).state).toEqual(["old 0", "old 1", "old 0"])
    })
  )
})

describe("any schedule", () => {
  const step = fc.record({
    act: fc.constantFrom("append", "append", "append", "pass", "restart", "crash", "events", "states", "rebuild", "store"),
    host: fc.nat({ max: 1 }),
    size: fc.integer({ min: 1, max: 6 })
  })

  /** Two processes with the same projection on the same stores, one with a mutable state. */
  const play = (steps: ReadonlyArray<{ readonly act: string; readonly host: number; readonly size: number }>) =>
    Effect.gen(function* () {
      const events = yield* EventStore
      let skipped = 0
      const begin = Effect.fnUntraced(function* (place: number) {
        const host = yield* makeHost
        const { counter, definition } = counting(seenInPlace())
        const options = { storeEvery: 4, storeWithin: "1 minute" } as const
        const projection: Projection.Projection<ReadonlyArray<string>> = yield* host.on(
          place === 0 ? Projection.make(definition, options) : Projection.make(seen(), options)
        )
        return { host, projection, counter }
      })
      const hosts = [yield* begin(0), yield* begin(1)]
      const check = Effect.fnUntraced(function* ({ host, projection, counter }: Effect.Success<ReturnType<typeof begin>>) {
        host.eventsUp = true
        host.statesUp = true
        yield* pass(20_000)
        const { state, position } = yield* projection.caughtUp()
        const log = yield* logOf({})
        expect(position).toBe(yield* events.head)
        expect([...state]).toEqual(log)
        if (counter.evolved < log.length) skipped++
      })
      for (const { act, host: index, size } of steps) {
        const place = hosts[index]
        if (place === undefined) continue
        const { host, projection } = place
        if (act === "append") yield* write(size % 2 === 0 ? a : b, "Added", size)
        if (act === "pass") yield* pass(size * 20_000)
        if (act === "events") host.eventsUp = !host.eventsUp
        if (act === "states") host.statesUp = !host.statesUp
        if (act === "rebuild") yield* Effect.forkScoped(Effect.ignore(projection.rebuild))
        if (act === "store") yield* Effect.ignore(projection.store)
        if (act === "restart" || act === "crash") {
          if (act === "crash") host.statesUp = false
          yield* host.close
          hosts[index] = yield* begin(index)
        }
        yield* settle
        // Each state on the way is the complete fold up to its position
        const { projection: now } = hosts[index] ?? place
        const folded = yield* Effect.option(now.read({ within: 0 }))
        if (Option.isNone(folded)) continue
        const { state, position } = folded.value
        expect([...state]).toEqual((yield* logOf({})).filter((line) => line <= `${position} Added`))
      }
      for (const place of hosts) yield* check(place)
      for (const { host } of hosts) yield* host.close
      return skipped
    })

  test("the state is the fold of the log, despite restarts, crashes, store failures and saves", async () => {
    let skipped = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40, size: "max" }), async (steps) => {
        skipped += await simulated(play(steps))
      }),
      { numRuns: 200 * SOAK, seed: SEED }
    )
    // Shows that stored states were used
    expect(skipped).toBeGreaterThan(10)
  })
})
