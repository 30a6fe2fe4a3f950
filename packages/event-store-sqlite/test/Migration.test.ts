/** Logs of the release before: all that they hold is kept, whatever interrupts the migration. */
import { existsSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { positionOf, type StreamName } from "@millrace/event-sourcing"
import { SqliteCheck, SqliteEventStore } from "@millrace/event-store-sqlite"
import Database from "better-sqlite3"
import { Effect, Logger } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { SqliteLog } from "../src/SqliteLog.ts"
import { contentOf, type OldEvent, stateOf, writeOldLog } from "./OldLog.ts"
import { start, startChild } from "./Processes.ts"
import { temporaryFolder } from "./TemporaryFolder.ts"

const seed = Number(process.env["MILLRACE_SEED"] ?? 1)

/** Runs with the name of a file that does not exist yet. */
const withFile = (body: (filename: string) => void | Promise<void>) =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "log.db")
    yield* Effect.promise(async () => body(filename))
  }).pipe(Effect.scoped, Effect.runPromise)

const withLog = <A>(filename: string, body: (log: SqliteLog) => A, readOnly = false): A => {
  const log = new SqliteLog({ filename, readOnly })
  try {
    return body(log)
  } finally {
    log.close()
  }
}

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }).filter((some) => !some.includes("\0") && some.isWellFormed()),
  fc.constantFrom("", "{}", '{"größe": "½ €",  "🦫":[ ]}'),
  fc.integer({ min: 3_000, max: 30_000 }).map((length) => "ж".repeat(length))
)

const oldEvent: fc.Arbitrary<OldEvent> = fc.record({
  stream: fc.constantFrom<StreamName.StreamName>("a-1", "a-2", "account-😀", "b-x y", `c-${"long".repeat(50)}`),
  id: fc.uuid(),
  type: text,
  data: text,
  metadata: text,
  step: fc.constantFrom(1, 1, 1, 7)
})

/** Many events of 500 bytes in a thousand streams. */
const many = (count: number): Array<OldEvent> =>
  Array.from({ length: count }, (_, i) => ({
    stream: `account-${(i * 7_919) % 1_000}` as const,
    id: `id ${i}`,
    type: "Happened",
    data: `{"n":${i},"text":"${"x".repeat(400)}"}`,
    metadata: "{}",
    step: 1
  }))

/** Opens the log, and checks that it has the events that were written, in the log and in each stream. */
const expectServed = (filename: string, events: ReadonlyArray<OldEvent>, readOnly = false) => {
  const look = (log: SqliteLog) => {
    let place = 0
    const ends = new Map<StreamName.StreamName, number>()
    const written = events.map(({ step, ...event }) => {
      place += step
      const revision = (ends.get(event.stream) ?? -1) + 1
      ends.set(event.stream, revision)
      return { ...event, revision, position: positionOf(place) }
    })
    expect(log.readAll(0)).toEqual(written.slice(0, 512))
    for (const [stream, end] of ends) {
      const there = written.filter((event) => event.stream === stream)
      expect(log.lastRevision(stream)).toBe(end)
      expect(log.readStream(stream, "forwards", undefined, Infinity)).toEqual(there.slice(0, 512))
      expect(log.readStream(stream, "backwards", undefined, 3)).toEqual(there.toReversed().slice(0, 3))
    }
  }
  withLog(filename, look, readOnly)
}

describe("a log of the release before", () => {
  it("keeps every byte of any events, streams and snapshots, and has the schema of a new log", () =>
    fc.assert(
      fc.asyncProperty(fc.array(oldEvent, { maxLength: 60 }), (events) =>
        withFile((filename) => {
          writeOldLog(filename, events)
          const before = contentOf(filename)
          expectServed(filename, events)
          expect(contentOf(filename)).toEqual(before)
          const fresh = `${filename}.new`
          withLog(fresh, () => {})
          expect(stateOf(filename)).toEqual(stateOf(fresh))
          expect(stateOf(filename)).toMatchObject({ version: 2, problems: "ok" })
          expect(Effect.runSync(SqliteCheck.check(filename))).toMatchObject({ problems: [], journalMode: "wal" })
          const [one] = events
          if (one === undefined) return
          withLog(filename, (log) =>
            log.transact(() => {
              const end = log.lastRevision(one.stream)
              expect(log.append(one.stream, "noStream", [one])).toEqual(expect.objectContaining({ revision: 0 }))
              expect(log.append(one.stream, "noStream", [{ ...one, id: "another" }])).toEqual({ actual: end })
              const revision = Number(end) + 1
              expect(log.append(one.stream, end, [one])).toMatchObject({ revision })
            })
          )
          expect(contentOf(filename).events.length).toBe(events.length + 1)
        })
      ),
      { seed, numRuns: 60 }
    ))

  it("says that it is migrated, once", () =>
    withFile(async (filename) => {
      writeOldLog(filename, many(10))
      const told: Array<unknown> = []
      const logger = Logger.layer([Logger.make(({ message }) => void told.push(message))])
      const open = Effect.scoped(SqliteEventStore.make({ filename })).pipe(Effect.provide(logger))
      await Effect.runPromise(Effect.andThen(open, open))
      expect(told).toEqual([[`Migrating ${filename} from version 1 to 2: some seconds for a million events`]])
    }))

  it("is not migrated while another process has it open, and says what to do", () =>
    withFile((filename) => {
      const events = many(10)
      writeOldLog(filename, events)
      const other = new Database(filename)
      other.exec("SELECT count(*) FROM events")
      expect(() => new SqliteLog({ filename })).toThrow(
        `${filename} is at version 1 of an event log, and this release needs 2: stop every process that has it open, then start one of this release`
      )
      // The older release can go on
      other.exec("INSERT INTO events VALUES (11, 1, 1, 'id', 'Happened', '{}', '{}')")
      other.close()
      expectServed(filename, [...events, { stream: "account-0", id: "id", type: "Happened", data: "{}", metadata: "{}", step: 1 }])
    }))

  it("is shared again as soon as it is migrated", () =>
    withFile((filename) => {
      writeOldLog(filename, many(10))
      withLog(filename, (log) =>
        withLog(filename, (other) => {
          const [event] = many(1)
          if (event === undefined) return
          for (const [i, one] of [other, log, other].entries())
            one.transact(() => void one.append("a-1", i === 0 ? "noStream" : i - 1, [event]))
          expect([log.last(), other.last()]).toEqual([13, 13])
        })
      )
    }))

  it("can be read as it is, also while the older release writes to it", () =>
    withFile((filename) => {
      const events = many(1_200)
      writeOldLog(filename, events)
      const bytes = readFileSync(filename)
      expectServed(filename, events, true)
      expect(readFileSync(filename)).toEqual(bytes)
      const log = new SqliteLog({ filename, readOnly: true })
      const other = new Database(filename)
      other.exec("INSERT INTO events VALUES (1201, 1, 2, 'newest', 'Happened', '{}', '{}')")
      expect(log.last()).toBe(1_201)
      expect(log.readStream("account-0", "forwards", undefined, Infinity).map(({ id }) => id)).toEqual(["id 0", "id 1000", "newest"])
      other.close()
      log.close()
    }))

  it("is as before if there is no space for the migration, wherever it ends", () =>
    withFile((filename) => {
      const events = many(2_000)
      writeOldLog(filename, events)
      const before = { ...contentOf(filename), ...stateOf(filename) }
      let refusals = 0
      for (let maxPages = statSync(filename).size / 4_096; ; maxPages++) {
        try {
          new SqliteLog({ filename, maxPages }).close()
          break
        } catch (error) {
          expect(String(error)).toContain("No space is left for")
          expect({ ...contentOf(filename), ...stateOf(filename) }).toEqual(before)
          refusals++
        }
      }
      expect(refusals).toBeGreaterThan(5)
      expectServed(filename, events)
    }))

  const migrating = (filename: string) =>
    start(process.execPath, ["--conditions=@millrace/source", fileURLToPath(new URL("MigrationChild.ts", import.meta.url)), filename])

  it("is whole after each kill -9 of its migration, which then begins anew", () =>
    withFile(async (filename) => {
      const events = many(15_000)
      writeOldLog(filename, events)
      const before = contentOf(filename)
      let interrupted = 0
      for (let round = 0; interrupted < 4; round++) {
        const running = migrating(filename)
        await running.printed("ready", 1)
        while (!existsSync(`${filename}-journal`) && !running.lines.includes("open")) await setTimeout(1)
        await setTimeout(round * 9)
        running.child.kill("SIGKILL")
        await running.ended
        if (running.lines.includes("open")) break
        if (existsSync(`${filename}-journal`)) interrupted++
        expect(contentOf(filename), `round ${round}`).toEqual(before)
        const { problems, version } = stateOf(filename)
        expect(problems).toBe("ok")
        if (version === 2) break
      }
      expect(interrupted).toBeGreaterThan(0)
      expectServed(filename, events)
      expect(contentOf(filename)).toEqual(before)
      expect(stateOf(filename)).toMatchObject({ version: 2, problems: "ok" })
    }))

  it("is migrated by one of several processes of this release that open it at once", () =>
    withFile(async (filename) => {
      const events = many(40)
      writeOldLog(filename, events)
      const children = [startChild(filename, 1, 3), startChild(filename, 1, 3), startChild(filename, 1, 3)]
      await Promise.all(children.map(({ ended }) => ended))
      for (const { lines } of children) expect(lines).toContain("open")
      expect(contentOf(filename).events.slice(0, 40)).toMatchObject(events.map(({ id, data }) => ({ id, data })))
      expect(stateOf(filename)).toMatchObject({ version: 2, problems: "ok" })
    }))
})
