/**
 * A process that writes to a log, for tests that kill it, fill its disk or let it compete. It appends to many streams of its own at once,
 * and prints a line for each answered append. After a line on its input it stops, and prints what a fresh reader finds.
 *
 * `node Child.ts <file> <streams> <appends for each stream> [ballast: a file to remove at the first line of input]`
 */
import { rmSync, writeSync } from "node:fs"
import { createInterface } from "node:readline"
import { EventIds, EventStore, type StreamName } from "@millrace/event-sourcing"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Effect, Exit, Option, Stream } from "effect"

const [filename = "", streams = "1", appends = "1", ballast] = process.argv.slice(2)

// Not console.log: the line must be written before anything else happens
const print = (...parts: ReadonlyArray<string | number>) => writeSync(1, `${parts.join(" ")}\n`)

let isStopped = false
let lines = 0
const input = createInterface(process.stdin)
input.on("line", () => {
  if (ballast !== undefined && lines++ === 0) rmSync(ballast)
  else isStopped = true
})

const writer = (store: EventStore.EventStore["Service"], stream: StreamName.StreamName) =>
  Effect.gen(function* () {
    const newId = yield* EventIds
    for (let i = 0; i < Number(appends) && !isStopped; i++) {
      const event = { id: newId(0), type: "Happened", data: `{"text":"${"x".repeat(200)}"}`, metadata: "{}" }
      const exit = yield* Effect.exit(Effect.flatMap(store.lastRevision(stream), (last) => store.append(stream, last, [event])))
      if (Exit.isSuccess(exit)) print("ok", stream, exit.value.revision, event.id)
      else {
        const error = Option.getOrThrow(Exit.findErrorOption(exit))
        print("failed", error._tag, "reason" in error ? error.reason : "")
        yield* Effect.sleep(10)
      }
    }
  })

await Effect.gen(function* () {
  const store = yield* SqliteEventStore.make({ filename })
  print("open")
  const names = Array.from({ length: Number(streams) }, (_, i): StreamName.StreamName => `child-${i}`)
  yield* Effect.forEach(names, (stream) => writer(store, stream), { concurrency: "unbounded", discard: true })
}).pipe(Effect.scoped, Effect.runPromise)

await Effect.gen(function* () {
  const store = yield* SqliteEventStore.make({ filename, readOnly: true })
  yield* Stream.runForEach(store.readAll(EventStore.start), ({ stream, revision, id }) =>
    Effect.sync(() => print("there", stream, revision, id))
  )
}).pipe(Effect.scoped, Effect.runPromise)

input.close()
