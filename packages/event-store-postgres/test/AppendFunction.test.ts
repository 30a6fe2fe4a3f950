/** The function that this release appends by: it decides as the one of the release before, and checks conditions on other streams. */
import type { EventStore } from "@millrace/event-sourcing"
import { PostgresEventStore } from "@millrace/event-store-postgres"
import { Effect } from "effect"
import fc from "fast-check"
import type pg from "pg"
import { expect, it } from "vitest"
import { client, schema } from "./Postgres.ts"
import { event, run } from "./Writing.ts"

interface Append {
  readonly stream: string
  readonly before: number
  readonly events: ReadonlyArray<EventStore.EventData>
}

/** What a call of either function answers, but for the ends of the streams of conditions. */
const COLUMNS = "before, refused, actual, there, conflict, revision, place, id, type, data, metadata"

const byAppend = (appends: ReadonlyArray<Append>) => [
  appends.map(({ stream }) => stream),
  appends.map(({ before }) => before),
  appends.map(({ stream }, i) => appends.findIndex((one) => one.stream === stream) === i),
  appends.map(({ events }) => events.length)
]

const byEvent = (appends: ReadonlyArray<Append>) => {
  const events = appends.flatMap((one) => one.events)
  return [events.map(({ id }) => id), ...(["type", "data", "metadata"] as const).map((part) => events.map((one) => one[part]))]
}

interface Condition {
  readonly stream: string
  /** The revision at which it must end. */
  readonly required: number
}

const byCondition = (conditions: ReadonlyArray<Condition>) => [
  conditions.map(({ stream }) => stream),
  conditions.map(({ required }) => required)
]

const owners = (appends: ReadonlyArray<Append>) => appends.flatMap(({ events }, i) => events.map(() => i + 1))

/** The most newer events of an answer, and the most bytes of them. */
type Bounds = readonly [most: number, bytes: number]

const append2 = (db: pg.Client, schema: string, appends: ReadonlyArray<Append>, bounds: Bounds) =>
  db.query(
    `SELECT ${COLUMNS} FROM ${schema}.append_2($1::text[], $2::bigint[], $3::boolean[], $4::integer[],
      $5::integer[], $6::uuid[], $7::text[], $8::text[], $9::text[], $10, $11)`,
    [...byAppend(appends), owners(appends), ...byEvent(appends), ...bounds]
  )

const append3 = (db: pg.Client, schema: string, appends: ReadonlyArray<Append>, conditions: ReadonlyArray<Condition>, bounds: Bounds) => {
  const starts = appends.map((_, i) => appends.slice(0, i).reduce((sum, { events }) => sum + events.length, 0))
  const revisions = appends.flatMap(({ before, events }) => events.map((_, n) => before + 1 + n))
  return db.query(
    `SELECT ends, ${COLUMNS} FROM ${schema}.append_3($1::text[], $2::bigint[], $3::boolean[], $4::integer[], $5::integer[],
      $6::integer[], $7::bigint[], $8::uuid[], $9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14, $15)`,
    [...byAppend(appends), starts, owners(appends), revisions, ...byEvent(appends), ...byCondition(conditions), ...bounds]
  )
}

const logOf = (db: pg.Client, schema: string) =>
  db.query(`SELECT e.*, s.name FROM ${schema}.events e JOIN ${schema}.streams s ON s.id = e.stream ORDER BY e.position`)

const STREAMS = ["a-1", "a-2", "a-3", "a-4"]
const anAppend = fc.record({
  stream: fc.constantFrom(...STREAMS),
  /** From where the stream ends. */
  off: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -3, max: 2 })),
  count: fc.integer({ min: 1, max: 3 }),
  /** Sends an append of before again, if there is one. */
  again: fc.option(fc.nat(), { freq: 5 })
})
const aCall = fc.record({
  appends: fc.array(anAppend, { minLength: 1, maxLength: 6 }),
  conditions: fc.array(
    fc.record({
      stream: fc.constantFrom(...STREAMS, "a-none"),
      /** From where the stream ends. */
      off: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.integer({ min: -1, max: 1 }))
    }),
    { maxLength: 3 }
  ),
  bounds: fc.tuple(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 100 }))
})

it("appends what the function of the release before appends, and answers the same", () =>
  Effect.gen(function* () {
    const [old, now] = [yield* schema, yield* schema]
    for (const options of [old, now]) yield* Effect.scoped(PostgresEventStore.make(options))
    const db = yield* client(old.url)
    let broken = 0
    let runs = 0
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(aCall, { minLength: 1, maxLength: 8 }), async (calls) => {
          const ends = new Map<string, number>()
          const sent: Array<Append> = []
          // Streams of their own for each run, so that it begins with new ones
          const run = runs++
          const named = (stream: string) => `${stream}-${run}`
          for (const { appends, bounds, conditions } of calls) {
            const call = appends.map(({ again, count, off, stream }): Append => {
              const earlier = again === null ? undefined : sent[again % Math.max(1, sent.length)]
              const before = Math.max(-1, (ends.get(named(stream)) ?? -1) + off)
              return earlier ?? { stream: named(stream), before, events: Array.from({ length: count }, () => event()) }
            })
            sent.push(...call)
            const tailsOf = async (names: ReadonlyArray<string>): Promise<ReadonlyArray<string>> =>
              (await db.query(`SELECT revisions FROM ${now.schema}.tails($1::text[], false)`, [names])).rows[0]?.revisions
            const required = conditions.map(({ off, stream }) => ({
              stream: named(stream),
              required: (ends.get(named(stream)) ?? -1) + off
            }))
            const tails = await tailsOf(required.map(({ stream }) => stream))
            if (required.every((condition, i) => Number(tails[i]) === condition.required)) {
              const [{ rows: expected }, { rows: answered }] = [
                await append2(db, old.schema, call, bounds),
                await append3(db, now.schema, call, required, bounds)
              ]
              expect(answered.map(({ ends: _, ...row }) => row)).toEqual(expected)
              expect(answered[0]?.ends).toBeNull()
            } else {
              // Nothing is appended: the logs are compared at the end
              const { rows } = await append3(db, now.schema, call, required, bounds)
              expect(rows).toEqual([expect.objectContaining({ ends: tails, before: null, refused: null, conflict: null })])
              broken++
            }
            const names = STREAMS.map(named)
            for (const [i, end] of (await tailsOf(names)).entries()) ends.set(names[i] ?? "", Number(end))
          }
          expect((await logOf(db, now.schema)).rows).toEqual((await logOf(db, old.schema)).rows)
        }),
        { numRuns: 30 }
      )
    )
    const { rows } = yield* run(
      db,
      `SELECT (SELECT count(*) FROM ${now.schema}.streams) AS streams, count(*) AS n FROM ${now.schema}.events`
    )
    expect(Number(rows[0]?.n)).toBeGreaterThan(Number(rows[0]?.streams))
    expect(broken).toBeGreaterThan(10)
  }).pipe(Effect.scoped, Effect.runPromise))
