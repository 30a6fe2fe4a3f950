/** The line that tells how far the reading of a log is. */
import { EventStore, MemoryEventStore } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import * as Progress from "../src/Progress.ts"

/** A terminal that keeps what is written to it. */
const fake = (columns = 120) => {
  const written: Array<string> = []
  const terminal: Progress.Terminal = { isTTY: true, columns, write: (text) => written.push(text) }
  return { terminal, written }
}

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
    const failing = Progress.during("Copying")(Effect.fail("no")).pipe(Effect.provideService(Progress.Shown, terminal), Effect.flip)
    expect(await Effect.runPromise(failing)).toBe("no")
    expect(written).toEqual(["\r\u001b[KCopying ...", "\r\u001b[K"])
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
