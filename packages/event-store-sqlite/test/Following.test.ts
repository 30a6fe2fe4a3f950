/** Followers of a log on SQLite that mostly holds events of others. */
import {
  Aggregate,
  type Decider,
  EventCodec,
  EventStore,
  MemoryStateStore,
  MemoryTextIndex,
  Projection,
  Reaction,
  type StreamName,
  TextProjection
} from "@millrace/event-sourcing"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Effect, Layer, Result, Schema, Stream } from "effect"
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { inTemporaryFolder } from "./TemporaryFolder.ts"

const seed = Number(process.env["MILLRACE_SEED"] ?? 1)

const stores = Layer.mergeAll(
  inTemporaryFolder((filename) => SqliteEventStore.layer({ filename })),
  MemoryStateStore.layer,
  MemoryTextIndex.layer
)

const append = Effect.fnUntraced(function* (stream: StreamName.StreamName, id: string) {
  const { append, lastRevision } = yield* EventStore.EventStore
  return yield* append(stream, yield* lastRevision(stream), [{ id, type: "Happened", data: id, metadata: "{}" }])
})

const projected = {
  name: "ours",
  version: 1,
  categories: ["ours"],
  state: Schema.Array(Schema.String),
  initial: (): ReadonlyArray<string> => [],
  evolve: (ids: ReadonlyArray<string>, { id }: EventStore.RecordedEvent) => [...ids, id]
}

const indexed: TextProjection.Definition = {
  name: "ours",
  version: 1,
  categories: ["ours"],
  touches: ({ id }) => [id],
  evolve: ({ id }, documents) => void documents.set(id, { id, text: "word", keys: ["all"], weight: 0, value: id })
}

it("all followers have each event of theirs, and are up to date also where the newest events are not theirs", () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 12 }), (steps) =>
      Effect.gen(function* () {
        const projection = yield* Projection.make(projected)
        const texts = yield* TextProjection.make(indexed)
        const reacted: Array<string> = []
        const react = ({ id }: EventStore.RecordedEvent) => Effect.sync(() => void reacted.push(id))
        const reaction = yield* Reaction.make({ name: "ours", start: "beginning", categories: ["ours"], react })
        const ours: Array<string> = []
        let made = 0
        for (const appends of steps) {
          const ends = yield* Effect.forEach(
            appends.map((isOurs, i) => {
              const id = `${++made}`
              if (isOurs) ours.push(id)
              return append(isOurs ? `ours-${i}` : `theirs-${i}`, id)
            }),
            (write) => write,
            { concurrency: "unbounded" }
          )
          const end = ends
            .map(({ position }) => position)
            .sort()
            .at(-1)
          expect(new Set((yield* projection.caughtUp()).state)).toEqual(new Set(ours))
          yield* texts.caughtUp()
          expect((yield* texts.status).position).toBe(end)
          while ((yield* reaction.status).position !== end) yield* Effect.sleep(1)
          expect(new Set(reacted)).toEqual(new Set(ours))
          expect(reacted).toHaveLength(ours.length)
        }
        expect((yield* texts.search({ keys: ["all"], limit: 100 })).map(({ id }) => id).sort()).toEqual([...ours].sort())
      }).pipe(Effect.scoped, Effect.provide(stores), Effect.runPromise)
    ),
    { numRuns: 20, seed }
  ))

it("a batch that holds nothing for a subscriber is not sent", () =>
  Effect.gen(function* () {
    const { subscribe } = yield* EventStore.EventStore
    yield* append("ours-1", "1")
    const got: Array<string> = []
    const skipped: Array<EventStore.Position> = []
    const skip = (_: EventStore.Position, position: EventStore.Position) => skipped.push(position) > 0
    yield* Effect.forkScoped(
      Stream.runForEach(subscribe(EventStore.start, { categories: ["ours"], skip }), ({ events, live }) =>
        Effect.sync(() => void got.push(events.map(({ id }) => id).join() || (live ? "live" : "")))
      )
    )
    while (!got.includes("live")) yield* Effect.sleep(1)
    const { position } = yield* append("theirs-1", "2")
    yield* append("ours-1", "3")
    while (!got.includes("3")) yield* Effect.sleep(1)
    expect(got).toEqual(["1", "live", "3"])
    expect(skipped).toEqual([position])
  }).pipe(Effect.scoped, Effect.provide(stores), Effect.runPromise))

const Noted = Schema.TaggedUnion({
  Noted: { on: Schema.DateFromString, note: Schema.optionalKey(Schema.String), parts: Schema.Array(Schema.Int) }
})
type Noted = typeof Noted.Type

const notes: Decider<number, Noted> = {
  category: "notes",
  codec: EventCodec.make(Noted),
  initial: 0,
  evolve: (count) => count + 1
}

const events = fc.record(
  {
    _tag: fc.constant("Noted" as const),
    on: fc.date({ noInvalidDate: true, min: new Date("0000-01-01"), max: new Date("9999-12-31") }),
    note: fc.string(),
    parts: fc.array(fc.integer())
  },
  { requiredKeys: ["_tag", "on", "parts"], noNullPrototype: true }
)

it("what a projection was told of events that this process decided is what it reads of them later", () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.array(events, { maxLength: 3 })), { maxLength: 8 }), (commands) =>
      Effect.gen(function* () {
        const aggregate = yield* Aggregate.make(notes)
        const { subscribe } = yield* EventStore.EventStore
        const told: Array<unknown> = []
        const projection = yield* Projection.make({
          name: "notes",
          version: 1,
          state: Schema.Array(Schema.Any),
          initial: (): ReadonlyArray<unknown> => [],
          ...Projection.of<ReadonlyArray<unknown>, Noted>(notes, { Noted: (event, origin, all) => [...all, { event, origin }] })
        })
        const fresh: Array<EventStore.RecordedEvent> = []
        let isLive = false
        const take = ({ events, live }: EventStore.Batch) =>
          Effect.sync(() => {
            fresh.push(...events)
            isLive = live
          })
        yield* Effect.forkScoped(Stream.runForEach(subscribe(EventStore.start), take))
        yield* projection.caughtUp()
        while (!isLive) yield* Effect.sleep(1)
        for (const [id, decided] of commands) {
          yield* aggregate.execute(`${id}`, () => Result.succeed(decided))
          told.push(...decided.map((event) => ({ event, origin: expect.objectContaining({ id: `${id}` }) })))
        }
        const { state } = yield* projection.caughtUp()
        expect(state).toEqual(told)
        expect(fresh.every(({ decided }) => decided !== undefined)).toBe(true)
        yield* projection.rebuild
        expect((yield* projection.read()).state).toStrictEqual(state)
      }).pipe(Effect.scoped, Effect.provide(stores), Effect.runPromise)
    ),
    { numRuns: 20, seed }
  ))
