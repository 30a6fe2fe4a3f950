/** The behaviour of a node as the client library sees it. A real node (23.10.6) passed these checks; the stand-in must pass them. */
import { randomUUID } from "node:crypto"
import {
  BACKWARDS,
  END,
  EventStoreDBClient,
  eventTypeFilter,
  FORWARDS,
  jsonEvent,
  NO_STREAM,
  START,
  StreamDeletedError,
  StreamNotFoundError,
  WrongExpectedVersionError
} from "@eventstore/db-client"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { address } from "./Node.ts"

const event = (n: number, id = randomUUID()) => jsonEvent({ id, type: "credited", data: { n }, metadata: { $correlationId: "c" } })

const collect = async <A>(read: AsyncIterable<A>): Promise<Array<A>> => {
  const all: Array<A> = []
  for await (const one of read) all.push(one)
  return all
}

const numberOf = (data: unknown) => (typeof data === "object" && data !== null && "n" in data ? data.n : undefined)

const numbers = (read: AsyncIterable<{ readonly event?: { readonly data: unknown } }>) =>
  Effect.map(
    Effect.promise(() => collect(read)),
    (all) => all.map((one) => numberOf(one.event?.data))
  )

/** A test with its own client and a unique name for its streams. */
const check = (title: string, body: (client: EventStoreDBClient, unique: string, url: string) => Promise<void>) =>
  it(title, () =>
    Effect.gen(function* () {
      const url = (yield* address).replace(/^kurrentdb/, "esdb")
      const client = yield* Effect.acquireRelease(
        Effect.sync(() => EventStoreDBClient.connectionString(url)),
        (opened) => Effect.promise(() => opened.dispose())
      )
      yield* Effect.promise(() => body(client, randomUUID(), url))
    }).pipe(Effect.scoped, Effect.runPromise)
  )

const confirmed = (subscription: { readonly once: (event: "confirmation", then: () => void) => unknown }) =>
  new Promise<void>((resolve) => subscription.once("confirmation", resolve))

check(
  "a batch append begins a stream or continues it at its last revision, and is refused at any other revision",
  async (client, unique) => {
    const stream = `checks-${unique}`
    const first = await client.appendToStream(stream, [event(1), event(2)], { expectedRevision: NO_STREAM })
    expect([first.success, first.nextExpectedRevision]).toEqual([true, 1n])
    expect(first.position?.commit).toBeGreaterThan(0n)
    expect((await client.appendToStream(stream, event(3), { expectedRevision: 1n })).nextExpectedRevision).toBe(2n)
    const wrong = await client.appendToStream(stream, event(9), { expectedRevision: 0n }).catch((error: unknown) => error)
    expect(wrong).toBeInstanceOf(WrongExpectedVersionError)
    expect(wrong).toMatchObject({ actualVersion: 2n, expectedVersion: 0n })
    await expect(client.appendToStream(stream, event(9), { expectedRevision: NO_STREAM })).rejects.toThrow(WrongExpectedVersionError)
  }
)

check("a unary append, which the library makes for a call with credentials, does the same", async (client, unique) => {
  const stream = `checks-${unique}`
  const credentials = { username: "admin", password: "changeit" }
  const first = await client.appendToStream(stream, event(1), { expectedRevision: NO_STREAM, credentials })
  expect(first.nextExpectedRevision).toBe(0n)
  const wrong = await client.appendToStream(stream, event(1), { expectedRevision: 5n, credentials }).catch((error: unknown) => error)
  expect(wrong).toBeInstanceOf(WrongExpectedVersionError)
  expect(wrong).toMatchObject({ actualVersion: 0n })
})

check("an append sent again returns its first result, because the node compares ids only", async (client, unique) => {
  const stream = `checks-${unique}`
  const id = randomUUID()
  const first = await client.appendToStream(stream, event(7, id), { expectedRevision: NO_STREAM })
  const again = await client.appendToStream(stream, event(7, id), { expectedRevision: NO_STREAM })
  expect(again.position).toEqual(first.position)
  const other = await client.appendToStream(stream, event(8, id), { expectedRevision: NO_STREAM })
  expect(other.success).toBe(true)
  expect((await client.appendToStream(stream, event(7, id))).nextExpectedRevision).toBe(0n)
  expect(await numbers(client.readStream(stream)).pipe(Effect.runPromise)).toEqual([7])
})

check("an append without events checks the revision", async (client, unique) => {
  const stream = `checks-${unique}`
  await client.appendToStream(stream, [event(1), event(2)], { expectedRevision: NO_STREAM })
  expect((await client.appendToStream(stream, [], { expectedRevision: 1n })).success).toBe(true)
  await expect(client.appendToStream(stream, [], { expectedRevision: 0n })).rejects.toThrow(WrongExpectedVersionError)
})

check("an event id that is not a UUID is refused", async (client, unique) => {
  await expect(client.appendToStream(`checks-${unique}`, event(1, "01jq8x2w-0000-7000-8000-00000000zzzz"))).rejects.toThrow()
  await expect(collect(client.readStream(`checks-${unique}`))).rejects.toThrow(StreamNotFoundError)
})

check("a stream is read forwards and backwards, from any revision, up to a count", async (client, unique) => {
  const stream = `checks-${unique}`
  const before = Date.now()
  await client.appendToStream(stream, [event(1), event(2), event(3)], { expectedRevision: NO_STREAM })
  const all = await collect(client.readStream(stream, { direction: FORWARDS, fromRevision: START }))
  expect(all.map((one) => one.event?.revision)).toEqual([0n, 1n, 2n])
  expect(all[0]?.event?.metadata).toEqual({ $correlationId: "c" })
  expect(Math.abs(Number(all[0]?.event?.created) - before)).toBeLessThan(60_000)
  const back = numbers(client.readStream(stream, { direction: BACKWARDS, fromRevision: END, maxCount: 1 }))
  expect(await Effect.runPromise(back)).toEqual([3])
  expect(await Effect.runPromise(numbers(client.readStream(stream, { fromRevision: 1n })))).toEqual([2, 3])
  await expect(collect(client.readStream(`${stream}-missing`))).rejects.toThrow(StreamNotFoundError)
})

check("the log is read from a position: inclusive forwards, exclusive backwards", async (client, unique) => {
  const stream = `checks-${unique}`
  const appended = await client.appendToStream(stream, [event(1), event(2), event(3)], { expectedRevision: NO_STREAM })
  const [first, , third] = await collect(client.readStream(stream))
  const position = first?.event?.position
  if (position === undefined) throw new Error("It has no position")
  expect(appended.position?.commit).toBe(third?.event?.position?.commit)
  const forwards = await collect(client.readAll({ fromPosition: position, maxCount: 3 }))
  expect(forwards.map((one) => one.event?.id)).toContain(first?.event?.id)
  const backwards = await collect(client.readAll({ fromPosition: position, direction: BACKWARDS, maxCount: 1 }))
  expect(backwards.map((one) => one.event?.id)).not.toContain(first?.event?.id)
  expect(await collect(client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 2 }))).toHaveLength(2)
})

check("a subscription to a stream catches up, reports it, and delivers later events", async (client, unique) => {
  const stream = `checks-${unique}`
  await client.appendToStream(stream, [event(1), event(2)], { expectedRevision: NO_STREAM })
  const seen: Array<unknown> = []
  const subscription = client.subscribeToStream(stream, { fromRevision: START })
  // A node promises no order here: an event appended right after the confirmation may arrive before `caughtUp`
  const caughtUp = new Promise<void>((resolve) => subscription.once("caughtUp", resolve))
  const three = new Promise<void>((resolve) => {
    subscription.on("data", ({ event }) => {
      if (seen.push(event?.data) === 3) resolve()
    })
  })
  await confirmed(subscription)
  await client.appendToStream(stream, event(3), { expectedRevision: 1n })
  await Promise.all([three, caughtUp])
  expect(seen).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
  await subscription.unsubscribe()
})

check("a subscription to the log filters events, and its checkpoints show how far the node has read", async (client, unique) => {
  const type = `live-${unique}`
  const end = await collect(client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 }))
  const seen: Array<string> = []
  let checkpoints = 0
  const filter = eventTypeFilter({
    prefixes: [type],
    checkpointInterval: 1,
    maxSearchWindow: 2,
    checkpointReached: async () => {
      checkpoints++
    }
  })
  const subscription = client.subscribeToAll({ fromPosition: end[0]?.event?.position ?? START, filter })
  const two = new Promise<void>((resolve) => {
    subscription.on("data", ({ event }) => {
      if (event !== undefined && seen.push(event.type) === 2) resolve()
    })
  })
  await confirmed(subscription)
  for (let i = 0; i < 5; i++)
    await client.appendToStream(`checks-${unique}${i}`, jsonEvent({ type: i % 2 === 1 ? type : "other", data: {} }))
  await two
  expect(seen).toEqual([type, type])
  expect(checkpoints).toBeGreaterThan(0)
  await subscription.unsubscribe()
})

check("the metadata of a stream hides its oldest events", async (client, unique) => {
  const stream = `checks-${unique}`
  await client.appendToStream(stream, [event(1), event(2), event(3), event(4)], { expectedRevision: NO_STREAM })
  await client.setStreamMetadata(stream, { maxCount: 2 })
  expect((await client.getStreamMetadata(stream)).metadata?.maxCount).toBe(2)
  expect(await Effect.runPromise(numbers(client.readStream(stream)))).toEqual([3, 4])
  await client.setStreamMetadata(stream, { truncateBefore: 3 })
  expect(await Effect.runPromise(numbers(client.readStream(stream)))).toEqual([4])
})

check("a deleted stream can be written again, and a stream with a tombstone cannot", async (client, unique) => {
  const [deleted, buried] = [`checks-${unique}`, `checks-${unique}-buried`]
  await client.appendToStream(deleted, event(1), { expectedRevision: NO_STREAM })
  await expect(client.deleteStream(deleted, { expectedRevision: 77n })).rejects.toMatchObject({ actualVersion: 0n })
  await client.deleteStream(deleted)
  await expect(collect(client.readStream(deleted))).rejects.toThrow(StreamNotFoundError)
  const again = await client.appendToStream(deleted, event(2), { expectedRevision: NO_STREAM })
  expect(again.nextExpectedRevision).toBe(1n)
  // The first reads after a revival may miss the stream
  const there = () => collect(client.readStream(deleted)).catch(() => [])
  await expect.poll(async () => (await there()).map((one) => numberOf(one.event?.data)), { timeout: 10_000 }).toEqual([2])
  await client.appendToStream(buried, event(1), { expectedRevision: NO_STREAM })
  await client.tombstoneStream(buried)
  await expect(client.appendToStream(buried, event(1))).rejects.toThrow(StreamDeletedError)
  await expect(collect(client.readStream(buried))).rejects.toThrow(StreamDeletedError)
})

check("a connection string with several addresses lists seeds, which name the leader", async (_, unique, url) => {
  const [scheme, rest = ""] = url.split("://")
  const [host = "", options = ""] = rest.split("?")
  const client = EventStoreDBClient.connectionString(`${scheme}://${host},${host.split("@").at(-1)}?${options}`)
  expect((await client.appendToStream(`checks-${unique}`, event(1))).success).toBe(true)
  await client.dispose()
})
