/**
 * A rolling upgrade: the tables of an earlier release are migrated while its hosts still run. They send the statements that they were
 * released with, beside hosts of this release.
 */
import { EventStore, type StateStore } from "@millrace/event-sourcing"
import { PostgresEventStore, PostgresStateStore } from "@millrace/event-store-postgres"
import { Effect, Exit } from "effect"
import fc from "fast-check"
import type pg from "pg"
import { expect, it } from "vitest"
import * as Connections from "../src/Connections.ts"
import { EVENTS } from "../src/EventTables.ts"
import { migrate } from "../src/Migrations.ts"
import { STATE } from "../src/StateTables.ts"
import { client, schema } from "./Postgres.ts"
import { event, idsOf, readAll } from "./Writing.ts"

/** The tables as the release with this many migrations left them. */
const tablesOf = (options: { readonly url: string; readonly schema: string }, version: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const connections = yield* Connections.make(options)
      for (const tables of [EVENTS, STATE])
        yield* migrate(connections, options.schema, { ...tables, migrations: tables.migrations.slice(0, version) }, true)
    })
  )

/** How hosts of earlier releases append, by the version of the tables that they made. */
const APPEND = [
  "append($1::text[], $2::bigint[], $3::boolean[], $4::integer[], $5::integer[], $6::uuid[], $7::text[], $8::text[], $9::text[])",
  "append($1::text[], $2::bigint[], $3::boolean[], $4::integer[], $5::integer[], $6::uuid[], $7::text[], $8::text[], $9::text[])",
  "append_2($1::text[], $2::bigint[], $3::boolean[], $4::integer[], $5::integer[], $6::uuid[], $7::text[], $8::text[], $9::text[], 100, 24000)"
]

/** A host of an earlier release, by its statements. They are what it sends, so they never change. */
const earlierRelease = (db: pg.Client, schema: string, version: number) => {
  const rows = (text: string, ...values: Array<unknown>) =>
    Effect.promise(async () => (await db.query<Record<string, string>>(text, values)).rows)
  return {
    /** Appends one event. Returns whether it was written. */
    append: (stream: string, before: number, one: EventStore.EventData) =>
      Effect.map(
        Effect.promise(() =>
          db.query<{ readonly refused: ReadonlyArray<number> }>(`SELECT * FROM ${schema}.${APPEND[version - 1]}`, [
            [stream],
            [before],
            [true],
            [1],
            [1],
            [one.id],
            [one.type],
            [one.data],
            [one.metadata]
          ])
        ),
        ({ rows }) => rows[0]?.refused.length === 0
      ),
    tail: (stream: string) =>
      Effect.map(
        Effect.promise(() =>
          db.query<{ readonly revisions: ReadonlyArray<string> }>(`SELECT * FROM ${schema}.tails($1::text[], $2)`, [[stream], "false"])
        ),
        ({ rows }) => Number(rows[0]?.revisions[0])
      ),
    idsOf: (stream: string) =>
      Effect.map(
        rows(
          `SELECT * FROM (
    SELECT p.*, sum(octet_length(p.data) + octet_length(p.metadata)) OVER (ORDER BY revision ROWS UNBOUNDED PRECEDING) AS total FROM (
      SELECT s.name AS stream, e.revision, e.position AS place, e.id, e.type, e.data, e.metadata FROM ${schema}.streams s JOIN ${schema}.events e ON e.stream = s.id WHERE s.name = $1 AND e.revision >= $2 ORDER BY e.revision LIMIT $3) p) q
  WHERE total - octet_length(data) - octet_length(metadata) < 4000000 ORDER BY revision`,
          stream,
          0,
          512
        ),
        (found) => found.map((row) => row["id"])
      ),
    put: (key: string, value: number) =>
      rows(
        `SELECT * FROM ${schema}.write_state($1::bigint, $2::integer, $3::integer[], $4::integer[], $5::integer[], $6::text[],
    $7::text[], $8::boolean[], $9::bigint[], $10::bigint[], $11::boolean[], $12::bytea[])`,
        ...[0, 0, [1], [1], [1], ["s"], [key], [true], [null], [null], [true], [Buffer.of(value)]]
      ),
    get: (key: string) =>
      Effect.map(
        Effect.promise(() =>
          db.query<{ readonly value: Buffer }>(
            `SELECT a.i, e.key, e.value, e.version, e.expires_at FROM unnest($1::text[], $2::text[]) WITH ORDINALITY a(space, key, i)
    JOIN ${schema}.entries e ON e.space = a.space AND e.key = a.key WHERE e.expires_at IS NULL OR e.expires_at > $3`,
            [["s"], [key], 0]
          )
        ),
        ({ rows }) => rows[0]?.value[0]
      )
  }
}

const upgraded = Effect.fnUntraced(function* (version: number) {
  const options = yield* schema
  yield* tablesOf(options, version)
  const db = yield* client(options.url)
  const old = earlierRelease(db, options.schema, version)
  const kept = event()
  yield* old.append("kept-1", -1, kept)
  yield* old.put("kept", 7)
  const bytes = Effect.promise(
    async () =>
      (await db.query(`SELECT e.*, s.name FROM ${options.schema}.events e JOIN ${options.schema}.streams s ON s.id = e.stream`)).rows
  )
  const before = yield* bytes
  const [events, state] = [yield* PostgresEventStore.make(options), yield* PostgresStateStore.make(options)]
  expect(yield* bytes).toEqual(before)
  return { old, events, state, kept }
})

it.each([1, 2, 3])("a migration leaves tables of version %i as they are for their hosts, which run on beside new ones", (version) =>
  Effect.gen(function* () {
    const { old, events, kept, state } = yield* upgraded(version)
    expect(idsOf(yield* readAll(events, EventStore.start))).toEqual([kept.id])
    expect((yield* state.get("s", "kept"))?.value).toEqual(Uint8Array.of(7))
    let streams = 0
    // Each writer knows how many events the stream should have; a stale one must be refused, whichever release wrote last
    const step = fc.record({ isNew: fc.boolean(), isStale: fc.boolean() })
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) =>
          Effect.gen(function* () {
            const stream = `both-${streams++}` as const
            const written: Array<string> = []
            for (const { isNew, isStale } of steps) {
              const one = event()
              const last = written.length - 1
              const before = isStale && last >= 0 ? last - 1 : last
              const done = isNew
                ? Exit.isSuccess(yield* Effect.exit(events.append(stream, EventStore.expectedOf(before), [one])))
                : yield* old.append(stream, before, one)
              expect(done).toBe(before === last)
              if (done) written.push(one.id)
              expect(yield* old.tail(stream)).toBe(written.length - 1)
              expect(yield* events.lastRevision(stream)).toBe(EventStore.expectedOf(written.length - 1))
            }
            expect(yield* old.idsOf(stream)).toEqual(written)
            const inLog = (yield* readAll(events, EventStore.start)).filter((one) => one.stream === stream)
            expect(idsOf(inLog)).toEqual(written)
          }).pipe(Effect.runPromise)
        ),
        { numRuns: 25 }
      )
    )
  }).pipe(Effect.scoped, Effect.runPromise)
)

it("both releases see each other's state", () =>
  Effect.gen(function* () {
    const { old, state } = yield* upgraded(1)
    for (let n = 0; n < 8; n++) {
      const changes: StateStore.Change = { _tag: "put", space: "s", key: "k", value: Uint8Array.of(n) }
      if (n % 2 === 0) yield* state.write([changes])
      else yield* old.put("k", n)
      expect(yield* old.get("k")).toBe(n)
      expect((yield* state.get("s", "k"))?.value).toEqual(Uint8Array.of(n))
    }
  }).pipe(Effect.scoped, Effect.runPromise))
