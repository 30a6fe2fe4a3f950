/** A copy of a store during writes: both files as of one instant, each complete by itself. */

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { EventStore, uuidv7 } from "@millrace/event-sourcing"
import { SqliteCheck, SqliteCopy, SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import Database from "better-sqlite3"
import { Effect, type Scope, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { temporaryFolder } from "./TemporaryFolder.ts"

const newId = uuidv7(new Uint8Array(9))
const event = (text = "x"): EventStore.EventData => ({ id: newId(0), type: "Happened", data: JSON.stringify({ text }), metadata: "{}" })

const run = <A, E>(body: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Effect.scoped(body))

const filesIn = (folder: string): SqliteCopy.Files => ({ log: join(folder, "log.db"), state: join(folder, "state.db") })

const folderIn = (folder: string, name: string): SqliteCopy.Files => {
  mkdirSync(join(folder, name))
  return filesIn(join(folder, name))
}

/** A store with this many events and entries. */
const written = (files: SqliteCopy.Files, count: number) =>
  Effect.gen(function* () {
    const log = yield* SqliteEventStore.make({ filename: files.log })
    const state = yield* SqliteStateStore.make({ filename: files.state })
    for (let i = 0; i < count; i++) yield* log.append(`account-${i}`, "noStream", [event(`${i} ${"x".repeat(500)}`)])
    yield* state.write([{ _tag: "put", space: "keys", key: "one", value: Buffer.from("the key") }])
    return { log, state }
  })

const eventsIn = (filename: string) =>
  SqliteEventStore.make({ filename, readOnly: true }).pipe(
    Effect.flatMap((log) => Stream.runCollect(log.readAll(EventStore.start))),
    Effect.scoped
  )

/** Counts up in the state, then in the log, as fast as possible, in a thread with its own connections. */
const WRITER = `
  const { parentPort, workerData } = require("node:worker_threads")
  const Database = require(workerData.sqlite)
  const [state, log] = [workerData.state, workerData.log].map((file) => new Database(file, { timeout: 10_000 }))
  const putState = state.prepare("UPDATE counter SET version = ?")
  const putLog = log.prepare("INSERT INTO events(position, stream, revision, id, type, data, metadata) VALUES (?, 1, ?, ?, 'Counted', '{}', '{}')")
  const stop = new Int32Array(workerData.stop)
  for (let i = 1; Atomics.load(stop, 0) === 0; i++) {
    putState.run(i)
    putLog.run(i, i - 1, String(i))
    Atomics.store(stop, 1, i)
  }
  state.close()
  log.close()`

const counting = (files: SqliteCopy.Files) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const db = new Database(files.log)
      db.exec("INSERT INTO streams(name) VALUES ('count-1')")
      db.close()
      const stop = new Int32Array(new SharedArrayBuffer(8))
      const workerData = { ...files, stop: stop.buffer, sqlite: createRequire(import.meta.url).resolve("better-sqlite3") }
      const worker = new Worker(WRITER, { eval: true, workerData, execArgv: [] })
      const ended = new Promise<number>((resolve, reject) => worker.once("exit", resolve).once("error", reject))
      return { count: () => Atomics.load(stop, 1), end: () => Atomics.store(stop, 0, 1), ended }
    }),
    ({ end, ended }) =>
      Effect.promise(() => {
        end()
        return ended
      })
  )

const numberIn = (filename: string, sql: string): number => {
  const db = new Database(filename, { readonly: true })
  const answer = Number(db.prepare(sql).pluck().get())
  db.close()
  return answer
}

describe("a copy", () => {
  it("is of one instant, although another thread writes meanwhile, and has everything written before it began", { timeout: 60_000 }, () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const files = filesIn(folder)
        yield* Effect.scoped(Effect.all([SqliteEventStore.make({ filename: files.log }), SqliteStateStore.make({ filename: files.state })]))
        const writer = yield* counting(files)
        let seen = 0
        for (let i = 0; i < 8; i++) {
          while (writer.count() <= seen) yield* Effect.sleep(1)
          const before = writer.count()
          const to = folderIn(folder, `copy-${i}`)
          yield* SqliteCopy.copy(files, to)
          seen = writer.count()
          const inState = numberIn(to.state, "SELECT version FROM counter")
          const inLog = numberIn(to.log, "SELECT count(*) FROM events")
          expect(inLog).toBeGreaterThanOrEqual(before)
          // The state is written first, so it is ahead by at most one
          expect([inLog, inLog + 1]).toContain(inState)
        }
      })
    )
  )

  it("is two files without a write-ahead log, readable by their owner only, that open as a store", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const files = filesIn(folder)
        yield* written(files, 300)
        const to = folderIn(folder, "copy")
        yield* SqliteCopy.copy(files, to)
        expect(readdirSync(join(folder, "copy")).sort()).toEqual(["log.db", "state.db"])
        expect(statSync(to.log).mode & 0o777).toBe(0o600)
        expect(yield* SqliteCheck.check(to.log)).toMatchObject({ journalMode: "delete", problems: [] })
        expect(yield* eventsIn(to.log)).toEqual(yield* eventsIn(files.log))
        const state = yield* SqliteStateStore.make({ filename: to.state })
        expect(Buffer.from((yield* state.get("keys", "one"))?.value ?? []).toString()).toBe("the key")
        const log = yield* SqliteEventStore.make({ filename: to.log })
        expect((yield* log.append("account-0", 0, [event()])).revision).toBe(1)
      })
    ))

  it("has no value that was shredded before, and does not prevent later shredding", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const files = filesIn(folder)
        const { state } = yield* written(files, 1)
        const secret = Buffer.from("a secret that is no more, of some length")
        const isIn = (file: string) => readFileSync(file).includes(secret)
        yield* state.write([{ _tag: "put", space: "keys", key: "two", value: secret }])
        const before = folderIn(folder, "before")
        yield* SqliteCopy.copy(files, before)
        yield* state.write([{ _tag: "remove", space: "keys", key: "two", shred: true }])
        const after = folderIn(folder, "after")
        yield* SqliteCopy.copy(files, after)
        expect([isIn(before.state), isIn(after.state), isIn(files.state)]).toEqual([true, false, false])
      })
    ))

  it("leaves the source unchanged", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const files = filesIn(folder)
        yield* Effect.scoped(written(files, 50))
        const before = [readFileSync(files.log), readFileSync(files.state)]
        yield* SqliteCopy.copy(files, folderIn(folder, "copy"))
        expect([readFileSync(files.log), readFileSync(files.state)]).toEqual(before)
      })
    ))
})

describe("a file that cannot be copied", () => {
  const refusal = (spoil: (files: SqliteCopy.Files) => void) =>
    run(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const files = filesIn(folder)
        yield* Effect.scoped(written(files, 100))
        spoil(files)
        return (yield* Effect.flip(SqliteCopy.copy(files, folderIn(folder, "copy")))).reason
      })
    )

  it("is reported: not a database, a foreign one, a damaged one", async () => {
    expect(await refusal(({ log }) => writeFileSync(log, "no database".repeat(500)))).toMatch(/log\.db is not an SQLite database/u)
    expect(await refusal(({ log, state }) => writeFileSync(state, readFileSync(log)))).toMatch(
      /state\.db is a database, but not a state store/u
    )
    // In the middle of the events, which opening does not read
    const spoilt = await refusal(({ log }) => {
      const bytes = readFileSync(log)
      writeFileSync(log, bytes.fill(0xa5, 4_096 * 8, 4_096 * 9))
    })
    expect(spoilt).toMatch(/log\.db is (?:not whole|corrupt)/u)
  })
})
