/**
 * A process that writes to a log, for tests that kill or stop it. It appends to many streams of its own at once until it reads a line on
 * its input, and prints a line for each answered append.
 *
 * `node Child.ts <url> <schema> <name> <streams>`
 */
import { writeSync } from "node:fs"
import { createInterface } from "node:readline"
import type { EventStore, StreamName } from "@millrace/event-sourcing"
import { PostgresEventStore } from "@millrace/event-store-postgres"
import { Effect } from "effect"
import { persist } from "./Writing.ts"

const [url = "", schema = "", name = "", streams = "1"] = process.argv.slice(2)

let isOver = false
const input = createInterface(process.stdin)
input.on("line", () => {
  isOver = true
})

const write = (store: EventStore.EventStore["Service"], stream: StreamName.StreamName) =>
  Effect.gen(function* () {
    for (let revision = 0; !isOver; revision++) {
      const [id] = yield* persist(store, stream, revision, 1)
      // Not console.log: the line must be written before anything else happens
      writeSync(1, `ok ${stream} ${revision} ${id}\n`)
    }
  })

await Effect.gen(function* () {
  const store = yield* PostgresEventStore.make({ url, schema })
  writeSync(1, "open\n")
  const names = Array.from({ length: Number(streams) }, (_, i): StreamName.StreamName => `${name}-${i}`)
  yield* Effect.forEach(names, (stream) => write(store, stream), { concurrency: "unbounded", discard: true })
}).pipe(Effect.scoped, Effect.runPromise)

input.close()
