/** Several processes on one file, killed processes, and full disks. */
import { spawnSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { EventStore, type StreamName } from "@millrace/event-sourcing"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Effect, Fiber, Stream } from "effect"
import { expect, it } from "vitest"
import { command, start, startChild, told } from "./Processes.ts"
import { temporaryFolder } from "./TemporaryFolder.ts"

const everything = (filename: string) =>
  Effect.gen(function* () {
    const store = yield* SqliteEventStore.make({ filename })
    return yield* Stream.runCollect(store.readAll(EventStore.start))
  }).pipe(Effect.scoped)

const byPlace = (events: ReadonlyArray<EventStore.RecordedEvent>) =>
  new Map(events.map(({ stream, revision, id }) => [`${stream} ${revision}`, id]))

/** Checks that the revisions of every stream count from 0 without gaps. */
const expectWholeStreams = (events: ReadonlyArray<EventStore.RecordedEvent>) => {
  const next = new Map<string, number>()
  for (const { stream, revision } of events) {
    expect(revision).toBe(next.get(stream) ?? 0)
    next.set(stream, revision + 1)
  }
}

it("three processes append to the same streams at once; no event is lost, and a subscription here sees all events", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "log.db")
    // All processes create the file at about the same time
    const children = [startChild(filename, 3, 60), startChild(filename, 3, 60)]
    yield* Effect.promise(() => Promise.all(children.map((child) => child.printed("open", 1))))
    const store = yield* SqliteEventStore.make({ filename })
    let seen = 0
    const subscription = yield* Effect.forkScoped(
      store.subscribe(EventStore.start).pipe(
        Stream.flatMap(({ events }) => Stream.fromIterable(events)),
        Stream.tap(() => Effect.sync(() => seen++)),
        Stream.takeUntil(({ type }) => type === "Last"),
        Stream.runCollect
      )
    )
    const ours = yield* Effect.forEach(Array.from({ length: 60 }), (_, i) =>
      Effect.gen(function* () {
        const stream: StreamName.StreamName = `child-${i % 3}`
        const event = { id: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`, type: "Ours", data: "{}", metadata: "{}" }
        const { revision } = yield* Effect.retry(
          Effect.flatMap(store.lastRevision(stream), (last) => store.append(stream, last, [event])),
          { while: ({ _tag }) => _tag === "WrongRevision" }
        )
        return [`${stream} ${revision}`, event.id] as const
      })
    )
    yield* Effect.promise(() => Promise.all(children.map((child) => child.ended)))
    yield* store.append("child-last", "noStream", [
      { id: "00000000-0000-4000-8000-ffffffffffff", type: "Last", data: "{}", metadata: "{}" }
    ])
    const events = yield* Fiber.join(subscription).pipe(
      Effect.timeoutOrElse({ duration: "10 seconds", orElse: () => Effect.die(new Error(`Only ${seen} events were seen`)) })
    )
    const there = byPlace(events)
    const acknowledged = [...ours, ...children.flatMap(({ lines }) => [...told(lines, "ok")])]
    for (const [place, id] of acknowledged) expect(there.get(place), place).toBe(id)
    // Some appends fail by a conflict, none by another error
    expect(
      children.flatMap(({ lines }) => lines.filter((line) => line.startsWith("failed") && !line.startsWith("failed WrongRevision")))
    ).toEqual([])
    expect(events.length).toBe(acknowledged.length + 1)
    expectWholeStreams(events)
    expect(yield* everything(filename)).toEqual(events)
  }).pipe(Effect.scoped, Effect.runPromise))

it("every acknowledged event is there after each of ten kills with kill -9", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "log.db")
    const acknowledged = new Map<string, string>()
    for (let round = 0; round < 10; round++) {
      const running = startChild(filename, 16, 1_000_000)
      yield* Effect.promise(() => running.printed("ok", 40 + round * 23))
      running.child.kill("SIGKILL")
      yield* Effect.promise(() => running.ended)
      for (const [place, id] of told(running.lines, "ok")) {
        expect(acknowledged.has(place), place).toBe(false)
        acknowledged.set(place, id)
      }
      const events = yield* everything(filename)
      const there = byPlace(events)
      for (const [place, id] of acknowledged) expect(there.get(place), `${place} in round ${round}`).toBe(id)
      expectWholeStreams(events)
    }
  }).pipe(Effect.scoped, Effect.runPromise))

const skipped = (context: { skip: (note: string) => void }, why: string) => {
  console.warn(`SKIPPED: ${why}`)
  context.skip(why)
}

const reasons = (lines: ReadonlyArray<string>) =>
  new Set(lines.filter((line) => line.startsWith("failed")).map((line) => line.replace(/ \/\S+/g, "")))

it("a log that may not grow reports it, loses nothing, and accepts appends once it may grow", (context) => {
  if (spawnSync("prlimit", ["--version"]).status !== 0) return skipped(context, "needs prlimit, to bound the size of files")
  return Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "log.db")
    const running = start("prlimit", ["--fsize=400000:unlimited", ...command([filename, 4, 1_000_000])])
    yield* Effect.promise(() => running.printed("failed", 8))
    const before = told(running.lines, "ok").size
    expect(before).toBeGreaterThan(0)
    expect(reasons(running.lines)).toEqual(new Set(["failed StoreUnavailable The disk under failed (SQLITE_IOERR_WRITE: disk I/O error)"]))
    spawnSync("prlimit", ["--pid", String(running.child.pid), "--fsize=unlimited"])
    yield* Effect.promise(() => running.printed("ok", before + 40))
    running.send("stop")
    yield* Effect.promise(() => running.ended)
    expect(told(running.lines, "there")).toEqual(told(running.lines, "ok"))
    expectWholeStreams(yield* everything(filename))
  }).pipe(Effect.scoped, Effect.runPromise)
})

it("a full disk is reported, loses nothing, and accepts appends again once there is space", (context) => {
  const isolated = ["--user", "--map-root-user", "--mount"]
  if (spawnSync("unshare", [...isolated, "mount", "-t", "tmpfs", "none", "/mnt"]).status !== 0)
    return skipped(context, "needs unshare and tmpfs, to have a small disk")
  return Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "small disk")
    mkdirSync(folder)
    const ballast = join(folder, "ballast")
    const script = `mount -t tmpfs -o size=3m none "$1" && head -c 2000000 /dev/zero > "$2" && shift 2 && exec "$@"`
    const child = command([join(folder, "log.db"), 4, 1_000_000, ballast])
    const running = start("unshare", [...isolated, "sh", "-c", script, "sh", folder, ballast, ...child])
    yield* Effect.promise(() => running.printed("failed", 8))
    const before = told(running.lines, "ok").size
    expect(before).toBeGreaterThan(0)
    for (const reason of reasons(running.lines)) expect(reason).toMatch(/^failed StoreUnavailable (No space is left for|The disk under)/)
    expect([...reasons(running.lines)].some((reason) => reason.includes("No space is left"))).toBe(true)
    running.send("remove the ballast")
    yield* Effect.promise(() => running.printed("ok", before + 40))
    running.send("stop")
    yield* Effect.promise(() => running.ended)
    expect(told(running.lines, "there")).toEqual(told(running.lines, "ok"))
  }).pipe(Effect.scoped, Effect.runPromise)
})
