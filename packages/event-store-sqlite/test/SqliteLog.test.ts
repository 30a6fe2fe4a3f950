/** The cached log of a connection is never behind this process's own writes, and never ahead of the file. */
import { join } from "node:path"
import type { EventStore, StreamName } from "@millrace/event-sourcing"
import { type Place, placeOf } from "@millrace/event-sourcing"
import Database from "better-sqlite3"
import { Effect } from "effect"
import * as fc from "fast-check"
import { afterEach, describe, expect, it, vi } from "vitest"
import { SqliteLog } from "../src/SqliteLog.ts"
import { temporaryFolder } from "./TemporaryFolder.ts"

const seed = Number(process.env["MILLRACE_SEED"] ?? 1)

type Streams = "a-1" | "a-2" | "a-3"
const STREAMS: ReadonlyArray<Streams> = ["a-1", "a-2", "a-3"]

let made = 0
const someEvents = (count: number): Array<EventStore.EventData> =>
  Array.from({ length: count }, () => ({ id: `id ${++made}`, type: "Happened", data: `{"n":${made}}`, metadata: "{}" }))

const expected = (revision: EventStore.Revision): EventStore.ExpectedRevision => (revision === -1 ? "noStream" : revision)

/** Runs with the name of a file that does not exist yet. */
const withFile = (body: (filename: string) => void | Promise<void>) =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "log.db")
    yield* Effect.promise(async () => body(filename))
  }).pipe(Effect.scoped, Effect.runPromise)

/** Two connections on one file, as of two stores in one process. */
const withTwo = (body: (one: SqliteLog, other: SqliteLog, filename: string) => void | Promise<void>, unindexed = 1_000) =>
  withFile(async (filename) => {
    const one = new SqliteLog({ filename, unindexed })
    const other = new SqliteLog({ filename, unindexed })
    try {
      await body(one, other, filename)
    } finally {
      one.close()
      other.close()
    }
  })

/** Appends this many events to the end of a stream in one transaction. */
const write = (log: SqliteLog, stream: StreamName.StreamName, count = 1) =>
  log.transact(() => void log.append(stream, log.lastRevision(stream), someEvents(count)))

describe("the events handed to followers after a write", () => {
  it("are all events of the write, in order, as the file has them", () =>
    withTwo((one) => {
      write(one, "a-1")
      one.transact(() => {
        one.append("a-2", "noStream", someEvents(3))
        one.append("a-1", 0, someEvents(2))
        one.append("a-2", 2, someEvents(1))
      })
      const handed = one.justWritten(1)?.events
      expect(handed?.map(({ stream, revision, position }) => [stream, revision, placeOf(position)])).toEqual([
        ["a-2", 0, 2],
        ["a-2", 1, 3],
        ["a-2", 2, 4],
        ["a-1", 1, 5],
        ["a-1", 2, 6],
        ["a-2", 3, 7]
      ])
      expect(handed).toEqual(one.readAll(1))
      for (const after of [0, 2, 6, 7]) expect(one.justWritten(after)).toBeUndefined()
    }))

  it("are none if events of another connection stand between", () =>
    withTwo((one, other) => {
      write(one, "a-1")
      write(other, "a-2", 2)
      write(one, "a-1")
      expect(one.justWritten(1)).toBeUndefined()
      expect(one.justWritten(3)?.events).toEqual(one.readAll(3))
      expect(one.readAll(1)).toHaveLength(3)
    }))

  it("are none after a transaction that was rolled back or appended nothing", () =>
    withTwo((one) => {
      write(one, "a-1")
      const undone = () =>
        one.transact(() => {
          one.append("a-1", 0, someEvents(2))
          throw new Error("undone")
        })
      expect(undone).toThrow("undone")
      for (const after of [0, 1, 2, 3]) expect(one.justWritten(after)).toBeUndefined()
      one.transact(() => one.saveSnapshot("a-1", { revision: 0, data: "0" }))
      one.transact(() => expect(one.append("a-1", "noStream", someEvents(1))).toEqual({ actual: 0 }))
      for (const after of [0, 1, 2, 3]) expect(one.justWritten(after)).toBeUndefined()
      write(one, "a-1")
      expect(one.justWritten(1)?.events).toEqual(one.readAll(1))
      expect(one.last()).toBe(2)
    }))
})

describe("events of other connections", () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it("are seen at once if this process wrote them, also after other looks in the same turn of the event loop", () =>
    withTwo((one, other) => {
      vi.spyOn(performance, "now").mockReturnValue(1_000)
      for (let revision = 0; revision < 10; revision++) {
        const [writer, reader] = revision % 2 === 0 ? [one, other] : [other, one]
        for (const log of [one, other]) expect(log.lastRevision("a-1")).toBe(expected(revision - 1))
        write(writer, "a-1")
        expect(reader.lastRevision("a-1")).toBe(revision)
        expect(reader.readStream("a-1", "backwards", undefined, 1).map((event) => event.revision)).toEqual([revision])
      }
    }))

  /** Writes as another process does: this process is not notified. */
  const elsewhere = (filename: string, revision: EventStore.Revision) => {
    const db = new Database(filename)
    const add = db.prepare(
      `INSERT INTO events(position, stream, revision, id, type, data, metadata)
      SELECT (SELECT max(position) + 1 FROM events), id, ?, ?, 'Happened', '{}', '{}' FROM streams WHERE name = 'a-1'`
    )
    expect(add.run(revision, `elsewhere ${revision}`).changes).toBe(1)
    db.close()
  }

  it("are seen in the next turn of the event loop, even if it begins at once", () =>
    withTwo(async (one, _, filename) => {
      vi.spyOn(performance, "now").mockReturnValue(1_000)
      write(one, "a-1")
      for (let revision = 1; revision < 4; revision++) {
        expect(one.lastRevision("a-1")).toBe(revision - 1)
        elsewhere(filename, revision)
        await new Promise((resolve) => setImmediate(resolve))
        expect(one.lastRevision("a-1")).toBe(revision)
      }
    }))

  it("are seen in the same turn if it takes longer than a millisecond", () =>
    withTwo((one, _, filename) => {
      const now = vi.spyOn(performance, "now").mockReturnValue(1_000)
      write(one, "a-1")
      for (let revision = 1; revision < 4; revision++) {
        now.mockReturnValue(1_000 + revision)
        expect(one.lastRevision("a-1")).toBe(revision - 1)
        elsewhere(filename, revision)
        now.mockReturnValue(1_001 + revision)
        expect(one.readStream("a-1", "forwards", revision, 1).map((event) => event.id)).toEqual([`elsewhere ${revision}`])
      }
    }))

  it("may be added to the index meanwhile, without a change to what is read", () =>
    withTwo((one, _, filename) => {
      vi.spyOn(performance, "now").mockReturnValue(1_000)
      write(one, "a-1", 3)
      write(one, "a-1", 2)
      expect(one.lastRevision("a-1")).toBe(4)
      const db = new Database(filename)
      const indexed = db.prepare("SELECT position FROM stream_index_end").pluck().get()
      expect(indexed).toBe(3)
      db.exec(
        `INSERT INTO stream_index SELECT stream, revision, position FROM events WHERE position > 3; UPDATE stream_index_end SET position = 5`
      )
      db.close()
      expect(one.readStream("a-1", "forwards", undefined, Infinity).map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4])
    }, 3))

  it("are looked for once in a turn", () =>
    withTwo((one, _, filename) => {
      vi.spyOn(performance, "now").mockReturnValue(1_000)
      write(one, "a-1")
      expect(one.lastRevision("a-1")).toBe(0)
      elsewhere(filename, 1)
      expect(one.lastRevision("a-1")).toBe(0)
      // A write, or a read of the end of the log, always reads the file
      expect(one.last()).toBe(2)
      expect(one.lastRevision("a-1")).toBe(1)
    }))
})

describe("two connections within one turn of the event loop", () => {
  type Command =
    | {
        readonly _tag: "write"
        readonly by: 0 | 1
        readonly appends: ReadonlyArray<readonly [Streams, number]>
        readonly isUndone: boolean
      }
    | { readonly _tag: "overtaken"; readonly by: 0 | 1; readonly stream: Streams }
    | { readonly _tag: "snapshot" | "look"; readonly by: 0 | 1 }

  const by = fc.constantFrom(0 as const, 1 as const)
  const stream = fc.constantFrom(...STREAMS)
  const command: fc.Arbitrary<Command> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        _tag: fc.constant("write" as const),
        by,
        appends: fc.array(fc.tuple(stream, fc.integer({ min: 1, max: 3 })), { minLength: 1, maxLength: 3 }),
        isUndone: fc.boolean()
      })
    },
    { weight: 1, arbitrary: fc.record({ _tag: fc.constant("overtaken" as const), by, stream }) },
    { weight: 4, arbitrary: fc.record({ _tag: fc.constantFrom("snapshot" as const, "look" as const, "look" as const), by }) }
  )

  interface Written {
    readonly stream: Streams
    readonly id: string
  }

  const endOf = (model: ReadonlyArray<Written>, stream: Streams) => model.filter((event) => event.stream === stream).length - 1

  const written = (events: ReadonlyArray<EventStore.RecordedEvent>) => events.map(({ stream, id }) => ({ stream, id }))

  const expectTruth = (log: SqliteLog, model: ReadonlyArray<Written>) => {
    for (const stream of STREAMS) {
      const ids = model.filter((event) => event.stream === stream).map(({ id }) => id)
      expect(log.lastRevision(stream)).toBe(expected(ids.length - 1))
      expect(log.readStream(stream, "forwards", undefined, Infinity).map(({ id }) => id)).toEqual(ids)
      expect(log.readStream(stream, "backwards", undefined, 2).map(({ id }) => id)).toEqual(ids.toReversed().slice(0, 2))
    }
    for (let after: Place = 0; after <= model.length; after++) {
      const there = log.readAll(after)
      expect(written(there)).toEqual(model.slice(after))
      const handed = log.justWritten(after)?.events
      if (handed === undefined) continue
      expect(handed.length).toBeGreaterThan(0)
      expect(handed).toEqual(there.slice(0, handed.length))
    }
  }

  it("agree after any sequence of writes, conflicts and failures", () =>
    fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 2, maxLength: 14 }), fc.integer({ min: 1, max: 12 }), (commands, unindexed) =>
        withTwo((...logs) => {
          const model: Array<Written> = []
          for (const command of commands) {
            const log = logs[command.by]
            switch (command._tag) {
              case "write": {
                const before = model.length
                const body = () => {
                  const ends = new Map(STREAMS.map((stream) => [stream, endOf(model, stream)]))
                  for (const [stream, count] of command.appends) {
                    const end = ends.get(stream) ?? -1
                    const events = someEvents(count)
                    expect(log.append(stream, expected(end), events)).toMatchObject({ revision: end + count })
                    ends.set(stream, end + count)
                    if (!command.isUndone) model.push(...events.map(({ id }) => ({ stream, id })))
                  }
                  if (command.isUndone) throw new Error("undone")
                }
                if (command.isUndone) {
                  expect(() => log.transact(body)).toThrow("undone")
                  expect(log.place).toBeLessThanOrEqual(model.length)
                } else {
                  log.transact(body)
                  expect(written(log.justWritten(before)?.events ?? [])).toEqual(model.slice(before))
                }
                break
              }
              case "overtaken": {
                const end = endOf(model, command.stream)
                log.transact(() => expect(log.append(command.stream, end + 1, someEvents(1))).toEqual({ actual: expected(end) }))
                break
              }
              case "snapshot":
                log.transact(() => log.saveSnapshot("a-1", { revision: 0, data: "{}" }))
                break
              case "look":
                expectTruth(log, model)
            }
          }
          for (const log of [logs[0], logs[1]]) {
            expectTruth(log, model)
            expect(log.last()).toBe(model.length)
          }
        }, unindexed)
      ),
      { seed, numRuns: 80 }
    ))
})
