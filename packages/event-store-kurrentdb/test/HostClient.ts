/**
 * A process of a host that uses the store and, beside it, a client of its own, which it disposes under load, over and over. That client
 * then rejects promises that nobody holds; the store must not notice. Prints what was acknowledged to the store, what is there, and every
 * rejection that does not come from the host's own appends.
 */
import { randomUUID } from "node:crypto"
import { EventStoreDBClient, jsonEvent } from "@eventstore/db-client"
import { Effect, Fiber, Stream } from "effect"
import { freshEvents, freshStream, ids, openOn } from "./Store.ts"

const connection = process.argv[2] ?? ""
const WRITERS = 8
const ROUNDS = 6
/** Appends of the host under way when its client is disposed. */
const FLOOD = 50

const ofOurs: Array<string> = []
let ofTheHost = 0
const noted = (error: unknown) => {
  const stack = error instanceof Error ? `${error.stack}` : String(error)
  if (stack.includes("appendToStream/batchAppend")) ofTheHost++
  else ofOurs.push(stack)
}
process.on("unhandledRejection", noted)
process.on("uncaughtException", noted)

const hostAppend = (client: EventStoreDBClient) => {
  client.appendToStream(`host-${randomUUID()}`, jsonEvent({ type: "t", data: {} })).catch(() => {})
}

const main = Effect.gen(function* () {
  const { store } = yield* openOn(connection)
  const before = yield* store.head
  const written: Array<string> = []
  let isOver = false
  const write = Effect.gen(function* () {
    const stream = freshStream()
    for (let revision = -1; !isOver; revision++) {
      const batch = freshEvents(1)
      yield* store.append(stream, revision < 0 ? "noStream" : revision, batch)
      written.push(...ids(batch))
    }
  })
  const writers = yield* Effect.replicateEffect(Effect.forkScoped(write), WRITERS)
  for (let round = 0; round < ROUNDS; round++) {
    const client = EventStoreDBClient.connectionString(connection.replace(/^kurrentdb/, "esdb"))
    yield* Effect.promise(() => client.appendToStream(`host-${randomUUID()}`, jsonEvent({ type: "t", data: {} })))
    for (let i = 0; i < FLOOD; i++) hostAppend(client)
    yield* Effect.promise(() => client.dispose())
    yield* Effect.sleep(20)
  }
  isOver = true
  for (const writer of writers) yield* Fiber.join(writer)
  const log = yield* Stream.runCollect(Stream.filter(store.readAll(before), ({ stream }) => stream.startsWith("facts-")))
  console.log(JSON.stringify({ written, log: ids(log), ofTheHost, ofOurs }))
})

await Effect.runPromise(Effect.scoped(main))
// The host's own appends may wait for ever
process.exit(0)
