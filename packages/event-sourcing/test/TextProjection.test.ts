import { Effect, Exit, Layer, Scope, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { EventStore, type RecordedEvent, start } from "../src/EventStore.ts"
import * as MemoryEventStore from "../src/MemoryEventStore.ts"
import * as MemoryTextIndex from "../src/MemoryTextIndex.ts"
import * as StreamName from "../src/StreamName.ts"
import { type Document, TextIndex, TextIndexUnavailable } from "../src/TextIndex.ts"
import * as TextProjection from "../src/TextProjection.ts"
import { pass, SEED, SOAK, settle, simulated, testing } from "./Simulated.ts"

let ids = 0
const write = Effect.fnUntraced(function* (id: string, type: string, word = "") {
  const store = yield* EventStore
  const stream = StreamName.make("book", id)
  return yield* store.append(stream, yield* store.lastRevision(stream), [{ id: `${ids++}`, type, data: word, metadata: "{}" }])
})

/** A document for each stream, with the words of all its events in their order. An event that is folded twice is refused. */
const books = (version = 1): TextProjection.Definition => ({
  name: "books",
  version,
  categories: ["book"],
  touches: ({ stream }) => [stream],
  evolve: ({ data, stream, type }, documents) => {
    if (type === "Poison") throw new Error("poison")
    if (type === "Removed") return void documents.delete(stream)
    const before = documents.get(stream)?.text ?? ""
    if (before.split(" ").includes(data)) throw new Error(`${data} was folded`)
    const text = `${before} ${data}`.trim()
    documents.set(stream, { id: stream, text, keys: ["book"], weight: 0, value: text })
  }
})

const logged = Effect.gen(function* () {
  const { readAll } = yield* EventStore
  const log: ReadonlyArray<RecordedEvent> = yield* Stream.runCollect(readAll(start))
  const documents = new Map<string, Document>()
  for (const event of log) if (event.type !== "Poison") books().evolve(event, documents)
  return [...documents.values()].map(({ text }) => text).sort()
})

const found = ({ search }: TextProjection.TextProjection) =>
  Effect.map(search({ keys: ["book"] }), (documents) => documents.map(({ value }) => value).sort())

/** A process of its own, on indexes that can be cut. */
const makeHost = Effect.gen(function* () {
  const texts = yield* TextIndex
  const host = { isUp: true, scope: yield* Scope.make() }
  const guarded = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | TextIndexUnavailable> =>
    Effect.suspend(
      (): Effect.Effect<A, E | TextIndexUnavailable> =>
        // Lets another process in between two accesses
        host.isUp ? Effect.tap(effect, () => Effect.yieldNow) : Effect.fail(new TextIndexUnavailable({ reason: "disk gone" }))
    )
  const projection = yield* TextProjection.make(books()).pipe(
    Scope.provide(host.scope),
    Effect.provideService(TextIndex, {
      open: (name, version) =>
        Effect.map(texts.open(name, version), (index) => ({
          position: guarded(index.position),
          get: (given) => guarded(index.get(given)),
          write: (given) => guarded(index.write(given)),
          search: (given) => guarded(index.search(given)),
          clear: guarded(index.clear)
        }))
    })
  )
  return Object.assign(host, { projection, close: Effect.suspend(() => Scope.close(host.scope, Exit.void)) })
})

const withTexts = <A, E, R>(body: Effect.Effect<A, E, R | TextIndex>) => Effect.provide(body, MemoryTextIndex.layer)

describe("a text projection", () => {
  testing(
    "has what was written before",
    withTexts(
      Effect.gen(function* () {
        const projection = yield* TextProjection.make(books())
        for (const [id, type, word] of [
          ["a", "Added", "one"],
          ["b", "Added", "two"],
          ["a", "Added", "three"],
          ["b", "Removed", ""]
        ] as const) {
          yield* write(id, type, word)
          yield* projection.caughtUp()
          expect(yield* found(projection)).toEqual(yield* logged)
        }
        expect(yield* found(projection)).toEqual(["one three"])
        yield* settle
        expect(yield* projection.status).toMatchObject({ caughtUp: true, behind: undefined, stopped: undefined })
      })
    )
  )

  testing(
    "goes on where the index is, also after a failure of the index",
    withTexts(
      Effect.gen(function* () {
        const host = yield* makeHost
        yield* write("a", "Added", "one")
        yield* host.projection.caughtUp()
        host.isUp = false
        yield* write("a", "Added", "two")
        yield* pass(5_000)
        expect((yield* host.projection.status).behind).toMatchObject({ reason: "disk gone" })
        host.isUp = true
        yield* pass(20_000)
        expect(yield* found(host.projection)).toEqual(["one two"])
        yield* host.close
        yield* write("a", "Added", "three")
        const next = yield* makeHost
        yield* next.projection.caughtUp()
        expect(yield* found(next.projection)).toEqual(["one two three"])
        yield* next.close
      })
    )
  )

  testing(
    "waits for an index that does not open",
    withTexts(
      Effect.gen(function* () {
        const texts = yield* TextIndex
        let isBroken = true
        const open: typeof texts.open = (name, version) =>
          Effect.suspend(() => (isBroken ? Effect.fail(new TextIndexUnavailable({ reason: "broken" })) : texts.open(name, version)))
        const projection = yield* Effect.provideService(TextProjection.make(books()), TextIndex, { open })
        yield* write("a", "Added", "one")
        yield* pass(5_000)
        expect(yield* Effect.flip(projection.search({}))).toEqual(new TextIndexUnavailable({ reason: "it is not open yet" }))
        expect((yield* projection.status).behind?.reason).toBe("broken")
        isBroken = false
        yield* pass(20_000)
        expect(yield* found(projection)).toEqual(["one"])
      })
    )
  )

  testing(
    "stops at an event that its fold does not take, and goes on in the next version",
    withTexts(
      Effect.gen(function* () {
        const projection = yield* TextProjection.make(books())
        yield* write("a", "Added", "one")
        yield* projection.caughtUp()
        const { position } = yield* write("a", "Poison")
        const stopped = new TextProjection.TextProjectionStopped({ projection: "books", position, reason: "Error: poison" })
        expect(yield* Effect.flip(projection.caughtUp())).toEqual(stopped)
        expect(yield* Effect.flip(projection.search({}))).toEqual(stopped)
        const evolve: TextProjection.Definition["evolve"] = (event, documents) =>
          event.type !== "Poison" && books().evolve(event, documents)
        const fixed = yield* TextProjection.make({ ...books(2), evolve: (event, documents) => void evolve(event, documents) })
        yield* fixed.caughtUp()
        expect(yield* found(fixed)).toEqual(["one"])
      })
    )
  )

  testing(
    "begins anew when the index is ahead of a restored log",
    withTexts(
      Effect.gen(function* () {
        yield* write("a", "Added", "one")
        yield* write("a", "Added", "two")
        yield* Effect.scoped(Effect.flatMap(TextProjection.make(books()), ({ caughtUp }) => caughtUp()))
        const restored = Effect.gen(function* () {
          yield* write("a", "Added", "one")
          const projection = yield* TextProjection.make(books())
          yield* projection.caughtUp()
          expect(yield* found(projection)).toEqual(["one"])
        })
        yield* Effect.scoped(Effect.provide(restored, Layer.fresh(MemoryEventStore.layer)))
      })
    )
  )

  const step = fc.oneof(
    fc.record({ kind: fc.constant("write"), id: fc.constantFrom("a", "b", "c"), type: fc.constantFrom("Added", "Added", "Removed") }),
    fc.record({ kind: fc.constantFrom("cut", "mend", "restart", "pass"), host: fc.nat(2) })
  )

  test("in several processes with faults and restarts folds each event once", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), (steps) =>
        simulated(
          withTexts(
            Effect.gen(function* () {
              const hosts = [yield* makeHost, yield* makeHost, yield* makeHost]
              let words = 0
              for (const one of steps) {
                if ("id" in one) yield* write(one.id, one.type, `w${words++}`)
                else {
                  const host = hosts[one.host]
                  if (host === undefined) continue
                  if (one.kind === "pass") yield* pass(1_000)
                  else if (one.kind !== "restart") host.isUp = one.kind === "mend"
                  else {
                    yield* host.close
                    hosts[one.host] = yield* makeHost
                  }
                }
                if (words % 3 === 0) yield* settle
              }
              for (const host of hosts) host.isUp = true
              yield* pass(30_000)
              for (const { projection } of hosts) {
                yield* projection.caughtUp()
                expect(yield* found(projection)).toEqual(yield* logged)
              }
              for (const { close } of hosts) yield* close
            })
          )
        )
      ),
      { seed: SEED, numRuns: 60 * SOAK }
    )
  })
})
