/** A crash or a loss of power leaves any prefix of the write-ahead log, followed by arbitrary bytes. */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { EventStore, type StreamName, uuidv7 } from "@millrace/event-sourcing"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Effect, Stream } from "effect"
import { expect, it } from "vitest"
import { temporaryFolder } from "./TemporaryFolder.ts"

const HEADER = 32
const FRAME = 24 + 4_096

const newId = uuidv7(new Uint8Array(9))
const events = (count: number, size: number): readonly [EventStore.EventData, ...Array<EventStore.EventData>] => {
  const event = () => ({ id: newId(0), type: "Happened", data: `{"text":"${"x".repeat(size)}"}`, metadata: "{}" })
  return [event(), ...Array.from({ length: count - 1 }, event)]
}

/** Makes appends of many sizes, single and concurrent. Returns the length of the write-ahead log when each was answered. */
const script = (filename: string, unindexed: number | undefined) =>
  Effect.gen(function* () {
    const store = yield* SqliteEventStore.make({ filename, ...(unindexed && { unindexed }) })
    const acknowledged: Array<{ readonly events: number; readonly bytes: number }> = []
    let count = 0
    const append = (stream: StreamName.StreamName, batch: ReturnType<typeof events>) =>
      Effect.gen(function* () {
        yield* store.append(stream, yield* store.lastRevision(stream), batch)
        count += batch.length
        acknowledged.push({ events: count, bytes: statSync(`${filename}-wal`).size })
      })
    for (let i = 0; i < 18; i++) {
      yield* append(`one-${i % 4}`, events(1 + (i % 5), i % 6 === 5 ? 9_000 : 100))
      if (i % 4 === 3)
        yield* Effect.forEach([0, 1, 2, 3, 4, 5, 6, 7], (n) => append(`many-${n}`, events(1 + (n % 2), 150)), { concurrency: "unbounded" })
      if (i % 6 === 3) yield* store.saveSnapshot("snapshot.v1-one", { revision: i, data: "{}" })
    }
    const all = yield* Stream.runCollect(store.readAll(EventStore.start))
    return { acknowledged, all, database: readFileSync(filename), wal: readFileSync(`${filename}-wal`) }
  }).pipe(Effect.scoped)

it.each([undefined, 7])(
  "a log cut anywhere is a prefix of the written log, holds every acknowledged event, and can be written to; its index lacks %s events",
  (unindexed) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { acknowledged, all, database, wal } = yield* script(join(folder, "log.db"), unindexed)
      const frames = (wal.length - HEADER) / FRAME
      expect(Number.isInteger(frames)).toBe(true)
      expect(frames).toBeGreaterThan(60)
      expect(acknowledged.at(-1)).toEqual({ events: all.length, bytes: wal.length })

      const cuts = [0, 1, HEADER - 1]
      for (let frame = 0; frame <= frames; frame++) {
        const boundary = HEADER + frame * FRAME
        cuts.push(boundary, boundary + 1 + ((frame * 7) % 23), boundary + 24 + ((frame * 1_237) % 4_096))
      }
      const lengths = new Set<number>()
      for (const [i, cut] of cuts.entries()) {
        if (cut > wal.length) continue
        const there = join(folder, `cut-${i}`)
        mkdirSync(there)
        const filename = join(there, "log.db")
        writeFileSync(filename, database)
        // The disk may hold arbitrary bytes after the cut
        const rest = Buffer.alloc(i % 3 === 0 ? 0 : 5_000, i % 3 === 1 ? wal.subarray(0, 5_000) : 0)
        writeFileSync(`${filename}-wal`, Buffer.concat([wal.subarray(0, cut), rest]))
        yield* Effect.gen(function* () {
          const store = yield* SqliteEventStore.make({ filename })
          const found = yield* Stream.runCollect(store.readAll(EventStore.start))
          expect(found).toEqual(all.slice(0, found.length))
          const promised = Math.max(0, ...acknowledged.filter(({ bytes }) => bytes <= cut).map((one) => one.events))
          expect(found.length, `cut at ${cut}`).toBeGreaterThanOrEqual(promised)
          lengths.add(found.length)
          const stream = "one-0"
          const before = yield* store.lastRevision(stream)
          expect(before).toBe(found.findLast((event) => event.stream === stream)?.revision ?? "noStream")
          expect((yield* Stream.runCollect(store.readStream(stream))).length).toBe(found.filter((event) => event.stream === stream).length)
          const { revision } = yield* store.append(stream, before, events(1, 10))
          expect(yield* store.lastRevision(stream)).toBe(revision)
        }).pipe(Effect.scoped)
        rmSync(there, { recursive: true })
      }
      // Each acknowledgement was tested by a cut of its own; no later append hides it
      expect(lengths.size).toBeGreaterThanOrEqual(new Set(acknowledged.map(({ bytes }) => bytes)).size)
      expect(lengths.has(0) && lengths.has(all.length)).toBe(true)
    }).pipe(Effect.scoped, Effect.runPromise)
)
