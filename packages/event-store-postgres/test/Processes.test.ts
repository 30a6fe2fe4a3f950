/** Several processes on one database, some of which are killed or stopped. */
import { fileURLToPath } from "node:url"
import { EventStore } from "@millrace/event-sourcing"
import { PostgresEventStore } from "@millrace/event-store-postgres"
import { Effect, Stream } from "effect"
import { expect, it } from "vitest"
import { start, told } from "../../event-store-sqlite/test/Processes.ts"
import { schema } from "./Postgres.ts"
import { idsOf, persist, readAll, until } from "./Writing.ts"

const script = fileURLToPath(new URL("Child.ts", import.meta.url))

it("processes that are killed or stopped at any moment block no other process, and lose no acknowledged event", () =>
  Effect.gen(function* () {
    const options = yield* schema
    const store = yield* PostgresEventStore.make(options)
    const child = (name: string) =>
      Effect.acquireRelease(
        Effect.sync(() => start(process.execPath, ["--conditions=@millrace/source", script, options.url, options.schema, name, "40"])),
        (running) => Effect.sync(() => running.child.kill("SIGKILL"))
      )
    const [killed, stopped, steady] = [yield* child("killed"), yield* child("stopped"), yield* child("steady")]
    const seen: Array<EventStore.RecordedEvent> = []
    yield* Effect.forkScoped(Stream.runForEach(store.subscribe(EventStore.start), ({ events }) => Effect.sync(() => seen.push(...events))))
    for (const one of [killed, stopped, steady]) yield* Effect.promise(() => one.printed("ok", 40))
    const ours: Array<string> = []
    // The server completes or drops the statement of a stopped process, and never waits for the process
    for (let round = 0; round < 10; round++) {
      stopped.child.kill("SIGSTOP")
      if (round === 5) killed.child.kill("SIGKILL")
      ours.push(...(yield* persist(store, "ours-1", ours.length, 5, () => expect.unreachable("held up"))))
      stopped.child.kill("SIGCONT")
      yield* Effect.sleep(5)
    }
    for (const one of [stopped, steady]) one.send("end")
    yield* Effect.promise(() => Promise.all([killed.ended, stopped.ended, steady.ended]))
    const all = yield* readAll(store, EventStore.start)
    expect(idsOf(all.filter(({ stream }) => stream === "ours-1"))).toEqual(ours)
    const there = new Map(all.map(({ stream, revision, id }) => [`${stream} ${revision}`, id]))
    for (const one of [killed, stopped, steady]) {
      const acknowledged = told(one.lines, "ok")
      expect(acknowledged.size).toBeGreaterThan(40)
      for (const [place, id] of acknowledged) expect(there.get(place), place).toBe(id)
    }
    const next = new Map<string, number>()
    for (const { stream, revision } of all) {
      expect(revision).toBe(next.get(stream) ?? 0)
      next.set(stream, revision + 1)
    }
    expect(all.map(({ position }) => Number(position))).toEqual(all.map((_, i) => i + 1))
    yield* until(
      "all are followed",
      Effect.sync(() => seen.length === all.length)
    )
    expect(seen).toEqual(all)
  }).pipe(Effect.scoped, Effect.runPromise))
