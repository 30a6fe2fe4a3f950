/** The line that tells how far the reading of a log is. */
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { lineOf } from "@millrace/audit"
import { EventStore, MemoryEventStore } from "@millrace/event-sourcing"
import { Clock, Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, describe, expect, it } from "vitest"
import * as Audit from "../src/administration/Audit.ts"
import * as Backup from "../src/administration/Backup.ts"
import * as BackupFolder from "../src/BackupFolder.ts"
import { createMillrace } from "../src/index.ts"
import * as Progress from "../src/Progress.ts"
import * as Restoration from "../src/Restoration.ts"
import * as StoreUrl from "../src/StoreUrl.ts"

/** A terminal that keeps what is written to it. */
const fake = (columns = 120) => {
  const written: Array<string> = []
  const terminal: Progress.Terminal = { isTTY: true, columns, write: (text) => written.push(text) }
  return { terminal, written }
}

/** A clock on which a second passes each time that it is read. */
const ticking = (): Clock.Clock => {
  let now = 0
  const tick = () => (now += 1000)
  const nanos = () => BigInt(now) * 1_000_000n
  return {
    currentTimeMillisUnsafe: tick,
    currentTimeMillis: Effect.sync(tick),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: () => Effect.void
  }
}

/** Shows progress on a terminal, one line for each step. */
const shownOn =
  (terminal: Progress.Terminal | undefined) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    effect.pipe(Effect.provideService(Progress.Shown, terminal), Effect.provideService(Clock.Clock, ticking()))

const event = (i: number): EventStore.RecordedEvent => ({
  ...{ id: `${i}`, type: "Noted", data: "{}", metadata: "{}" },
  ...{ stream: "note-1", revision: i - 1, position: EventStore.position(String(i).padStart(16, "0")) }
})

/** Reads a log of four events, one a second. */
const reading = (terminal: Progress.Terminal | undefined) =>
  Effect.gen(function* () {
    const memory = yield* MemoryEventStore.make
    const store = EventStore.EventStore.of({
      ...memory,
      head: Effect.succeed(EventStore.position("0000000000000004")),
      readAll: () =>
        Stream.fromIterable([1, 2, 3, 4]).pipe(
          Stream.rechunk(1),
          Stream.mapEffect((i) => Effect.as(TestClock.adjust("1 second"), event(i)))
        )
    })
    const read = EventStore.EventStore.use(({ readAll }) => Stream.runCount(readAll(EventStore.start)))
    return yield* Progress.watch("Reading")(read).pipe(
      Effect.provideService(EventStore.EventStore, store),
      Effect.provideService(Progress.Shown, terminal)
    )
  }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)

describe("the progress of a reading", () => {
  it("is a bar with a rate and the time left, and is erased at the end", async () => {
    const { terminal, written } = fake()
    expect(await reading(terminal)).toBe(4)
    expect(written).toEqual([
      "\r\u001b[KReading  [####------------]  25 %  1 events  1/s  3 s left",
      "\r\u001b[KReading  [########--------]  50 %  2 events  1/s  2 s left",
      "\r\u001b[KReading  [############----]  75 %  3 events  1/s  1 s left",
      "\r\u001b[KReading  [################]  100 %  4 events  1/s  0 s left",
      "\r\u001b[K"
    ])
  })

  it("fits the terminal", async () => {
    const { terminal, written } = fake(20)
    await reading(terminal)
    for (const text of written) expect(text.replace("\r\u001b[K", "").length).toBeLessThan(20)
  })

  it("is not shown where nobody looks, or a terminal is dumb", async () => {
    expect(await reading(undefined)).toBe(4)
    const { terminal } = fake()
    expect(Progress.terminalOf(terminal, "xterm")).toBe(terminal)
    expect(Progress.terminalOf(terminal, undefined)).toBe(terminal)
    expect(Progress.terminalOf(terminal, "dumb")).toBeUndefined()
    expect(Progress.terminalOf({ write: () => true }, "xterm")).toBeUndefined()
  })

  it("is erased when the reading fails", async () => {
    const { terminal, written } = fake()
    const failing = Progress.bytes("Copying", (advance) =>
      Effect.andThen(
        Effect.sync(() => advance(1_500_000, 6_000_000)),
        Effect.fail("no")
      )
    )
    expect(await Effect.runPromise(Effect.flip(failing.pipe(shownOn(terminal))))).toBe("no")
    expect(written).toEqual(["\r\u001b[KCopying  [####------------]  25 %  1.5 MB  2/s  3 s left", "\r\u001b[K"])
  })

  it("of a rebuild is that of the slowest subscription, and is erased when all have reached the end of the log", async () => {
    const { terminal, written } = fake()
    const watched = Effect.gen(function* () {
      const memory = yield* MemoryEventStore.make
      const batches = (first: number): Stream.Stream<EventStore.Batch> =>
        Stream.fromIterable([1, 2, 3, 4].slice(first)).pipe(
          Stream.rechunk(1),
          Stream.mapEffect((i) => Effect.as(TestClock.adjust("1 second"), { events: [event(i)], live: i === 4 }))
        )
      const store = EventStore.EventStore.of({
        ...memory,
        head: Effect.succeed(EventStore.position("0000000000000004")),
        subscribe: (after) => batches(after === EventStore.start ? 0 : Number(after))
      })
      const { subscribe } = yield* Progress.rebuilding("Rebuilding").pipe(
        Effect.provideService(EventStore.EventStore, store),
        Effect.provideService(Progress.Shown, terminal)
      )
      const slow = yield* Stream.toPull(subscribe(EventStore.start))
      const fast = yield* Stream.toPull(subscribe(event(2).position))
      // One event of the slow one, both of the fast one, then the rest of the slow one
      yield* slow
      yield* fast
      yield* fast
      yield* slow
      yield* slow
      expect(written).not.toContain("\r\u001b[K")
      yield* slow
    })
    await watched.pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)
    expect(written.map((text) => /\d+ %/u.exec(text)?.[0])).toEqual(["25 %", "25 %", "50 %", "75 %", undefined])
    expect(written.at(-1)).toBe("\r\u001b[K")
  })

  it("of work that counts itself has its unit, and is erased at the end", async () => {
    const { terminal, written } = fake()
    const copying = Progress.counting("Copying", "pages", (advance) =>
      Effect.gen(function* () {
        advance(0, 40)
        for (const done of [10, 20]) {
          yield* TestClock.adjust("1 second")
          advance(done, 40)
        }
        return "copied"
      })
    )
    const run = (to: Progress.Terminal | undefined) =>
      Effect.runPromise(copying.pipe(Effect.provideService(Progress.Shown, to), Effect.provide(TestClock.layer())))
    expect(await run(terminal)).toBe("copied")
    expect(written).toEqual([
      "\r\u001b[KCopying  [####------------]  25 %  10 pages  10/s  3 s left",
      "\r\u001b[KCopying  [########--------]  50 %  20 pages  10/s  2 s left",
      "\r\u001b[K"
    ])
    expect(await run(undefined)).toBe("copied")
  })

  it("tells long times in minutes and hours", () => {
    expect(Progress.line("Auditing", 1_200_000, 0.01, 10_000)).toMatch(/1 % {2}1,200,000 events {2}120,000\/s {2}16 min 30 s left$/u)
    expect(Progress.line("Auditing", 10, 0.001, 10_000)).toMatch(/2 h 46 min left$/u)
    expect(Progress.line("Auditing", 0, 0, 0)).toMatch(/0 % {2}0 events {2}0\/s$/u)
  })
})

describe("the progress of files", () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-progress-"))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const url = `sqlite:${folder}/millrace.db`
  const run = <A, E>(effect: Effect.Effect<A, E>, terminal: Progress.Terminal | undefined) =>
    Effect.runPromise(effect.pipe(shownOn(terminal)))
  /** What a line says of `what`: percent and amount. */
  const told = (written: ReadonlyArray<string>, what: string) =>
    written.filter((text) => text.includes(what)).map((text) => /\d+ % {2}[\d.,]+ \w+/u.exec(text)?.[0])
  /** A file of bytes that gzip cannot shorten. */
  const noise = (bytes: number, seed = 0) => {
    const blocks = Array.from({ length: Math.ceil(bytes / 32) }, (_, i) => createHash("sha256").update(`${seed} ${i}`).digest())
    return Buffer.concat(blocks).subarray(0, bytes)
  }

  it("is that of all blobs in a backup, and of the log, the state and the blobs in a restore", async () => {
    const host = await createMillrace({ store: url, operations: [], log: {} })
    const files = await Effect.runPromise(StoreUrl.existing(url))
    mkdirSync(files.blobs, { recursive: true })
    for (const size of [300_000, 100_000, 600_000]) {
      const blob = noise(size)
      writeFileSync(join(files.blobs, createHash("sha256").update(blob).digest("hex")), blob)
    }
    const to = join(folder, "backup")
    const { terminal, written } = fake()
    const made = await run(Backup.make(files, { to, keysLifetime: 60_000, masterKey: undefined }), terminal)
    await host.close()
    expect(made).toMatchObject({ ok: true, blobs: 3 })
    const blobs = told(written, "Copying the blobs")
    expect(blobs).toHaveLength(3)
    expect(blobs.at(-1)).toBe("100 %  1 MB")
    for (const what of ["log", "state"]) expect(told(written, `Hashing the ${what}`).at(-1)).toMatch(/^100 %/u)

    const restored = join(folder, "restored")
    mkdirSync(join(restored, "blobs"), { recursive: true })
    const staged = { log: join(restored, "log.db"), state: join(restored, "state.db"), blobs: join(restored, "blobs") }
    const restoring = fake()
    const copy = Effect.flatMap(BackupFolder.read(to), (backup) => Restoration.copy(backup, staged, true))
    expect(await run(copy, restoring.terminal)).toBe(3)
    for (const what of ["log", "state"]) expect(told(restoring.written, `Copying the ${what}`).at(-1)).toMatch(/^100 %/u)
    expect(told(restoring.written, "Copying the blobs")).toHaveLength(3)
    expect(told(restoring.written, "Copying the blobs").at(-1)).toBe("100 %  1 MB")
    expect(restoring.written.at(-1)).toBe("\r\u001b[K")
  })

  it("is that of the file in an audit of an export, compressed or not", async () => {
    // Several chunks of the file, also where it is compressed
    const lines = Array.from(
      { length: 400 },
      (_, i) => `${lineOf({ ...event(i + 1), data: JSON.stringify(noise(3_000, i).toString("base64")) })}\n`
    )
    const plain = lines.join("")
    const zipped = gzipSync(plain)
    writeFileSync(join(folder, "export.jsonl"), plain)
    writeFileSync(join(folder, "export.jsonl.gz"), zipped)
    const options: Audit.Options = { against: undefined, streams: undefined, at: undefined, writeStreams: false }
    for (const [name, size] of [
      ["export.jsonl", plain.length],
      ["export.jsonl.gz", zipped.length]
    ] as const) {
      const { terminal, written } = fake()
      const { report } = await run(Audit.runExport(join(folder, name), options), terminal)
      expect(report.events).toBe(400)
      const all = told(written, "Auditing")
      expect(Number.parseInt(all[0] ?? "", 10)).toBeLessThan(60)
      expect(all.at(-1)).toBe(`100 %  ${(size / 1_000_000).toLocaleString("en", { maximumFractionDigits: 1 })} MB`)
      expect(written.at(-1)).toBe("\r\u001b[K")
    }
    expect((await run(Audit.runExport(join(folder, "export.jsonl"), options), undefined)).report.events).toBe(400)
  })

  it("begins anew where less is done than before, and never passes its end", async () => {
    const { terminal, written } = fake()
    const twice = Progress.bytes("Reading", (advance) =>
      Effect.sync(() => {
        for (const done of [10_000_000, 20_000_000, 5_000_000, 30_000_000]) advance(done, 20_000_000)
      })
    )
    await run(twice, terminal)
    expect(written).toEqual([
      "\r\u001b[KReading  [########--------]  50 %  10 MB  10/s  1 s left",
      "\r\u001b[KReading  [################]  100 %  20 MB  10/s  0 s left",
      "\r\u001b[KReading  [####------------]  25 %  5 MB  0/s",
      "\r\u001b[KReading  [################]  100 %  30 MB  30/s  0 s left",
      "\r\u001b[K"
    ])
  })
})
