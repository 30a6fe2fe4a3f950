/** Files that are locked, read-only, full, damaged, foreign or of a newer release. The errors are clear, and the files stay unchanged. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { EventStore, type StreamName, uuidv7 } from "@millrace/event-sourcing"
import { SqliteCheck, SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import Database from "better-sqlite3"
import { Deferred, Effect, Exit, Fiber, Option, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import { faultOfCommit } from "../src/Fault.ts"
import { temporaryFolder } from "./TemporaryFolder.ts"

const newId = uuidv7(new Uint8Array(9))
const event = (): EventStore.EventData => ({ id: newId(0), type: "Happened", data: `{"text":"${"x".repeat(80)}"}`, metadata: "{}" })

const run = <A, E>(body: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Effect.scoped(body))

/** Another program with the file open. */
const other = (filename: string) =>
  Effect.acquireRelease(
    Effect.sync(() => new Database(filename)),
    (db) => Effect.sync(() => db.close())
  )

const reasonOf = <A, R>(effect: Effect.Effect<A, { readonly _tag: string; readonly reason?: string }, R>) =>
  Effect.map(Effect.flip(effect), (error) => `${error._tag}: ${error.reason}`)

/** Opens the log, reads all of it and appends to it. Returns the first error. */
const refusal = (filename: string) => reasonOf(Effect.scoped(Effect.flatMap(SqliteEventStore.make({ filename }), readAll)))

const readAll = (store: EventStore.EventStore["Service"]) =>
  Effect.gen(function* () {
    const all = yield* Stream.runCollect(store.readAll(EventStore.start))
    const streams = new Map<StreamName.StreamName, ReadonlyArray<EventStore.RecordedEvent>>()
    for (const one of new Set(all.map(({ stream }) => stream))) streams.set(one, yield* Stream.runCollect(store.readStream(one)))
    return { all, streams }
  })

/** A closed log of 600 events in 40 streams, in one file. */
const written = (filename: string, unindexed = 1_000) =>
  Effect.gen(function* () {
    const store = yield* SqliteEventStore.make({ filename, unindexed })
    for (let i = 0; i < 40; i++) yield* store.append(`account-${i}`, "noStream", [event(), ...Array.from({ length: 14 }, event)])
    return yield* readAll(store)
  }).pipe(Effect.scoped)

/** Runs an effect while the test clock advances, so that a wait of five seconds takes only as long as the attempts. */
const impatiently = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkScoped(effect)
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(50), Effect.yieldNow)))
    return yield* Fiber.join(fiber)
  }).pipe(Effect.provide(TestClock.layer()))

describe("a locked file", () => {
  it("makes writes wait, while reads continue", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        const store = yield* SqliteEventStore.make({ filename })
        yield* store.append("a-1", "noStream", [event()])
        const db = yield* other(filename)
        db.exec("BEGIN IMMEDIATE")
        const waiting = yield* Effect.forkChild(store.append("a-1", 0, [event()]), { startImmediately: true })
        for (let i = 0; i < 5; i++) {
          yield* Effect.sleep(1)
          expect(yield* store.lastRevision("a-1")).toBe(0)
          expect((yield* Stream.runCollect(store.readStream("a-1"))).length).toBe(1)
        }
        db.exec("ROLLBACK")
        expect((yield* Fiber.join(waiting)).revision).toBe(1)
      })
    ))

  it("is reported after five seconds, with nothing written, and can be written once it is unlocked", () =>
    run(
      impatiently(
        Effect.gen(function* () {
          const filename = join(yield* temporaryFolder, "log.db")
          const store = yield* SqliteEventStore.make({ filename })
          const db = yield* other(filename)
          db.exec("BEGIN IMMEDIATE")
          expect(yield* reasonOf(store.append("a-1", "noStream", [event()]))).toMatch(
            /^StoreUnavailable: .*log\.db is locked by another process/
          )
          expect(yield* reasonOf(store.saveSnapshot("a-1", { revision: 1, data: "{}" }))).toMatch(/locked/)
          db.exec("ROLLBACK")
          expect(yield* store.lastRevision("a-1")).toBe("noStream")
          expect((yield* store.append("a-1", "noStream", [event()])).revision).toBe(0)
        })
      )
    ))

  it("is reported when it cannot be opened or read", () =>
    run(
      impatiently(
        Effect.gen(function* () {
          const filename = join(yield* temporaryFolder, "log.db")
          yield* Effect.scoped(SqliteEventStore.make({ filename }))
          yield* Effect.gen(function* () {
            const db = yield* other(filename)
            db.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
            expect(yield* refusal(filename)).toMatch(/^StoreUnavailable: .*log\.db is locked by another process/)
          }).pipe(Effect.scoped)
          yield* Effect.scoped(SqliteEventStore.make({ filename }))
        })
      )
    ))

  it("fails the writes that wait when the store is closed, with nothing written", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        const scope = yield* Scope.make()
        const store = yield* Scope.provide(SqliteEventStore.make({ filename }), scope)
        const db = yield* other(filename)
        db.exec("BEGIN IMMEDIATE")
        const waiting = yield* Effect.forkChild(reasonOf(store.append("a-1", "noStream", [event()])), { startImmediately: true })
        yield* Effect.sleep(5)
        yield* Scope.close(scope, Exit.void)
        expect(yield* Fiber.join(waiting)).toBe("StoreUnavailable: The store was closed")
        expect(yield* reasonOf(store.append("a-1", "noStream", [event()]))).toBe("StoreUnavailable: The store was closed")
        db.exec("ROLLBACK")
        expect(db.prepare("SELECT count(*) FROM events").pluck().get()).toBe(0)
      })
    ))
})

describe("a file that cannot be written", () => {
  /** Runs as an ordinary user, because permissions do not restrict the superuser. */
  const unprivileged = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    process.geteuid?.() !== 0
      ? effect
      : Effect.acquireUseRelease(
          Effect.sync(() => process.seteuid?.(65_534)),
          () => effect,
          () => Effect.sync(() => process.seteuid?.(0))
        )

  it("is reported at opening, whether the file or its folder is read-only", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const filename = join(folder, "log.db")
        yield* written(filename)
        const bytes = readFileSync(filename)
        chmodSync(filename, 0o444)
        chmodSync(folder, 0o777)
        expect(yield* unprivileged(refusal(filename))).toMatch(/^StoreUnavailable: .*log\.db cannot be written: .* read-only/)
        chmodSync(folder, 0o555)
        expect(yield* unprivileged(refusal(filename))).toMatch(/^StoreUnavailable: .*log\.db cannot be (written|opened)/)
        expect(yield* unprivileged(refusal(join(folder, "new.db")))).toMatch(
          /^StoreUnavailable: .*new\.db cannot be opened: is .* a folder that this user may write to/
        )
        chmodSync(folder, 0o777)
        expect(readFileSync(filename)).toEqual(bytes)
      })
    ))

  it("is reported when its folder does not exist or it is a folder", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        expect(yield* refusal(join(folder, "nowhere", "log.db"))).toBe(
          `StoreUnavailable: The folder ${join(folder, "nowhere")} does not exist`
        )
        expect(existsSync(join(folder, "nowhere"))).toBe(false)
        mkdirSync(join(folder, "log.db"))
        expect(yield* refusal(join(folder, "log.db"))).toMatch(/^StoreUnavailable: .*log\.db cannot be opened/)
      })
    ))
})

describe("a full file", () => {
  it("refuses whole appends, can still be read, and can be written once it may grow", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        const written = yield* Effect.gen(function* () {
          const store = yield* SqliteEventStore.make({ filename, maxPages: 40 })
          let expected: EventStore.ExpectedRevision = "noStream"
          for (;;) {
            const exit: Exit.Exit<EventStore.Appended, unknown> = yield* Effect.exit(
              store.append("a-1", expected, [event(), event(), event()])
            )
            if (Exit.isFailure(exit)) {
              const error = Option.getOrThrow(Exit.findErrorOption(exit))
              expect(error instanceof EventStore.StoreUnavailable && error.reason).toMatch(/No space is left for .*log\.db/)
              break
            }
            expected = exit.value.revision
          }
          expect(yield* store.lastRevision("a-1")).toBe(expected)
          const big: EventStore.EventData = { ...event(), data: JSON.stringify("x".repeat(100_000)) }
          // A conflict is still reported, and a failed first append leaves no stream
          expect((yield* Effect.flip(store.append("a-1", "noStream", [event()])))._tag).toBe("WrongRevision")
          expect(yield* reasonOf(store.append("b-1", "noStream", [big]))).toMatch(/No space/)
          expect(yield* store.lastRevision("b-1")).toBe("noStream")
          return yield* readAll(store)
        }).pipe(Effect.scoped)
        expect(written.all.length).toBeGreaterThan(100)
        expect(written.all.length % 3).toBe(0)
        const store = yield* SqliteEventStore.make({ filename })
        expect(yield* readAll(store)).toEqual(written)
        expect((yield* store.append("a-1", written.all.length - 1, [event()])).revision).toBe(written.all.length)
      })
    ))
})

describe("a damaged file", () => {
  const changed = (bytes: Buffer, at: number, into: Uint8Array) =>
    Buffer.concat([bytes.subarray(0, at), into, bytes.subarray(at + into.length)])

  it.each([1, 1_000])("is reported when a damaged page is read; no event goes missing silently; its index lacks %s events", (unindexed) =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const filename = join(folder, "log.db")
        const whole = yield* written(filename, unindexed)
        const bytes = readFileSync(filename)
        const pages = bytes.length / 4_096
        expect(pages).toBeGreaterThan(30)
        let refusals = 0
        for (let page = 0; page < pages; page++) {
          for (const filler of [0x00, 0xff]) {
            const copy = join(folder, `page-${page}-${filler}.db`)
            const damaged = changed(bytes, page * 4_096 + (page === 0 ? 100 : 0), new Uint8Array(page === 0 ? 3_996 : 4_096).fill(filler))
            writeFileSync(copy, damaged)
            const exit = yield* Effect.exit(Effect.scoped(Effect.flatMap(SqliteEventStore.make({ filename: copy }), readAll)))
            if (Exit.isSuccess(exit)) expect(exit.value).toEqual(whole)
            else {
              refusals++
              const error = Option.getOrThrow(Exit.findErrorOption(exit))
              expect(error).toBeInstanceOf(EventStore.StoreUnavailable)
              expect(error.reason).toContain(" is corrupt")
            }
            expect(readFileSync(copy)).toEqual(damaged)
          }
        }
        // All pages except those of snapshots and of the index of names
        expect(refusals).toBeGreaterThan(pages * 2 - 12)
      })
    )
  )

  it("is reported when an event was removed from its stream", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        yield* written(filename)
        const takeOut = `DROP TRIGGER events_are_never_removed;
          DELETE FROM events WHERE revision = 5 AND stream = (SELECT id FROM streams WHERE name = 'account-7')`
        yield* Effect.scoped(Effect.map(other(filename), (db) => db.exec(takeOut)))
        expect(yield* refusal(filename)).toBe(`StoreUnavailable: ${filename} is corrupt: events of account-7 are missing after revision 0`)
      })
    ))

  it("is reported when an event of the index was removed from its stream", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        yield* written(filename, 1)
        const takeOut = `DROP TRIGGER stream_index_is_never_removed; DELETE FROM stream_index
          WHERE revision = 5 AND stream = (SELECT id FROM streams WHERE name = 'account-7')`
        yield* Effect.scoped(Effect.map(other(filename), (db) => db.exec(takeOut)))
        expect(yield* refusal(filename)).toBe(`StoreUnavailable: ${filename} is corrupt: events of account-7 are missing after revision 0`)
        expect((yield* SqliteCheck.check(filename)).problems).toEqual(["stream_index has 599 entries for 600 events"])
      })
    ))

  it("is reported when the index has the place of another event", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        yield* written(filename, 1)
        const exchange = `DROP TRIGGER stream_index_is_never_changed; UPDATE stream_index SET position = position + 1
          WHERE revision = 5 AND stream = (SELECT id FROM streams WHERE name = 'account-7')`
        yield* Effect.scoped(Effect.map(other(filename), (db) => db.exec(exchange)))
        expect(yield* refusal(filename)).toBe(`StoreUnavailable: ${filename} is corrupt: events of account-7 are missing after revision 0`)
        expect((yield* SqliteCheck.check(filename)).problems).toEqual(["stream_index has 1 entries without their event"])
        expect((yield* SqliteCheck.check(filename, "quick")).problems).toEqual([])
      })
    ))

  it("is reported when an event has the revision of another", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        yield* written(filename)
        const repeat = (revision: number) =>
          `INSERT INTO events SELECT (SELECT max(position) + 1 FROM events), id, ${revision}, 'id', 'Happened', '{}', '{}'
          FROM streams WHERE name = 'account-7'`
        yield* Effect.scoped(Effect.map(other(filename), (db) => db.exec(repeat(3))))
        const damaged = yield* SqliteEventStore.make({ filename })
        expect((yield* readAll(damaged)).all.length).toBe(601)
        expect(yield* reasonOf(damaged.append("account-8", 14, [event()]))).toBe(
          `StoreUnavailable: ${filename} is corrupt: event 601 repeats a revision of its stream; audit it`
        )
        const indexed = join(yield* temporaryFolder, "log.db")
        yield* written(indexed, 1)
        yield* Effect.scoped(Effect.map(other(indexed), (db) => db.exec(repeat(3))))
        const store = yield* SqliteEventStore.make({ filename: indexed, unindexed: 1 })
        expect(yield* reasonOf(store.append("account-8", 14, [event()]))).toMatch(
          /^StoreUnavailable: .* contradicts itself: .*stream_index/
        )
        expect(yield* store.lastRevision("account-8")).toBe(14)
      })
    ))

  it("is reported when it is cut short", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const filename = join(folder, "log.db")
        yield* written(filename)
        const bytes = readFileSync(filename)
        for (const [length, reason] of [
          [bytes.length - 4_096, /is corrupt/],
          [bytes.length - 1, /is corrupt/],
          [Math.floor(bytes.length / 2), /is corrupt/],
          [4_096, /is corrupt/],
          [700, /is corrupt|is not an SQLite database/],
          [50, /is corrupt|is not an SQLite database/]
        ] as const) {
          const copy = join(folder, `cut-${length}.db`)
          writeFileSync(copy, bytes.subarray(0, length))
          expect(yield* refusal(copy), `cut at ${length}`).toMatch(reason)
          expect(readFileSync(copy)).toEqual(bytes.subarray(0, length))
        }
      })
    ))

  it("is reported when it is not a database", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const filename = join(folder, "log.db")
        yield* written(filename)
        const noise = Buffer.from(Array.from({ length: 5_000 }, (_, i) => (i * 7_919) % 251))
        for (const [name, bytes] of [
          ["noise", noise],
          ["text", Buffer.from("A shopping list: flour, eggs, a mill.\n".repeat(40))],
          ["header", changed(readFileSync(filename), 0, noise.subarray(0, 100))]
        ] as const) {
          const copy = join(folder, name)
          writeFileSync(copy, bytes)
          expect(yield* refusal(copy)).toMatch(/^StoreUnavailable: .* is not an SQLite database/)
          expect(yield* reasonOf(Effect.scoped(SqliteStateStore.make({ filename: copy })))).toMatch(
            /^StateUnavailable: .* is not an SQLite database/
          )
          expect(readFileSync(copy)).toEqual(bytes)
        }
      })
    ))

  it("is reported by the store that has it open, and served again once it is repaired", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const filename = join(folder, "log.db")
        const whole = yield* written(filename)
        const bytes = readFileSync(filename)
        const store = yield* SqliteEventStore.make({ filename })
        writeFileSync(filename, changed(bytes, 8_192, new Uint8Array(bytes.length - 8_192)), { flag: "r+" })
        expect(yield* reasonOf(readAll(store))).toMatch(/^StoreUnavailable: .* is corrupt/)
        expect(yield* reasonOf(store.append("account-new", "noStream", [event()]))).toMatch(/^StoreUnavailable: .* is corrupt/)
        writeFileSync(filename, bytes, { flag: "r+" })
        const mended = yield* SqliteEventStore.make({ filename })
        expect(yield* readAll(mended)).toEqual(whole)
        expect((yield* mended.append("account-new", "noStream", [event()])).revision).toBe(0)
      })
    ))
})

describe("a file of another program", () => {
  it("is refused, and left unchanged", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const [log, state, foreign] = [join(folder, "log.db"), join(folder, "state.db"), join(folder, "foreign.db")]
        yield* Effect.scoped(SqliteEventStore.make({ filename: log }))
        yield* Effect.scoped(SqliteStateStore.make({ filename: state }))
        yield* Effect.scoped(Effect.map(other(foreign), (db) => db.exec("CREATE TABLE notes(text)")))
        for (const filename of [state, foreign]) {
          const before = readFileSync(filename)
          expect(yield* refusal(filename)).toBe(`StoreUnavailable: ${filename} is a database, but not an event log of Millrace`)
          expect(readFileSync(filename)).toEqual(before)
        }
        expect(yield* reasonOf(Effect.scoped(SqliteStateStore.make({ filename: log })))).toBe(
          `StateUnavailable: ${log} is a database, but not a state store of Millrace`
        )
      })
    ))

  it("is refused when a newer release has migrated it", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        yield* written(filename)
        yield* Effect.scoped(Effect.map(other(filename), (db) => db.exec("PRAGMA user_version = 7")))
        const told = `StoreUnavailable: ${filename} was written by a newer release: its schema is version 7, this release knows up to 2`
        expect(yield* refusal(filename)).toBe(told)
        expect(yield* reasonOf(Effect.scoped(SqliteEventStore.make({ filename, readOnly: true })))).toBe(told)
      })
    ))
})

describe("a reader that must not write", () => {
  it("sees the appends of a writer live, and changes nothing", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        const writer = yield* SqliteEventStore.make({ filename })
        const reader = yield* SqliteEventStore.make({ filename, readOnly: true })
        const live = yield* Effect.forkChild(
          Stream.runCollect(
            Stream.take(
              Stream.filter(reader.subscribe(EventStore.start), ({ events }) => events.length > 0),
              2
            )
          ),
          { startImmediately: true }
        )
        const first = yield* writer.append("a-1", "noStream", [event(), event()])
        expect(yield* reader.lastRevision("a-1")).toBe(1)
        expect(yield* reader.head).toBe(first.position)
        yield* Effect.sleep(50)
        yield* writer.append("a-1", 1, [event()])
        const batches = yield* Fiber.join(live)
        expect(batches.flatMap(({ events }) => events)).toEqual((yield* readAll(writer)).all)
        expect(yield* readAll(reader)).toEqual(yield* readAll(writer))
        expect(yield* reasonOf(reader.append("a-1", 2, [event()]))).toMatch(/^StoreUnavailable: .*log\.db was opened read-only/)
        expect(yield* reasonOf(reader.saveSnapshot("a-1", { revision: 1, data: "{}" }))).toMatch(/was opened read-only/)
        expect(yield* writer.lastRevision("a-1")).toBe(2)
      })
    ))

  it("reads a log that no other process has open, and creates no log", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const filename = join(folder, "log.db")
        const missing = yield* reasonOf(Effect.scoped(SqliteEventStore.make({ filename, readOnly: true })))
        expect(missing).toBe(`StoreUnavailable: ${filename} does not exist`)
        expect(readdirSync(folder)).toEqual([])
        const whole = yield* written(filename)
        const bytes = readFileSync(filename)
        expect(yield* readAll(yield* SqliteEventStore.make({ filename, readOnly: true }))).toEqual(whole)
        expect(readFileSync(filename)).toEqual(bytes)
        const empty = join(folder, "empty.db")
        writeFileSync(empty, "")
        expect(yield* reasonOf(Effect.scoped(SqliteEventStore.make({ filename: empty, readOnly: true })))).toMatch(
          /is at version 0 of an event log/
        )
      })
    ))
})

describe("the events table", () => {
  it("refuses to change or remove an event, also from other programs", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        const whole = yield* written(filename, 1)
        const db = yield* other(filename)
        for (const sql of [
          "UPDATE events SET data = '{}'",
          "DELETE FROM events",
          "DELETE FROM events WHERE position = 600",
          "UPDATE stream_index SET position = 1",
          "DELETE FROM stream_index",
          "UPDATE streams SET name = 'x-' || name",
          "DELETE FROM streams"
        ]) {
          expect(() => db.exec(sql), sql).toThrow(/are never (changed|removed)/)
        }
        expect(yield* readAll(yield* SqliteEventStore.make({ filename }))).toEqual(whole)
      })
    ))
})

describe("a subscription", () => {
  it("is woken by appends of this process without polling", () =>
    run(
      Effect.gen(function* () {
        const store = yield* SqliteEventStore.make({ filename: join(yield* temporaryFolder, "log.db") })
        const isLive = yield* Deferred.make<void>()
        const live = store.subscribe(EventStore.start).pipe(
          Stream.tap((batch) => (batch.live ? Deferred.succeed(isLive, undefined) : Effect.void)),
          Stream.filter(({ events }) => events.length > 0),
          Stream.take(3),
          Stream.runCollect
        )
        const fiber = yield* Effect.forkChild(live, { startImmediately: true })
        yield* Deferred.await(isLive)
        for (const i of [0, 1, 2]) yield* store.append(`a-${i}`, "noStream", [event()])
        expect((yield* Fiber.join(fiber)).flatMap(({ events }) => events)).toEqual((yield* readAll(store)).all)
        // The test clock does not move, so no polling has run
      }).pipe(Effect.provide(TestClock.layer()))
    ))
})

describe("a commit that failed", () => {
  it("is in doubt only if its transaction may be recovered later", () => {
    const isInDoubt = (code: string) => faultOfCommit(new Database.SqliteError("failed", code), "log.db").inDoubt
    for (const code of ["SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_READONLY"])
      expect(isInDoubt(code), code).toBe(false)
    for (const code of [
      "SQLITE_IOERR_FSYNC",
      "SQLITE_IOERR_DIR_FSYNC",
      "SQLITE_IOERR_SHMSIZE",
      "SQLITE_IOERR",
      "SQLITE_NOMEM",
      "SQLITE_INTERNAL"
    ])
      expect(isInDoubt(code), code).toBe(true)
  })
})

describe("appends sent at once", () => {
  it("share transactions, also over many streams", () =>
    run(
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "log.db")
        const store = yield* SqliteEventStore.make({ filename })
        /** A frame of the write-ahead log that ends a transaction holds the size of the file after it; other frames hold 0. */
        const commits = () => {
          const wal = readFileSync(`${filename}-wal`)
          let count = 0
          for (let at = 32; at < wal.length; at += 24 + 4_096) if (wal.readUInt32BE(at + 4) !== 0) count++
          return count
        }
        const before = commits()
        yield* Effect.forEach(Array.from({ length: 1_000 }), (_, i) => store.append(`a-${i}`, "noStream", [event()]), {
          concurrency: "unbounded"
        })
        expect(commits() - before).toBeLessThanOrEqual(2)
      })
    ))
})
