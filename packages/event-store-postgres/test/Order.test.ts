/** The order of the log: a reader that sees an event sees all events before it, even while transactions are held open. */
import { EventStore, type StreamName } from "@millrace/event-sourcing"
import { PostgresEventStore } from "@millrace/event-store-postgres"
import { Array as Arr, Effect, Fiber, type Scope, Stream } from "effect"
import fc from "fast-check"
import { assert, describe, expect, it } from "vitest"
import { client, schema } from "./Postgres.ts"
import { appendByHand, event, idsOf, readAll, run, type Store, until } from "./Writing.ts"

const test = (title: string, body: Effect.Effect<void, unknown, Scope.Scope>) => it(title, () => Effect.runPromise(Effect.scoped(body)))

const opened = Effect.gen(function* () {
  const options = yield* schema
  return { ...options, store: yield* PostgresEventStore.make(options), db: yield* client(options.url) }
})

/** How many backends wait for the lock of this log; `db` must not be one of them. */
const waiting = (db: Parameters<typeof run>[0], count: number) =>
  until(
    `${count} wait for the lock`,
    Effect.map(
      run(db, "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
      ({ rows: [row] }) => Number(row?.n) >= count
    )
  )

/** Follows the log into an array, from its beginning. */
const following = (store: Store) =>
  Effect.gen(function* () {
    const seen: Array<EventStore.RecordedEvent> = []
    yield* Effect.forkScoped(Stream.runForEach(store.subscribe(EventStore.start), ({ events }) => Effect.sync(() => seen.push(...events))))
    return seen
  })

describe("a transaction that is held open before its commit", () => {
  test(
    "is not overtaken: other writers wait, and no reader sees events after it",
    Effect.gen(function* () {
      const { url, schema, store, db } = yield* opened
      const seen = yield* following(store)
      yield* store.append("a-0", "noStream", [event()])
      const [held, ...others] = [event(), event(), event(), event()]
      yield* run(db, "BEGIN")
      yield* appendByHand(db, schema, "held-1", held)
      const fibers = yield* Effect.forEach(others, (one, i) => Effect.forkScoped(store.append(`b-${i}`, "noStream", [one])))
      const looker = yield* client(url)
      yield* waiting(looker, 1)
      for (let i = 0; i < 5; i++) {
        expect(idsOf(yield* readAll(store, EventStore.start))).toHaveLength(1)
        expect(yield* store.lastRevision("held-1")).toBe("noStream")
        expect(yield* store.head).toBe("0000000000000001")
        yield* Effect.sleep(20)
      }
      yield* run(db, "COMMIT")
      const positions = yield* Effect.forEach(fibers, Fiber.join)
      expect(positions.every(({ position }) => position > "0000000000000002")).toBe(true)
      yield* until(
        "all are followed",
        Effect.sync(() => seen.length === 5)
      )
      const all = yield* readAll(store, EventStore.start)
      expect(all[1]).toMatchObject({ id: held?.id, position: "0000000000000002" })
      expect(seen).toEqual(all)
    })
  )

  test(
    "leaves no gap when it is rolled back or its client dies",
    Effect.gen(function* () {
      const { url, schema, store, db } = yield* opened
      for (const end of ["ROLLBACK", "SELECT pg_terminate_backend(pg_backend_pid())"]) {
        const other = yield* client(url)
        yield* run(other, "BEGIN")
        yield* appendByHand(other, schema, "undone-1")
        const fiber = yield* Effect.forkScoped(store.append(`a-${end}`, "noStream", [event()]))
        yield* waiting(db, 1)
        yield* Effect.ignoreCause(run(other, end))
        yield* Fiber.join(fiber)
      }
      expect((yield* readAll(store, EventStore.start)).map(({ position }) => Number(position))).toEqual([1, 2])
    })
  )

  test(
    "that lasts too long makes other writers give up, with nothing written",
    Effect.gen(function* () {
      const { schema, store, db } = yield* opened
      yield* run(db, `ALTER FUNCTION ${schema}.append SET lock_timeout = '100ms'`)
      yield* run(db, "BEGIN")
      yield* appendByHand(db, schema, "held-1")
      const refused = yield* Effect.flip(store.append("a-1", "noStream", [event()]))
      assert(refused instanceof EventStore.StoreUnavailable)
      expect(refused.reason).toMatch(/another writer has kept the log locked for too long/)
      yield* run(db, "ROLLBACK")
      expect(yield* store.lastRevision("a-1")).toBe("noStream")
      expect((yield* store.append("a-1", "noStream", [event()])).position).toBe("0000000000000001")
    })
  )

  test(
    "delays no writer while it does not append, even with an old snapshot",
    Effect.gen(function* () {
      const { url, schema, store, db } = yield* opened
      const old = yield* client(url)
      yield* run(old, "BEGIN ISOLATION LEVEL REPEATABLE READ")
      yield* run(old, `SELECT count(*) FROM ${schema}.events`)
      yield* run(db, "CREATE TEMP TABLE mine(a int)")
      yield* run(db, "BEGIN")
      // A transaction id older than those of all later appends: `pg_snapshot_xmin` stays behind it
      yield* run(db, "INSERT INTO mine VALUES (1)")
      const seen = yield* following(store)
      for (let i = 0; i < 20; i++) yield* store.append("a-1", i === 0 ? "noStream" : i - 1, [event()])
      yield* until(
        "all are followed",
        Effect.sync(() => seen.length === 20)
      )
      expect(seen.map(({ position }) => Number(position))).toEqual(seen.map((_, i) => i + 1))
      yield* run(old, "COMMIT")
      yield* run(db, "COMMIT")
    })
  )
})

describe("each read of the log", () => {
  test(
    "is a prefix of each later one, in any order of commits",
    Effect.gen(function* () {
      const { url, schema, store } = yield* opened
      const writers = yield* Effect.replicateEffect(client(url), 4)
      const seen = yield* following(store)
      let stream = 0
      const next = (): StreamName.StreamName => `s-${stream++}`
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.array(fc.record({ writer: fc.nat(4), pause: fc.nat(6), end: fc.constantFrom("COMMIT", "COMMIT", "ROLLBACK") }), {
              minLength: 4,
              maxLength: 16
            }),
            (schedule) =>
              Effect.gen(function* () {
                const before = yield* store.head
                let isOver = false
                const looks: Array<ReadonlyArray<string>> = []
                const looking = yield* Effect.forkChild(
                  Effect.gen(function* () {
                    while (!isOver) looks.push(idsOf(yield* readAll(store, before)))
                  })
                )
                const written = yield* Effect.forEach(
                  [0, 1, 2, 3, 4],
                  (number) =>
                    Effect.forEach(
                      schedule.filter(({ writer }) => writer === number),
                      ({ pause, end }) =>
                        Effect.gen(function* () {
                          const one = event()
                          const db = writers[number]
                          if (db === undefined) {
                            yield* store.append(next(), "noStream", [one])
                            return [one.id]
                          }
                          yield* run(db, "BEGIN")
                          yield* appendByHand(db, schema, next(), one)
                          yield* Effect.sleep(pause)
                          yield* run(db, end)
                          return end === "COMMIT" ? [one.id] : []
                        })
                    ),
                  { concurrency: "unbounded" }
                )
                isOver = true
                yield* Fiber.join(looking)
                const all = idsOf(yield* readAll(store, before))
                expect(new Set(all)).toEqual(new Set(written.flat(2)))
                for (const look of looks) expect(look).toEqual(all.slice(0, look.length))
              }).pipe(Effect.runPromise)
          ),
          { numRuns: 15 }
        )
      )
      const all = yield* readAll(store, EventStore.start)
      expect(all.map(({ position }) => Number(position))).toEqual(all.map((_, i) => i + 1))
      yield* until(
        "all are followed",
        Effect.sync(() => seen.length === all.length)
      )
      expect(seen).toEqual(all)
    })
  )

  // The same pause on a log with positions from a sequence, to show that the tests above can fail
  test(
    "would not be a prefix if positions came from a sequence",
    Effect.gen(function* () {
      const { url, schema, db } = yield* opened
      const other = yield* client(url)
      yield* run(db, `CREATE TABLE ${schema}.naive(position bigserial PRIMARY KEY, name text)`)
      yield* run(db, "BEGIN")
      yield* run(db, `INSERT INTO ${schema}.naive(name) VALUES ('late')`)
      yield* run(other, `INSERT INTO ${schema}.naive(name) VALUES ('early')`)
      const {
        rows: [newest]
      } = yield* run(other, `SELECT * FROM ${schema}.naive`)
      expect(newest).toMatchObject({ name: "early" })
      yield* run(db, "COMMIT")
      expect((yield* run(other, `SELECT * FROM ${schema}.naive WHERE position > ${newest.position}`)).rows).toEqual([])
      expect((yield* run(other, `SELECT * FROM ${schema}.naive`)).rows).toHaveLength(2)
    })
  )
})

describe("appends of one process", () => {
  test(
    "to one stream keep the order in which they were made, though several transactions are under way",
    Effect.gen(function* () {
      const { store } = yield* opened
      const batches = Array.from({ length: 200 }, () => event())
      const streams = [0, 1, 2, 3].map((i): StreamName.StreamName => `a-${i}`)
      const appended = yield* Effect.forEach(
        batches,
        (one, i) => store.append(streams[i % 4] ?? "a-0", i < 4 ? "noStream" : Math.floor(i / 4) - 1, [one]),
        { concurrency: "unbounded" }
      )
      expect(appended.map(({ revision }) => revision)).toEqual(batches.map((_, i) => Math.floor(i / 4)))
    })
  )

  test(
    "share transactions, also over many streams",
    Effect.gen(function* () {
      const { url, schema, store } = yield* opened
      const db = yield* client(url)
      yield* Effect.forEach(Array.from({ length: 1_000 }), (_, i) => store.append(`a-${i}`, "noStream", [event()]), {
        concurrency: "unbounded"
      })
      const {
        rows: [row]
      } = yield* run(db, `SELECT count(DISTINCT xmin::text) AS transactions, count(*) AS events FROM ${schema}.events`)
      expect(Number(row?.events)).toBe(1_000)
      expect(Number(row?.transactions)).toBeLessThanOrEqual(3)
    })
  )
})

describe("a subscription to some types of events", () => {
  test(
    "skips parts of the log without them, and gets all of them beside a follower of everything",
    Effect.gen(function* () {
      const { url, schema, store } = yield* opened
      const peer = yield* PostgresEventStore.make({ url, schema })
      const wanted: Array<string> = []
      // More than a page of them, with gaps of more than a page
      for (let n = 0; n < 12; n++) {
        const batch = Arr.makeBy(500, (i) => (n % 6 === 5 && i % 2 === 0 ? { ...event(), type: "Rare" } : event()))
        yield* store.append("a-1", EventStore.expectedOf(500 * n - 1), batch)
        wanted.push(...batch.flatMap(({ id, type }) => (type === "Rare" ? [id] : [])))
      }
      let reached = EventStore.start
      const rare: Array<EventStore.RecordedEvent> = []
      yield* Effect.forkScoped(
        Stream.runForEach(peer.subscribe(EventStore.start, { types: ["Rare"] }), (batch) =>
          Effect.sync(() => {
            reached = EventStore.endOf(batch) ?? reached
            rare.push(...batch.events.filter(({ type }) => type === "Rare"))
          })
        )
      )
      const all = yield* following(peer)
      const { position } = yield* store.append("b-1", "noStream", [event()])
      yield* until(
        "all is followed",
        Effect.sync(() => reached >= position && all.length === 6_001)
      )
      expect(idsOf(rare)).toEqual(wanted)
      expect(idsOf(all)).toEqual(idsOf(yield* readAll(store, EventStore.start)))
    })
  )
})
