/** What an inbox received is in no file in clear at any time, and after its end nothing is left that could open what was sealed. */
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { FileBlobStore } from "@millrace/upstreams"
import { Context, Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { temporaryFolder } from "../../../event-store-sqlite/test/TemporaryFolder.ts"
import { BlobStore } from "../../src/vault/BlobStore.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { MASTER } from "../vault/Vaults.ts"
import { ALICE, DOMAIN, host, incoming, LARGE, type Shared, stored, testing } from "./InboxBench.ts"
import * as PlainReader from "./PlainReader.ts"

const LABEL = "canary-label-3f1c"
const SUBJECT = "canary-subject-77aa"
const TEXT = "canary-text-90be"
const SENDER = "canary-sender@example.org"

/** Everything on disk: both databases, their write-ahead files, and the blobs. */
const filesOf = (folder: string): ReadonlyArray<Buffer> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)))

const inFiles = (folder: string, texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.filter((text) => filesOf(folder).some((bytes) => bytes.includes(text)))

const storesIn = Effect.fnUntraced(function* (folder: string) {
  mkdirSync(join(folder, "blobs"))
  const stores = Layer.mergeAll(
    SqliteEventStore.layer({ filename: join(folder, "events.db") }),
    SqliteStateStore.layer({ filename: join(folder, "state.db") }),
    MasterKey.layer(MASTER)
  )
  const layer = FileBlobStore.layer(join(folder, "blobs")).pipe(Layer.provide(Vault.layer), Layer.provideMerge(stores))
  const context = yield* Layer.build(Layer.fresh(layer))
  return {
    events: Context.get(context, EventStore.EventStore),
    states: Context.get(context, StateStore.StateStore),
    blobs: Context.get(context, BlobStore)
  } satisfies Shared
})

/** Waits for real writes while the test clock stands still. */
const eventually = <E>(question: Effect.Effect<boolean, E>) =>
  Effect.gen(function* () {
    for (let turns = 0; !(yield* question); turns++) {
      if (turns > 20_000) throw new Error("It never came true")
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
  })

const scene = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const to = yield* storesIn(folder)
  const here = yield* host(to)
  const inbox = yield* here.create(ALICE, { label: LABEL, lifetime: 60 })
  for (const text of [TEXT, TEXT.padEnd(LARGE)])
    yield* here.receiver.receive(inbox.address, incoming(SUBJECT, { raw: PlainReader.message(SUBJECT, text), sender: SENDER }))
  const state = yield* here.inboxes.find(ALICE, inbox.inboxId)
  const rows = yield* to.states.list("vaultKeys")
  const { wrapped } = JSON.parse(Buffer.from(rows.find(({ key }) => key === `inbox:${inbox.inboxId}`)?.value ?? []).toString())
  const [local = ""] = inbox.address.split("@")
  return { folder, to, here, inbox, wrapped: String(wrapped), sealed: state.sealedAddress, clear: [LABEL, SUBJECT, TEXT, SENDER, local] }
})

describe("on disk", () => {
  testing(
    "the key and the files of an inbox are gone after its deletion",
    Effect.gen(function* () {
      const { clear, folder, here, inbox, sealed, to, wrapped } = yield* scene
      expect(inFiles(folder, [...clear, wrapped, sealed, inbox.inboxId])).toEqual([wrapped, sealed, inbox.inboxId])
      expect(yield* stored(to)).toHaveLength(2)
      expect(yield* Stream.runCollect(to.blobs.list)).toHaveLength(1)
      yield* here.inboxes.remove(inbox)
      expect(inFiles(folder, [...clear, wrapped, sealed, inbox.inboxId])).toEqual([sealed, inbox.inboxId])
      expect(yield* stored(to)).toEqual([])
      expect(inFiles(folder, [DOMAIN])).toEqual([])
    })
  )

  testing(
    "they are gone after its expiry",
    Effect.gen(function* () {
      const { clear, folder, sealed, to, wrapped } = yield* scene
      expect(inFiles(folder, [...clear, wrapped])).toEqual([wrapped])
      yield* TestClock.adjust("61 seconds")
      yield* eventually(Effect.map(to.states.list("inboxFiles"), ({ length }) => length === 0))
      expect(inFiles(folder, [...clear, wrapped, sealed])).toEqual([sealed])
      expect(yield* stored(to)).toEqual([])
    })
  )
})
