/**
 * What every event store keeps to, as tests. Each implementation runs them unchanged, so nothing here assumes an empty log, one process,
 * dense positions or that a log is read the instant it was written: what must show up is waited for, with ten seconds as a failsafe.
 */
import assert from "node:assert/strict"
import { EventIds, EventStore, StreamName } from "@millrace/event-sourcing"
import { Deferred, Effect, Exit, Fiber, type Layer, Random, type Scope, Stream } from "effect"
import fc from "fast-check"

/** Where tests are declared: the functions of vitest, of node:test, or of any other runner of this shape. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (name: string, body: () => Promise<void>) => unknown
}

export type Store = EventStore.EventStore["Service"]
type EventData = EventStore.EventData
type Batch = readonly [EventData, ...Array<EventData>]

/** Fails when `effect` takes longer than anything should. */
export const failsafe = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.timeoutOrElse(effect, { duration: "10 seconds", orElse: () => Effect.die(new Error(`Not within ten seconds: ${what}`)) })

/** A property whose every run is an effect. */
export const property = <A>(arbitrary: fc.Arbitrary<A>, numRuns: number, run: (value: A) => Effect.Effect<unknown, unknown>) =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(arbitrary, async (value) => void (await Effect.runPromise(run(value)))),
      { numRuns }
    )
  )

// what is written

const newId = Effect.map(EventIds, (ids) => ids(0))

const freshStream = Effect.map(newId, (id): StreamName.StreamName => `suite-${id}`)

const freshEvent = Effect.map(newId, (id): EventData => ({ id, type: "Happened", data: `{"id":"${id}"}`, metadata: "{}" }))

const freshEvents = (count: number): Effect.Effect<Batch> =>
  Effect.gen(function* () {
    const first = yield* freshEvent
    return [first, ...(yield* Effect.replicateEffect(freshEvent, count - 1))]
  })

/** The same batch with other events, or in another order; never empty. */
const change = ([first, ...rest]: Batch, into: (batch: Batch) => ReadonlyArray<EventData>): Batch => {
  const [head = first, ...tail] = into([first, ...rest])
  return [head, ...tail]
}

// what is read

const nth = <A>(all: ReadonlyArray<A>, index: number): A => {
  const one = all.at(index)
  assert(one !== undefined, `nothing at ${index} of ${all.length}`)
  return one
}

const ids = (events: ReadonlyArray<EventData>) => events.map(({ id }) => id)

const contents = (events: ReadonlyArray<EventData>) =>
  events.map(({ id, type, data, metadata }): EventData => ({ id, type, data, metadata }))

const readAllOf = (store: Store, name: StreamName.StreamName, options?: EventStore.ReadStreamOptions) =>
  Stream.runCollect(store.readStream(name, options))

const ofStreams = (batches: Stream.Stream<EventStore.Batch, EventStore.StoreUnavailable>, names: Iterable<StreamName.StreamName>) => {
  const ours = new Set(names)
  return batches.pipe(
    Stream.flatMap(({ events }) => Stream.fromIterable(events)),
    Stream.filter(({ stream }) => ours.has(stream))
  )
}

/** The next `count` events of these streams after a position, waited for. */
const followed = (store: Store, after: EventStore.Position, names: Iterable<StreamName.StreamName>, count: number) =>
  failsafe(`${count} events`, Stream.runCollect(Stream.take(ofStreams(store.subscribe(after), names), count)))

/** Reads the log after a position until `isThere`: a log may show an event a moment after it was appended. */
const readLog = (
  store: Store,
  after: EventStore.Position,
  name: StreamName.StreamName,
  isThere: (events: ReadonlyArray<EventStore.RecordedEvent>) => boolean
) => {
  const read: Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, EventStore.StoreUnavailable> = Effect.flatMap(
    Stream.runCollect(Stream.filter(store.readAll(after), ({ stream }) => stream === name)),
    (events) => (isThere(events) ? Effect.succeed(events) : Effect.andThen(Effect.sleep(5), read))
  )
  return failsafe("the log read", read)
}

const ascends = (positions: ReadonlyArray<EventStore.Position>) =>
  positions.every((position, i) => i === 0 || position > nth(positions, i - 1))

const wrongRevision = <E>(exit: Exit.Exit<unknown, E>): EventStore.WrongRevision => {
  assert(Exit.isFailure(exit), "it was appended")
  const [reason] = exit.cause.reasons
  assert(reason?._tag === "Fail" && reason.error instanceof EventStore.WrongRevision, `not a WrongRevision: ${String(exit)}`)
  return reason.error
}

/** Appends to the end of the stream, wherever it is by then. */
const appendAnywhere = (
  store: Store,
  name: StreamName.StreamName,
  batch: Batch,
  failures = 0
): Effect.Effect<EventStore.Appended, EventStore.AppendInDoubt | EventStore.AppendTooLarge | EventStore.StoreUnavailable> =>
  Effect.flatMap(store.lastRevision(name), (last) =>
    Effect.catchTag(store.append(name, last, batch), "WrongRevision", () =>
      Effect.gen(function* () {
        // Or else each success would be paid for with as many conflicts as there are appenders
        yield* Effect.sleep(yield* Random.nextIntBetween(0, Math.min(500, 2 ** failures)))
        return yield* appendAnywhere(store, name, batch, failures + 1)
      })
    )
  )

/**
 * Declares the tests of one store. `makeLayer` is built anew for each; the log beneath may be empty or hold anything, as long as nobody
 * else writes streams of the category `suite`.
 */
export const eventStoreSuite = (
  name: string,
  makeLayer: () => Layer.Layer<EventStore.EventStore, unknown>,
  { describe, it }: Runner
): void => {
  const test = (title: string, body: (store: Store) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
    it(title, () => Effect.runPromise(EventStore.EventStore.use(body).pipe(Effect.scoped, Effect.asVoid, Effect.provide(makeLayer()))))

  describe(`${name}: appending`, () => {
    test("takes place at the exact revision and nowhere else", (store) =>
      Effect.gen(function* () {
        const [one, other] = [yield* freshStream, yield* freshStream]
        const batch = yield* freshEvents(2)
        assert.equal((yield* store.append(one, "noStream", batch)).revision, 1)
        for (const expected of ["noStream", 0, 2, 7] as const) {
          const refused = yield* Effect.flip(store.append(one, expected, yield* freshEvents(1)))
          assert.deepEqual(refused, new EventStore.WrongRevision({ stream: one, actual: 1 }))
        }
        const refused = yield* Effect.flip(store.append(other, 0, yield* freshEvents(1)))
        assert.deepEqual(refused, new EventStore.WrongRevision({ stream: other, actual: "noStream" }))
        const third = yield* freshEvents(1)
        assert.equal((yield* store.append(one, 1, third)).revision, 2)
        const events = yield* readAllOf(store, one)
        assert.deepEqual(contents(events), [...batch, ...third])
        assert.deepEqual(
          events.map(({ stream, revision }) => ({ stream, revision })),
          [0, 1, 2].map((revision) => ({ stream: one, revision }))
        )
        assert.deepEqual(yield* readAllOf(store, other), [])
      }))

    test("is answered with the place of its last event", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const first = yield* store.append(stream, "noStream", yield* freshEvents(3))
        const second = yield* store.append(stream, 2, yield* freshEvents(1))
        const events = yield* readAllOf(store, stream)
        assert.deepEqual([first.revision, second.revision], [2, 3])
        assert.deepEqual([first.position, second.position], [events[2]?.position, events[3]?.position])
        assert(ascends(events.map(({ position }) => position)))
        assert(first.position > EventStore.start)
      }))

    test("is answered again as the success it was, also after later events", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const [first, second] = [yield* freshEvents(3), yield* freshEvents(2)]
        const appended = yield* store.append(stream, "noStream", first)
        assert.deepEqual(yield* store.append(stream, "noStream", first), appended)
        const later = yield* store.append(stream, 2, second)
        assert.deepEqual(yield* store.append(stream, "noStream", first), appended)
        assert.deepEqual(yield* store.append(stream, 2, second), later)
        assert.deepEqual(ids(yield* readAllOf(store, stream)), ids([...first, ...second]))
      }))

    test("is answered again for a part at its own revision, not for more or in another order", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const batch = yield* freshEvents(4)
        yield* store.append(stream, "noStream", batch)
        const part = (from: number, to: number) => change(batch, (all) => all.slice(from, to))
        const parts = [
          ["noStream", part(0, 2), 1],
          ["noStream", part(0, 1), 0],
          [1, part(2, 4), 3],
          [0, part(1, 3), 2]
        ] as const
        for (const [expected, events, revision] of parts) assert.equal((yield* store.append(stream, expected, events)).revision, revision)
        const extra = yield* freshEvent
        const others = [
          ["noStream", change(batch, (all) => [...all, extra])],
          ["noStream", change(batch, (all) => all.toReversed())],
          ["noStream", change(batch, ([a, , c]) => [a, ...(c === undefined ? [] : [c])])],
          ["noStream", change(batch, (all) => [...all.slice(0, 3), extra])],
          [0, part(0, 2)],
          [2, change(part(3, 4), (all) => [...all, extra])]
        ] as const
        for (const [expected, events] of others)
          assert.equal(wrongRevision(yield* Effect.exit(store.append(stream, expected, events))).actual, 3)
        assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(batch))
      }))

    test("is answered alike however often it is sent at once, and is written once", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const [first, second] = [yield* freshEvents(3), yield* freshEvents(2)]
        const send = (expected: EventStore.ExpectedRevision, batch: Batch) =>
          Effect.all(
            Array.from({ length: 20 }, () => store.append(stream, expected, batch)),
            { concurrency: "unbounded" }
          )
        assert.equal(new Set((yield* send("noStream", first)).map(({ position }) => position)).size, 1)
        assert.deepEqual(new Set((yield* send(2, second)).map(({ revision }) => revision)), new Set([4]))
        assert.deepEqual(ids(yield* readAllOf(store, stream)), ids([...first, ...second]))
      }))

    test("fails alone on a conflict, among appends sent at once", (store) =>
      Effect.gen(function* () {
        const sent = yield* Effect.forEach(
          Array.from({ length: 9 }, (_, i) => i % 3 === 0),
          (isTaken) =>
            Effect.all({
              stream: freshStream,
              batch: freshEvents(2),
              there: Effect.map(freshEvents(1), (one) => (isTaken ? one : undefined))
            })
        )
        for (const { stream, there } of sent) if (there !== undefined) yield* store.append(stream, "noStream", there)
        const exits = yield* Effect.forEach(sent, ({ stream, batch }) => Effect.exit(store.append(stream, "noStream", batch)), {
          concurrency: "unbounded"
        })
        for (const [i, { stream, batch, there }] of sent.entries()) {
          if (there === undefined) assert(Exit.isSuccess(nth(exits, i)))
          else assert.equal(wrongRevision(nth(exits, i)).actual, 0)
          assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(there ?? batch))
        }
      }))

    test("begins a stream for one of many who try at once", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const batches = yield* Effect.replicateEffect(freshEvents(2), 32)
        const exits = yield* Effect.forEach(batches, (batch) => Effect.exit(store.append(stream, "noStream", batch)), {
          concurrency: "unbounded"
        })
        const winners = batches.filter((_, i) => Exit.isSuccess(nth(exits, i)))
        assert.equal(winners.length, 1)
        for (const exit of exits) if (Exit.isFailure(exit)) assert.equal(wrongRevision(exit).actual, 1)
        assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(nth(winners, 0)))
      }))

    test("takes as many bytes as every store takes, and writes nothing of more", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const [first, second] = [yield* freshEvent, yield* freshEvent]
        // Letters of two bytes, so that characters are not what is counted
        const filledTo = (bytes: number): Batch => {
          const room = bytes - EventStore.appendBytes([first, { ...second, data: `""` }])
          return [first, { ...second, data: `"${"x".repeat(room % 2)}${"é".repeat(Math.floor(room / 2))}"` }]
        }
        const tooMuch = yield* Effect.flip(store.append(stream, "noStream", filledTo(EventStore.MAX_APPEND_BYTES + 1)))
        assert.deepEqual(tooMuch, new EventStore.AppendTooLarge({ stream, bytes: EventStore.MAX_APPEND_BYTES + 1 }))
        assert.equal(yield* store.lastRevision(stream), "noStream")
        assert.deepEqual(yield* readAllOf(store, stream), [])
        const most = filledTo(EventStore.MAX_APPEND_BYTES)
        assert.equal((yield* store.append(stream, "noStream", most)).revision, 1)
        assert.deepEqual(contents(yield* readAllOf(store, stream)), most)
      }))

    test("loses nothing of 1,000 who append to one stream at once", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const batches = yield* Effect.replicateEffect(freshEvents(1), 1_000)
        const appended = yield* Effect.forEach(batches, (batch) => appendAnywhere(store, stream, batch), { concurrency: "unbounded" })
        const events = yield* readAllOf(store, stream)
        assert.equal(events.length, 1_000)
        for (const [i, { revision, position }] of appended.entries())
          assert.deepEqual([nth(events, revision).id, nth(events, revision).position], [nth(batches, i)[0].id, position])
      }))

    test("is answered as a model of the stream says, whatever the schedule", (store) =>
      property(
        fc.array(
          fc.oneof(
            fc.record({
              kind: fc.constant("new"),
              stream: fc.nat(2),
              count: fc.integer({ min: 1, max: 4 }),
              offset: fc.constantFrom(0, 0, 0, -1, 1, -3)
            }),
            fc.record({
              kind: fc.constant("again"),
              nth: fc.nat(30),
              into: fc.constantFrom<(batch: Batch) => ReadonlyArray<EventData>>(
                (batch) => batch,
                (batch) => batch.slice(0, -1),
                (batch) => batch.toReversed(),
                (batch) => [...batch, ...batch]
              ),
              offset: fc.constantFrom(0, 0, 0, 1, -1)
            })
          ),
          { minLength: 1, maxLength: 24 }
        ),
        40,
        (schedule) =>
          Effect.gen(function* () {
            const streams = yield* Effect.replicateEffect(freshStream, 3)
            const model = new Map(streams.map((stream): [StreamName.StreamName, Array<string>] => [stream, []]))
            const sent: Array<{ readonly stream: StreamName.StreamName; readonly first: number; readonly batch: Batch }> = []
            for (const step of schedule) {
              if ("nth" in step && sent.length === 0) continue
              const stream = "nth" in step ? nth(sent, step.nth % sent.length).stream : nth(streams, step.stream)
              const there = model.get(stream) ?? []
              const first = Math.max(0, step.offset + ("nth" in step ? nth(sent, step.nth % sent.length).first : there.length))
              const batch = "nth" in step ? change(nth(sent, step.nth % sent.length).batch, step.into) : yield* freshEvents(step.count)
              sent.push({ stream, first, batch })
              const exit = yield* Effect.exit(store.append(stream, first === 0 ? "noStream" : first - 1, batch))
              const isNew = first === there.length
              if (isNew) there.push(...ids(batch))
              if (isNew || batch.every(({ id }, i) => there[first + i] === id)) {
                assert(Exit.isSuccess(exit), String(exit))
                assert.equal(exit.value.revision, first + batch.length - 1)
              } else assert.equal(wrongRevision(exit).actual, there.length === 0 ? "noStream" : there.length - 1)
            }
            for (const [stream, there] of model) {
              assert.deepEqual(ids(yield* readAllOf(store, stream)), there)
              assert.equal(yield* store.lastRevision(stream), there.length === 0 ? "noStream" : there.length - 1)
            }
          })
      ))

    test("keeps all that was acknowledged and nothing that was refused, whoever else appends at once", (store) =>
      property(
        fc.array(fc.record({ stream: fc.nat(2), count: fc.integer({ min: 1, max: 3 }), offset: fc.constantFrom(0, 0, 0, 1, 2) }), {
          minLength: 2,
          maxLength: 40
        }),
        25,
        (schedule) =>
          Effect.gen(function* () {
            const streams = yield* Effect.replicateEffect(freshStream, 3)
            const run = ({ stream: place, count, offset }: (typeof schedule)[number]) =>
              Effect.gen(function* () {
                const [stream, batch] = [nth(streams, place), yield* freshEvents(count)]
                const last = yield* store.lastRevision(stream)
                const first = offset + (last === "noStream" ? 0 : last + 1)
                const exit = yield* Effect.exit(store.append(stream, first === 0 ? "noStream" : first - 1, batch))
                return { stream, first, batch, exit }
              })
            const told = yield* Effect.forEach(schedule, run, { concurrency: "unbounded" })
            for (const stream of streams) {
              const written = told
                .filter((one) => one.stream === stream && Exit.isSuccess(one.exit))
                .sort((a, b) => a.first - b.first)
                .flatMap(({ batch }) => ids(batch))
              assert.deepEqual(ids(yield* readAllOf(store, stream)), written)
            }
            for (const { exit } of told) if (Exit.isFailure(exit)) wrongRevision(exit)
          })
      ))
  })

  describe(`${name}: what is kept`, () => {
    test("is every byte of data and metadata", (store) =>
      Effect.gen(function* () {
        const texts = [
          `{"b":1,"a":{"z":[],"y":{}}}`,
          `{"2":"key order","10":0,"1":0}`,
          `{"float":1.0,"big":1e21,"more":1E+2,"minus":-0,"long":12345678901234567890.123456789,"twice":1,"twice":2}`,
          `{ "white" : [ 1 ,\t2 ] }`,
          `{"escaped":"\\u0000 \\ud800 \\udc00\\ud83d \\/ \\u00e9 \\n"}`,
          `{"plain":"é e\u0301 \u{1f469}\u200d\u{1f680} \u2028 \ufeff \uffff \u{10ffff} '; -- \\\\"}`,
          JSON.stringify({ lone: "\ud800", nul: "\u0000", long: "\u{1f600}x".repeat(20_000) })
        ]
        for (const text of texts) {
          const stream = yield* freshStream
          const event = yield* freshEvent
          const type = `Type of ${text.slice(0, 9)} \u{1f600}`
          const batch: Batch = [
            { ...event, type, data: text, metadata: text },
            { ...(yield* freshEvent), data: "null" },
            { ...(yield* freshEvent), data: `"text"` }
          ]
          yield* store.append(stream, "noStream", batch)
          assert.deepEqual(contents(yield* readAllOf(store, stream)), batch)
        }
      }))

    test("is any JSON, byte for byte, in a stream as in the log", (store) =>
      property(
        fc.array(fc.tuple(fc.json(), fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue())), { minLength: 1, maxLength: 8 }),
        25,
        (all) =>
          Effect.gen(function* () {
            const stream = yield* freshStream
            const events = yield* Effect.forEach(all, ([data, metadata]) =>
              Effect.map(freshEvent, (event): EventData => ({ ...event, data, metadata: JSON.stringify(metadata) }))
            )
            const before = yield* store.head
            yield* store.append(stream, "noStream", [nth(events, 0), ...events.slice(1)])
            const read = yield* readAllOf(store, stream)
            assert.deepEqual(contents(read), events)
            assert.deepEqual(yield* readLog(store, before, stream, (seen) => seen.length >= events.length), read)
          })
      ))

    test("stays apart by stream, however much the names are alike", (store) =>
      Effect.gen(function* () {
        const unique = yield* newId
        const ends = [
          "it's",
          `"quoted"`,
          "a'; DROP TABLE events; --",
          "%",
          "_",
          "$1",
          "?",
          ":name",
          "\\",
          "\\'",
          "../..",
          "a--b-",
          "*",
          "{}",
          "[0]",
          "x",
          "X",
          "x ",
          " x",
          "é",
          "e\u0301",
          "ß",
          "ss",
          "ı",
          "i",
          "\u{1f469}\u200d\u{1f680}",
          "\u{1f469}",
          "\u200f\u05d0",
          "\uffff",
          "\u{10ffff}"
        ]
        const names = ends.map((end): StreamName.StreamName => `suite-${unique}${end}`)
        const room = StreamName.MAX_LENGTH - `suite-${unique}`.length
        for (const letter of ["y", "\u20ac"]) {
          names.push(
            `suite-${unique}${letter.repeat(room)}`,
            `suite-${unique}${letter.repeat(room - 1)}`,
            `suite-${unique}${letter.repeat(room - 1)}z`
          )
        }
        names.push(`Suite-${unique}x`, `suite'"é-${unique}x`)
        const before = yield* store.head
        const batches = yield* Effect.forEach(names, () => freshEvents(2))
        yield* Effect.forEach(names, (stream, i) => store.append(stream, "noStream", nth(batches, i)), { concurrency: "unbounded" })
        for (const [i, stream] of names.entries()) {
          assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(nth(batches, i)))
          assert.equal(yield* store.lastRevision(stream), 1)
        }
        const log = yield* followed(store, before, names, names.length * 2)
        for (const { id, stream } of log) assert(nth(batches, names.indexOf(stream)).some((event) => event.id === id))
      }))
  })

  describe(`${name}: reading`, () => {
    const LENGTH = 2_500
    const longStream = (store: Store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const batch = yield* freshEvents(LENGTH)
        for (let i = 0; i < LENGTH; i += 500)
          yield* store.append(
            stream,
            i === 0 ? "noStream" : i - 1,
            change(batch, (all) => all.slice(i, i + 500))
          )
        return { stream, all: ids(batch) }
      })

    test("goes both ways, from anywhere, up to a limit, page after page", (store) =>
      Effect.gen(function* () {
        const { stream, all } = yield* longStream(store)
        const read = (options?: EventStore.ReadStreamOptions) => Effect.map(readAllOf(store, stream, options), ids)
        const back = all.toReversed()
        assert.deepEqual(yield* read(), all)
        assert.deepEqual(yield* read({ direction: "forwards" }), all)
        assert.deepEqual(yield* read({ direction: "backwards" }), back)
        assert.deepEqual(yield* read({ from: 2_498 }), all.slice(2_498))
        assert.deepEqual(yield* read({ from: LENGTH }), [])
        assert.deepEqual(yield* read({ from: 3, limit: 1 }), all.slice(3, 4))
        assert.deepEqual(yield* read({ from: 0, direction: "backwards" }), all.slice(0, 1))
        assert.deepEqual(yield* read({ from: 1, direction: "backwards", limit: 9 }), back.slice(-2))
        assert.deepEqual(yield* read({ direction: "backwards", limit: 1 }), back.slice(0, 1))
        for (const limit of [0, 1, 500, 511, 512, 513, 999, 1_000, 1_001, 1_024, 2_000, LENGTH, LENGTH + 1]) {
          assert.deepEqual(yield* read({ limit }), all.slice(0, limit))
          assert.deepEqual(yield* read({ limit, from: 700 }), all.slice(700, 700 + limit))
          assert.deepEqual(yield* read({ limit, direction: "backwards" }), back.slice(0, limit))
          assert.deepEqual(yield* read({ limit, from: 1_700, direction: "backwards" }), all.slice(0, 1_701).toReversed().slice(0, limit))
        }
      }))

    test("of a stream that does not exist finds nothing", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        assert.deepEqual(yield* readAllOf(store, stream), [])
        assert.deepEqual(yield* readAllOf(store, stream, { direction: "backwards", limit: 1 }), [])
        assert.deepEqual(yield* readAllOf(store, stream, { from: 5 }), [])
        assert.equal(yield* store.lastRevision(stream), "noStream")
      }))

    test("of the log starts after any position and keeps its order", (store) =>
      Effect.gen(function* () {
        const before = yield* store.head
        const { stream, all } = yield* longStream(store)
        const log = yield* readLog(store, before, stream, (events) => events.length >= LENGTH)
        assert.deepEqual(ids(log), all)
        assert(ascends(log.map(({ position }) => position)))
        for (const i of [0, 1, 510, 511, 512, 998, 999, 1_000, 2_498, 2_499]) {
          const rest = yield* Stream.runCollect(Stream.filter(store.readAll(nth(log, i).position), (event) => event.stream === stream))
          assert.deepEqual(ids(rest), all.slice(i + 1))
        }
        const [first] = yield* Stream.runCollect(
          Stream.take(
            Stream.filter(store.readAll(EventStore.start), (event) => event.stream === stream),
            1
          )
        )
        assert.deepEqual(first, log[0])
      }))

    test("of the log has the order of appends to different streams", (store) =>
      Effect.gen(function* () {
        const [one, two] = [yield* freshStream, yield* freshStream]
        const before = yield* store.head
        const batches: Array<Batch> = []
        for (let i = 0; i < 20; i++) {
          const batch = yield* freshEvents(2)
          const round = Math.floor(i / 2)
          yield* store.append(i % 2 === 0 ? one : two, round === 0 ? "noStream" : round * 2 - 1, batch)
          batches.push(batch)
        }
        assert.deepEqual(ids(yield* followed(store, before, [one, two], 40)), ids(batches.flat()))
      }))

    test("can be left early, over and over", (store) =>
      Effect.gen(function* () {
        const { stream, all } = yield* longStream(store)
        const before = yield* store.head
        for (let i = 0; i < 256; i++) {
          const [first] = yield* Stream.runCollect(Stream.take(store.readStream(stream, { from: i }), 1))
          assert.equal(first?.id, all[i])
          yield* Stream.runDrain(Stream.take(store.readAll(EventStore.start), 1))
        }
        assert.equal((yield* store.append(stream, LENGTH - 1, yield* freshEvents(1))).revision, LENGTH)
        yield* followed(store, before, [stream], 1)
      }))

    test("tells where the log ends", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const before = yield* store.head
        const { position } = yield* store.append(stream, "noStream", yield* freshEvents(3))
        yield* followed(store, before, [stream], 3)
        const head = yield* store.head
        assert(head >= position && position > before)
        const after = yield* Stream.runCollect(Stream.filter(store.readAll(head), (event) => event.stream === stream))
        assert.deepEqual(after, [])
      }))

    test("tells where a stream ends, the instant it was appended", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        assert.equal(yield* store.lastRevision(stream), "noStream")
        for (let revision = 0; revision < 40; revision++) {
          yield* store.append(stream, revision === 0 ? "noStream" : revision - 1, yield* freshEvents(1))
          assert.equal(yield* store.lastRevision(stream), revision)
        }
      }))
  })

  describe(`${name}: a subscription`, () => {
    /** Collects ids of these streams until `count` were seen, and remembers where it was told to be live. */
    const watch = (store: Store, after: EventStore.Position, names: ReadonlyArray<StreamName.StreamName>, count: number) =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        const isLive = yield* Deferred.make<number>()
        const fiber = yield* Effect.forkScoped(
          store.subscribe(after).pipe(
            Stream.mapEffect(({ events, live }) =>
              Effect.gen(function* () {
                const wasLive = yield* Deferred.isDone(isLive)
                assert(live || !wasLive, "it was live before")
                seen.push(...ids(events.filter(({ stream }) => names.includes(stream))))
                if (live) yield* Deferred.succeed(isLive, seen.length)
              })
            ),
            Stream.takeUntil(() => seen.length >= count),
            Stream.runDrain
          )
        )
        return {
          seen,
          caughtUp: failsafe("caught up", Deferred.await(isLive)),
          done: failsafe(`${count} events`, Effect.as(Fiber.join(fiber), seen)),
          interrupt: Fiber.interrupt(fiber)
        }
      })

    test("catches up, says so, and goes on", (store) =>
      Effect.gen(function* () {
        const [one, two] = [yield* freshStream, yield* freshStream]
        const before = yield* store.head
        const batches = yield* Effect.replicateEffect(freshEvents(2), 4)
        yield* store.append(one, "noStream", nth(batches, 0))
        // What the log shows a moment later would not be old when the subscription starts
        yield* followed(store, before, [one], 2)
        const watched = yield* watch(store, before, [one, two], 8)
        assert.equal(yield* watched.caughtUp, 2)
        yield* store.append(two, "noStream", nth(batches, 1))
        yield* store.append(one, 1, nth(batches, 2))
        yield* store.append(two, 1, nth(batches, 3))
        assert.deepEqual(yield* watched.done, ids(batches.flat()))
      }))

    test("is live where there is nothing to catch up with", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const watched = yield* watch(store, yield* store.head, [stream], 1)
        assert.equal(yield* watched.caughtUp, 0)
        const batch = yield* freshEvents(1)
        yield* store.append(stream, "noStream", batch)
        assert.deepEqual(yield* watched.done, ids(batch))
      }))

    test("starts after any position", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const before = yield* store.head
        const batch = yield* freshEvents(1_600)
        yield* store.append(stream, "noStream", batch)
        const log = yield* followed(store, before, [stream], batch.length)
        for (const i of [0, 511, 512, 1_000, 1_598]) {
          const rest = yield* followed(store, nth(log, i).position, [stream], batch.length - i - 1)
          assert.deepEqual(rest, log.slice(i + 1))
        }
        const next = yield* freshEvents(1)
        const watched = yield* watch(store, nth(log, -1).position, [stream], 1)
        yield* watched.caughtUp
        yield* store.append(stream, 1_599, next)
        assert.deepEqual(yield* watched.done, ids(next))
      }))

    test("sees each event once, in order, while others append; many at a time, from different places", (store) =>
      Effect.gen(function* () {
        const streams = yield* Effect.replicateEffect(freshStream, 3)
        const before = yield* store.head
        const batches = yield* Effect.replicateEffect(freshEvents(3), 200)
        const half = yield* Deferred.make<EventStore.Position>()
        const early = yield* Effect.replicateEffect(watch(store, before, streams, 600), 4)
        const write = Effect.forEach(batches, (batch, i) =>
          Effect.gen(function* () {
            const round = Math.floor(i / 3)
            const { position } = yield* store.append(nth(streams, i % 3), round === 0 ? "noStream" : round * 3 - 1, batch)
            if (i === 99) yield* Deferred.succeed(half, position)
          })
        )
        const writer = yield* Effect.forkScoped(write)
        const late = yield* watch(store, yield* Deferred.await(half), streams, 300)
        yield* Fiber.join(writer)
        const all = ids(batches.flat())
        for (const { done } of early) assert.deepEqual(yield* done, all)
        assert.deepEqual(yield* late.done, all.slice(300))
      }))

    test("that is slow misses nothing", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const batch = yield* freshEvents(2_400)
        const isWritten = yield* Deferred.make<void>()
        const started = yield* Deferred.make<void>()
        const slow = ofStreams(store.subscribe(yield* store.head), [stream]).pipe(
          Stream.tap(() => Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(isWritten))),
          Stream.take(batch.length),
          Stream.runCollect
        )
        const fiber = yield* Effect.forkScoped(slow)
        yield* store.append(
          stream,
          "noStream",
          change(batch, (all) => all.slice(0, 1))
        )
        yield* failsafe("the first event", Deferred.await(started))
        for (let i = 1; i < batch.length; i += 100)
          yield* store.append(
            stream,
            i - 1,
            change(batch, (all) => all.slice(i, i + 100))
          )
        yield* Deferred.succeed(isWritten, undefined)
        assert.deepEqual(ids(yield* failsafe("all events", Fiber.join(fiber))), ids(batch))
      }))

    test("that is interrupted leaves nothing behind and disturbs no other", (store) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const before = yield* store.head
        const batches = yield* Effect.replicateEffect(freshEvents(1), 9)
        const steady = yield* watch(store, before, [stream], 9)
        for (let round = 0; round < 8; round++) {
          const many = yield* Effect.replicateEffect(
            watch(store, round % 2 === 0 ? before : EventStore.start, [stream], Number.MAX_SAFE_INTEGER),
            32
          )
          // Some while they catch up, the others while they wait for the next event
          if (round % 2 === 0) for (const { caughtUp } of many) yield* caughtUp
          yield* Effect.forEach(many, ({ interrupt }) => interrupt, { concurrency: "unbounded" })
          const seen = many.map((one) => one.seen.length)
          yield* store.append(stream, round === 0 ? "noStream" : round - 1, nth(batches, round))
          assert.deepEqual(
            many.map((one) => one.seen.length),
            seen
          )
        }
        yield* store.append(stream, 7, nth(batches, 8))
        assert.deepEqual(yield* steady.done, ids(batches.flat()))
        assert.equal((yield* followed(store, before, [stream], 9)).length, 9)
      }))
  })

  describe(`${name}: a snapshot`, () => {
    const freshName = Effect.map(newId, (id): StreamName.StreamName => `suiteSnapshot.v1-${id}`)

    test("is the newest that was saved under its name", (store) =>
      Effect.gen(function* () {
        const [one, two] = [yield* freshName, yield* freshName]
        assert.equal(yield* store.loadSnapshot(one), undefined)
        const save = (name: StreamName.StreamName, revision: number, data: string) => store.saveSnapshot(name, { revision, data })
        yield* save(one, 4, `{"n":4}`)
        assert.deepEqual(yield* store.loadSnapshot(one), { revision: 4, data: `{"n":4}` })
        yield* save(one, 3, `{"n":3}`)
        assert.deepEqual(yield* store.loadSnapshot(one), { revision: 4, data: `{"n":4}` })
        yield* save(one, 4, `{"n":"mended"}`)
        assert.deepEqual(yield* store.loadSnapshot(one), { revision: 4, data: `{"n":"mended"}` })
        yield* save(two, 1, `{"n":1}`)
        yield* save(one, 1_000_000, `{"n":1.0,"text":"${"\u{1f600}".repeat(20_000)}"}`)
        assert.deepEqual(yield* store.loadSnapshot(one), { revision: 1_000_000, data: `{"n":1.0,"text":"${"\u{1f600}".repeat(20_000)}"}` })
        assert.deepEqual(yield* store.loadSnapshot(two), { revision: 1, data: `{"n":1}` })
      }))

    test("is the newest of many saved at once", (store) =>
      Effect.gen(function* () {
        const name = yield* freshName
        const revisions = Array.from({ length: 50 }, (_, i) => (i * 37) % 50)
        yield* Effect.forEach(revisions, (revision) => store.saveSnapshot(name, { revision, data: `${revision}` }), {
          concurrency: "unbounded"
        })
        assert.deepEqual(yield* store.loadSnapshot(name), { revision: 49, data: "49" })
      }))

    test("is no part of the log", (store) =>
      Effect.gen(function* () {
        const [name, stream] = [yield* freshName, yield* freshStream]
        const before = yield* store.head
        yield* store.saveSnapshot(name, { revision: 0, data: "{}" })
        const batch = yield* freshEvents(1)
        yield* store.append(stream, "noStream", batch)
        yield* store.saveSnapshot(name, { revision: 1, data: "{}" })
        assert.deepEqual(ids(yield* followed(store, before, [name, stream], 1)), ids(batch))
      }))
  })
}

/**
 * Declares the tests of two clients of one log, as two processes would have it. `makePeers` opens them, anew for each test.
 */
export const eventStorePeersSuite = (
  name: string,
  makePeers: Effect.Effect<readonly [Store, Store], unknown, Scope.Scope>,
  { describe, it }: Runner
): void => {
  const test = (title: string, body: (a: Store, b: Store) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
    it(title, () => Effect.runPromise(Effect.asVoid(Effect.scoped(Effect.flatMap(makePeers, ([a, b]) => body(a, b))))))

  describe(`${name}: two on one log`, () => {
    test("meet each other's appends as conflicts, and know where a stream ends, at once", (a, b) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const written: Array<string> = []
        for (let revision = 0; revision < 30; revision++) {
          const [writer, other] = revision % 2 === 0 ? [a, b] : [b, a]
          const expected = revision === 0 ? "noStream" : revision - 1
          assert.equal(yield* other.lastRevision(stream), expected)
          const batch = yield* freshEvents(1)
          yield* writer.append(stream, expected, batch)
          written.push(...ids(batch))
          assert.equal(yield* other.lastRevision(stream), revision)
          assert.equal(wrongRevision(yield* Effect.exit(other.append(stream, expected, yield* freshEvents(1)))).actual, revision)
          assert.deepEqual(ids(yield* readAllOf(other, stream)), written)
        }
      }))

    test("answer each other's appends, sent again, as the successes they were", (a, b) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const [first, second] = [yield* freshEvents(3), yield* freshEvents(2)]
        const appended = yield* a.append(stream, "noStream", first)
        assert.deepEqual(yield* b.append(stream, "noStream", first), appended)
        yield* b.append(stream, 2, second)
        assert.deepEqual(yield* a.append(stream, "noStream", first), appended)
        assert.deepEqual(ids(yield* readAllOf(a, stream)), ids([...first, ...second]))
      }))

    test("lose nothing when both append to the same streams, and see one order", (a, b) =>
      Effect.gen(function* () {
        const streams = yield* Effect.replicateEffect(freshStream, 3)
        const before = yield* a.head
        const watching = yield* Effect.forEach([a, b], (store) => Effect.forkScoped(followed(store, before, streams, 400)))
        const batches = yield* Effect.replicateEffect(freshEvents(2), 200)
        const appended = yield* Effect.forEach(batches, (batch, i) => appendAnywhere(i % 2 === 0 ? a : b, nth(streams, i % 3), batch), {
          concurrency: "unbounded"
        })
        const [seenByA, seenByB] = yield* Effect.forEach(watching, (fiber) => Fiber.join(fiber))
        assert.deepEqual(seenByA, seenByB)
        assert.deepEqual(new Set(ids(seenByA ?? [])), new Set(ids(batches.flat())))
        for (const [i, { revision, position }] of appended.entries()) {
          const event = seenByA?.find((one) => one.stream === streams[i % 3] && one.revision === revision)
          assert.deepEqual([event?.id, event?.position], [nth(nth(batches, i), -1).id, position])
        }
      }))

    test("see each other's events live, and where the log ends", (a, b) =>
      Effect.gen(function* () {
        const stream = yield* freshStream
        const before = yield* b.head
        const isLive = yield* Deferred.make<void>()
        const live = b.subscribe(before).pipe(Stream.tap((batch) => (batch.live ? Deferred.succeed(isLive, undefined) : Effect.void)))
        const fiber = yield* Effect.forkScoped(Stream.runCollect(Stream.take(ofStreams(live, [stream]), 2)))
        yield* failsafe("caught up", Deferred.await(isLive))
        const batch = yield* freshEvents(2)
        const { position } = yield* a.append(stream, "noStream", batch)
        assert.deepEqual(ids(yield* failsafe("two events", Fiber.join(fiber))), ids(batch))
        assert((yield* b.head) >= position)
        assert.deepEqual(ids(yield* readLog(b, before, stream, (events) => events.length >= 2)), ids(batch))
      }))

    test("share their snapshots", (a, b) =>
      Effect.gen(function* () {
        const name: StreamName.StreamName = `suiteSnapshot.v1-${yield* newId}`
        yield* a.saveSnapshot(name, { revision: 2, data: "2" })
        yield* b.saveSnapshot(name, { revision: 1, data: "1" })
        assert.deepEqual(yield* b.loadSnapshot(name), { revision: 2, data: "2" })
        yield* b.saveSnapshot(name, { revision: 3, data: "3" })
        assert.deepEqual(yield* a.loadSnapshot(name), { revision: 3, data: "3" })
      }))
  })
}
