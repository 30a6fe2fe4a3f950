/** The tables: migrations, permissions, and exact storage of texts. */
import { readFileSync } from "node:fs"
import { EventStore, StateStore, TextIndex } from "@millrace/event-sourcing"
import { AppendOnlyRole, PostgresEventStore, PostgresStateStore, PostgresStores, PostgresTextIndex } from "@millrace/event-store-postgres"
import { Array as Arr, Effect, Exit, type Scope, Stream } from "effect"
import fc from "fast-check"
import type pg from "pg"
import { assert, describe, expect, it } from "vitest"
import { client, freshSchema, schema } from "./Postgres.ts"
import { event, idsOf, readAll, run } from "./Writing.ts"

const test = (title: string, body: Effect.Effect<void, unknown, Scope.Scope>) => it(title, () => Effect.runPromise(Effect.scoped(body)))

const reasonOf = <A, R>(effect: Effect.Effect<A, { readonly _tag: string; readonly reason?: string }, R>) =>
  Effect.map(Effect.flip(effect), (error) => `${error._tag}: ${error.reason}`)

const opened = Effect.gen(function* () {
  const options = yield* schema
  return { ...options, options, store: yield* PostgresEventStore.make(options), db: yield* client(options.url) }
})

/** The error code of a statement, or undefined. */
const refused = (db: pg.Client, sql: string) =>
  Effect.promise(() =>
    db.query(sql).then(
      () => undefined,
      (error: unknown) => (typeof error === "object" && error !== null && "code" in error ? error.code : String(error))
    )
  )

const CHANGES = (schema: string) => [
  `UPDATE ${schema}.events SET data = '{}'`,
  `UPDATE ${schema}.events SET position = position + 1 WHERE false`,
  `DELETE FROM ${schema}.events WHERE position = 1`,
  `TRUNCATE ${schema}.events`,
  `TRUNCATE ${schema}.events, ${schema}.streams CASCADE`,
  `UPDATE ${schema}.streams SET name = 'x-' || name`,
  `DELETE FROM ${schema}.streams`,
  `INSERT INTO ${schema}.events SELECT * FROM ${schema}.events ON CONFLICT (position) DO UPDATE SET data = '{}'`,
  `MERGE INTO ${schema}.events e USING ${schema}.events o ON e.position = o.position WHEN MATCHED THEN DELETE`
]

describe("events", () => {
  test(
    "are never changed or removed, not even by the superuser or in replica mode",
    Effect.gen(function* () {
      const { store, schema, db } = yield* opened
      yield* store.append("a-1", "noStream", [event(), event()])
      const before = yield* readAll(store, EventStore.start)
      for (const role of ["origin", "replica", "local"]) {
        yield* run(db, `SET session_replication_role = ${role}`)
        for (const sql of CHANGES(schema)) expect(yield* refused(db, sql), sql).toBe("23001")
      }
      expect(yield* readAll(store, EventStore.start)).toEqual(before)
    })
  )

  test(
    "are found by their revisions when an append is refused, however long the stream is",
    Effect.gen(function* () {
      const { store, schema, db } = yield* opened
      for (let n = 0; n < 4; n++)
        yield* store.append(
          "a-1",
          EventStore.expectedOf(500 * n - 1),
          Arr.makeBy(500, () => event())
        )
      for (const settings of ["", "SET LOCAL plan_cache_mode = force_generic_plan;"])
        for (const [call, rows] of [
          ["append", 1],
          ["append_2", 6],
          ["append_3", 6]
        ] as const) {
          const bounds = call === "append" ? "" : ", 100, 24000"
          const [starts, revisions, conditions] = call === "append_3" ? [", '{0}'", ", '{1995}'", ", '{a-1}', '{1999}'"] : ["", "", ""]
          yield* run(db, `BEGIN; ${settings}`)
          const answer = yield* run(
            db,
            `SELECT * FROM ${schema}.${call}('{a-1}', '{1994}', '{true}', '{1}'${starts}, '{1}'${revisions}, '{${event().id}}', '{T}', '{"{}"}', '{"{}"}'${conditions}${bounds})`
          )
          expect(answer.rows).toHaveLength(rows)
          const read = yield* run(
            db,
            `SELECT seq_tup_read + idx_tup_fetch AS read FROM pg_stat_xact_user_tables WHERE schemaname = '${schema}' AND relname = 'events'`
          )
          expect(Number(read.rows[0]?.read)).toBeLessThan(80)
          yield* run(db, "ROLLBACK")
        }
    })
  )

  test(
    "are unique by revision and by position, also for direct inserts",
    Effect.gen(function* () {
      const { store, schema, db } = yield* opened
      yield* store.append("a-1", "noStream", [event(), event()])
      const copy = (columns: string) =>
        refused(db, `INSERT INTO ${schema}.events SELECT ${columns}, id, type, data, metadata FROM ${schema}.events`)
      expect(yield* copy("position, stream, revision + 2")).toBe("23505")
      expect(yield* copy("position + 2, stream, revision")).toBe("23505")
    })
  )

  test(
    "are stored byte for byte",
    Effect.gen(function* () {
      const { store, schema, db } = yield* opened
      let n = 0
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc
              .tuple(fc.string({ unit: "binary", maxLength: 400 }), fc.string({ unit: "grapheme", maxLength: 4_000 }))
              .filter((all) => all.every((text) => text.isWellFormed() && !text.includes("\0"))),
            async ([data, metadata]) => {
              const one = { ...event(), data, metadata, type: data.slice(0, 20).toWellFormed() }
              await Effect.runPromise(store.append(`a-${n++}`, "noStream", [one]))
              const { rows } = await db.query(
                `SELECT convert_to(data, 'UTF8') AS data, convert_to(metadata, 'UTF8') AS metadata FROM ${schema}.events WHERE id = $1`,
                [one.id]
              )
              expect(rows).toEqual([{ data: Buffer.from(data), metadata: Buffer.from(metadata) }])
            }
          ),
          { numRuns: 100 }
        )
      )
      const { rows } = yield* run(
        db,
        `SELECT data_type FROM information_schema.columns WHERE table_schema = '${schema}' AND table_name = 'events'`
      )
      expect(rows.map(({ data_type }) => data_type)).not.toContain("jsonb")
    })
  )

  test(
    "that are large are read in smaller pages without gaps",
    Effect.gen(function* () {
      const { store, options } = yield* opened
      const large = Array.from({ length: 12 }, () => ({ ...event(), data: JSON.stringify("é".repeat(450_000)) }))
      for (const [i, one] of large.entries()) yield* store.append("a-1", i === 0 ? "noStream" : i - 1, [one])
      const ids = idsOf(large)
      const read = (options?: EventStore.ReadStreamOptions) => Effect.map(Stream.runCollect(store.readStream("a-1", options)), idsOf)
      expect(idsOf(yield* readAll(store, EventStore.start))).toEqual(ids)
      expect(yield* read()).toEqual(ids)
      expect(yield* read({ direction: "backwards" })).toEqual(ids.toReversed())
      expect(yield* read({ from: 1, limit: 9 })).toEqual(ids.slice(1, 10))
      expect(yield* read({ from: 10, direction: "backwards", limit: 8 })).toEqual(ids.toReversed().slice(1, 9))
      // The writing store may still have them in memory, so another store reads them
      const other = yield* PostgresEventStore.make(options)
      const pages = yield* Stream.runCollect(Stream.takeUntil(other.subscribe(EventStore.start), ({ live }) => live))
      expect(pages.map(({ events }) => events.length)).toEqual([5, 5, 2, 0])
    })
  )

  test(
    "with invalid text or an invalid id are refused alone",
    Effect.gen(function* () {
      const { store } = yield* opened
      const one = event()
      const unfit = [
        { ...event(), data: '"\0"' },
        { ...event(), metadata: '"\ud800"' },
        { ...event(), type: "\0" },
        { ...event(), id: "1" },
        { ...event(), id: "0000000A-0000-7000-8000-000000000000" }
      ]
      const exits = yield* Effect.forEach([one, ...unfit], (given, i) => Effect.exit(store.append(`a-${i}`, "noStream", [given])), {
        concurrency: "unbounded"
      })
      expect(exits.map(Exit.isSuccess)).toEqual([true, false, false, false, false, false])
      for (const exit of exits.slice(1)) assert(Exit.hasDies(exit))
      expect(idsOf(yield* readAll(store, EventStore.start))).toEqual([one.id])
    })
  )

  test(
    "that the server refuses do not fail the others of their transaction",
    Effect.gen(function* () {
      const { store, schema, db } = yield* opened
      yield* run(db, `ALTER TABLE ${schema}.events ADD CHECK (type <> 'Refused')`)
      const given = [event(), { ...event(), type: "Refused" }, event()]
      const exits = yield* Effect.forEach(given, (one, i) => Effect.exit(store.append(`a-${i}`, "noStream", [one])), {
        concurrency: "unbounded"
      })
      expect(exits.map(Exit.isSuccess)).toEqual([true, false, true])
      expect(String(exits[1])).toMatch(/StoreUnavailable/)
      expect(idsOf(yield* readAll(store, EventStore.start))).toEqual([given[0]?.id, given[2]?.id])
    })
  )
})

describe("the role that the script makes", () => {
  test(
    "may do everything that the stores do, but cannot change or remove an event",
    Effect.gen(function* () {
      const { url, schema, options, db } = yield* opened
      yield* PostgresStateStore.make(options)
      yield* (yield* PostgresTextIndex.make(options)).open("books", 1)
      const role = freshSchema()
      yield* Effect.acquireRelease(run(db, AppendOnlyRole.script({ schema, role })), () =>
        run(db, `DROP OWNED BY ${role}; DROP ROLE ${role}`)
      )
      yield* run(db, `ALTER ROLE ${role} PASSWORD 'secret'`)
      const address = new URL(url)
      address.username = role
      address.password = "secret"
      const made = PostgresStores.layer({ url: address.href, schema })
      const stores = yield* Effect.provide(Effect.all([EventStore.EventStore, StateStore.StateStore]), made)
      expect(stores).toHaveLength(2)
      yield* Effect.gen(function* () {
        const [store, state] = [yield* EventStore.EventStore, yield* StateStore.StateStore]
        yield* store.append("a-1", "noStream", [event()])
        const second = event()
        yield* store.append("a-1", 0, [second])
        yield* store.append("a-1", 0, [second])
        yield* store.saveSnapshot("s-1", { revision: 1, data: "{}" })
        yield* store.saveSnapshot("s-1", { revision: 2, data: "{}" })
        expect(yield* store.lastRevision("a-1")).toBe(1)
        expect(yield* readAll(store, EventStore.start)).toHaveLength(2)
        yield* state.write([{ _tag: "put", space: "s", key: "k", value: new Uint8Array([1]) }])
        yield* state.write([{ _tag: "remove", space: "s", key: "k", shred: true }])
        const index = yield* TextIndex.TextIndex.use(({ open }) => open("books", 2))
        const put = [{ id: "1", text: "red", keys: [], weight: 0, value: "" }]
        yield* index.write({ after: EventStore.start, position: EventStore.position("1"), put, remove: [] })
        expect(yield* index.search({ text: "red" })).toEqual(put)
      }).pipe(Effect.provide(made))
      const limited = yield* client(address.href)
      for (const sql of CHANGES(schema)) expect(yield* refused(limited, sql), sql).toMatch(/42501|23001/)
      for (const sql of [
        `UPDATE ${schema}.events SET data = '{}'`,
        `DELETE FROM ${schema}.events`,
        `TRUNCATE ${schema}.events`,
        `DROP TABLE ${schema}.events`,
        `ALTER TABLE ${schema}.events DISABLE TRIGGER ALL`,
        `DROP TRIGGER never_changed ON ${schema}.events`,
        `CREATE TABLE ${schema}.mine(a int)`,
        `UPDATE ${schema}.migrations SET version = 0`,
        `SET session_replication_role = replica`
      ])
        expect(yield* refused(limited, sql), sql).toBe("42501")
    })
  )

  it("is the role in the guide", () => {
    const guide = readFileSync(new URL("../../../docs/postgresql.md", import.meta.url), "utf8")
    expect(guide).toContain(`\`\`\`sql\n${AppendOnlyRole.script({ role: "millrace_host" })}\`\`\``)
  })

  test(
    "cannot create the tables, and reports it",
    Effect.gen(function* () {
      const { url, schema, db } = yield* opened
      const role = freshSchema()
      yield* Effect.acquireRelease(run(db, `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`), () => run(db, `DROP ROLE ${role}`))
      const address = new URL(url)
      address.username = role
      address.password = "secret"
      expect(yield* reasonOf(Effect.scoped(PostgresEventStore.make({ url: address.href, schema: freshSchema() })))).toMatch(
        /^StoreUnavailable: .* does not allow this user to do that/
      )
      expect(yield* reasonOf(Effect.scoped(PostgresEventStore.make({ url: address.href, schema })))).toMatch(
        /does not allow this user to do that/
      )
    })
  )
})

describe("migrations", () => {
  test(
    "run once, although many processes start at once, and leave the host's tables alone",
    Effect.gen(function* () {
      const options = yield* schema
      const db = yield* client(options.url)
      const tables = run(db, "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'public'")
      const before = yield* tables
      const [stores] = yield* Effect.all(
        [
          Effect.replicateEffect(PostgresEventStore.make(options), 4, { concurrency: "unbounded" }),
          Effect.replicateEffect(PostgresStateStore.make(options), 4, { concurrency: "unbounded" })
        ],
        { concurrency: "unbounded" }
      )
      const { rows } = yield* run(db, `SELECT name, version FROM ${options.schema}.migrations ORDER BY name, version`)
      expect(rows).toEqual([
        { name: "events", version: 1 },
        { name: "events", version: 2 },
        { name: "events", version: 3 },
        { name: "events", version: 4 },
        { name: "state", version: 1 },
        { name: "state", version: 2 }
      ])
      for (const [i, store] of stores.entries()) yield* store.append(`a-${i}`, "noStream", [event()])
      expect((yield* tables).rows).toEqual(before.rows)
    })
  )

  test(
    "of a newer release are refused",
    Effect.gen(function* () {
      const { options, schema, db } = yield* opened
      yield* run(db, `INSERT INTO ${schema}.migrations(name, version) VALUES ('events', 7)`)
      expect(yield* reasonOf(Effect.scoped(PostgresEventStore.make(options)))).toMatch(
        /was migrated by a newer release: its events are version 7, this release knows up to 4$/
      )
    })
  )

  test(
    "do not run for a read-only store, and refuse a schema name that needs quotes",
    Effect.gen(function* () {
      const { options, store } = yield* opened
      const none = freshSchema()
      expect(yield* reasonOf(Effect.scoped(PostgresEventStore.make({ ...options, schema: none, readOnly: true })))).toMatch(
        new RegExp(`${none} does not exist or is older: open it once without readOnly`)
      )
      for (const name of ["", "public; DROP TABLE x", "Millrace", "pg_own", "x".repeat(60), 'a"b'])
        expect(yield* reasonOf(Effect.scoped(PostgresEventStore.make({ ...options, schema: name })))).toMatch(/Not the name of a schema/)
      const reader = yield* PostgresEventStore.make({ ...options, readOnly: true })
      yield* store.append("a-1", "noStream", [event()])
      expect(yield* readAll(reader, EventStore.start)).toEqual(yield* readAll(store, EventStore.start))
      expect(yield* reader.lastRevision("a-1")).toBe(0)
      expect(yield* reasonOf(reader.append("a-1", 0, [event()]))).toMatch(/was opened read-only/)
      expect(yield* reasonOf(reader.saveSnapshot("a-1", { revision: 0, data: "{}" }))).toMatch(/read-only/)
    })
  )
})
