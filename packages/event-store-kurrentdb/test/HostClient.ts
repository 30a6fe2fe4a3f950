/**
 * A host process that uses the store beside two clients of its own, and repeatedly disposes one of these under load. That breaks the other
 * one and causes unhandled rejections; the store must not be affected. Prints the ids that the store acknowledged, the ids in the log, the
 * ids that a follower saw, how many of the host's own appends were rejected, and every other error.
 */
import { randomUUID } from "node:crypto"
import { EventStoreDBClient, jsonEvent } from "@eventstore/db-client"
import { Effect, Fiber, Stream } from "effect"
import { freshEvents, freshStream, ids, openOn, readIds } from "./Store.ts"

const connection = process.argv[2] ?? ""
const WRITERS = 8
/** The least appends of each writer, however slow the machine is. */
const LEAST = 20
const ROUNDS = 6
/** Appends that each of the host's clients has under way when one client is disposed. */
const FLOOD = 50

const ofOurs: Array<string> = []
const noted = (error: unknown) => {
  const stack = error instanceof Error ? `${error.stack}` : String(error)
  if (!stack.includes("appendToStream/batchAppend")) ofOurs.push(stack)
}
process.on("unhandledRejection", noted)
process.on("uncaughtException", noted)

const open = () => EventStoreDBClient.connectionString(connection.replace(/^kurrentdb/, "esdb"))
const hostAppend = (client: EventStoreDBClient) => client.appendToStream(`host-${randomUUID()}`, jsonEvent({ type: "t", data: {} }))

const main = Effect.gen(function* () {
  const { store } = yield* openOn(connection)
  const before = yield* store.head
  const written: Array<string> = []
  const seen: Array<string> = []
  // Others may write to the same node
  const streams = new Set<string>()
  const isMine = ({ stream }: { readonly stream: string }) => streams.has(stream)
  yield* Effect.forkScoped(
    Stream.runForEach(store.subscribe(before), ({ events }) => Effect.sync(() => seen.push(...ids(events.filter(isMine)))))
  )
  let isOver = false
  const write = Effect.gen(function* () {
    const stream = freshStream()
    streams.add(stream)
    const own: Array<string> = []
    for (let revision = -1; !isOver || own.length < LEAST; revision++) {
      const batch = freshEvents(1)
      yield* store.append(stream, revision < 0 ? "noStream" : revision, batch)
      own.push(...ids(batch))
      if (revision % 20 === 0 && (yield* readIds(store, stream)).join() !== own.join()) ofOurs.push(`${stream} is not what was written`)
    }
    written.push(...own)
  })
  const writers = yield* Effect.replicateEffect(Effect.forkScoped(write), WRITERS)
  const bystander = open()
  let rejected = 0
  yield* Effect.promise(() => hostAppend(bystander))
  for (let round = 0; round < ROUNDS; round++) {
    const client = open()
    yield* Effect.promise(() => hostAppend(client))
    for (let i = 0; i < FLOOD; i++) {
      hostAppend(client).catch(() => {})
      hostAppend(bystander).catch(() => rejected++)
    }
    yield* Effect.promise(() => client.dispose())
    yield* Effect.sleep(20)
  }
  isOver = true
  for (const writer of writers) yield* Fiber.join(writer)
  const log = yield* Stream.runCollect(Stream.filter(store.readAll(before), isMine))
  while (seen.length < log.length) yield* Effect.sleep(5)
  return JSON.stringify({ written, log: ids(log), seen, rejected, ofOurs })
})

const report = await Effect.runPromise(Effect.scoped(main))
// The host's own appends may wait for ever
process.stdout.write(report, () => process.exit(0))
