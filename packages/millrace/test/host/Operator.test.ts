/** The operator view at a host of the library: only with a key, and also when streams cannot be read. */
import { randomUUID } from "node:crypto"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Effect, Option, Schema, Stream } from "effect"
import { afterEach, expect, test } from "vitest"
import { newStore } from "../../../../test/system/Server.ts"
import { createMillrace, type Host } from "../../src/index.ts"

const Body = Schema.Struct({
  data: Schema.optionalKey(Schema.Json),
  paths: Schema.optionalKey(Schema.Json),
  "x-operator": Schema.optionalKey(Schema.String)
})

const KEY = "k".repeat(32)

let hosts: Array<Host> = []
afterEach(async () => {
  await Promise.all(hosts.map((host) => host.close()))
  hosts = []
})

const open = async (options: { readonly store?: string; readonly operatorKey?: string }) => {
  const host = await createMillrace({ store: "memory:", standard: ["bin"], log: {}, ...options })
  hosts.push(host)
  const read = async (path: string, key = KEY) => {
    const answer = await host.fetch(new Request(`http://localhost/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } }))
    const body = Schema.decodeUnknownSync(Body)(await answer.json())
    return { status: answer.status, body }
  }
  return { host, read }
}

test("is there with a key and for the key alone, and not without one", async () => {
  const [on, off] = await Promise.all([open({ operatorKey: KEY }), open({})])
  expect((await on.read("/operator")).status).toBe(200)
  expect((await on.read("/operator", `${KEY}k`)).status).toBe(401)
  expect((await off.read("/operator")).status).toBe(404)
  expect((await on.read("/openapi.json")).body["x-operator"]).toBe("/api/v1/operator")
  expect((await off.read("/openapi.json")).body).not.toHaveProperty("x-operator")
  // None of it is described to customers
  expect((await on.read("/openapi.json")).body.paths).toEqual((await off.read("/openapi.json")).body.paths)
})

/** Appends an event that no release of this kind knows, as a newer release might. */
const appendUnknown = (filename: string, accountId: string) =>
  Effect.gen(function* () {
    const store = yield* EventStore.EventStore
    const stream = StreamName.make("account", accountId)
    const last = Option.getOrThrow(yield* Stream.runHead(store.readStream(stream, { direction: "backwards", limit: 1 })))
    const content = { id: randomUUID(), type: "FromTomorrow", data: "{}" }
    const event = HashChain.seal(HashChain.hashOf(last), stream, last.revision + 1, content, HashChain.atOf(last), "{}")
    yield* store.append(stream, last.revision, [event])
  }).pipe(Effect.provide(SqliteEventStore.layer({ filename })), Effect.runPromise)

test("lists an account that cannot be read among the others, and names its stream", async () => {
  const { file, url: store } = newStore()
  const { host, read } = await open({ store, operatorKey: KEY })
  const [sound, unreadable] = [await host.accounts.open({ id: "sound" }), await host.accounts.open({ id: "unreadable" })]
  await appendUnknown(file, unreadable)
  const { body } = await read("/operator/accounts")
  expect(body.data).toMatchObject({
    accounts: [
      { account_id: unreadable, status: "unreadable", available: null, reserved: null, debt: null },
      { account_id: sound, status: "opened", available: 0 }
    ]
  })
  expect((await read("/operator")).body.data).toMatchObject({ ready: { refused: [`account-${unreadable}`] } })
})
