/** Hosts with inboxes over shared stores, under a test clock. */
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Logger, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { test } from "vitest"
import { newReservationId } from "../../src/Ids.ts"
import * as Inbox from "../../src/inboxes/Inbox.ts"
import { Inboxes } from "../../src/inboxes/Inboxes.ts"
import type { InboxUpkeepOptions } from "../../src/inboxes/InboxUpkeep.ts"
import { InboxUpkeep } from "../../src/inboxes/InboxUpkeep.ts"
import type { MailReader } from "../../src/inboxes/MailReader.ts"
import { type Incoming, MailReceiver } from "../../src/inboxes/MailReceiver.ts"
import * as Millrace from "../../src/Millrace.ts"
import { BlobStore } from "../../src/vault/BlobStore.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import * as MemoryBlobStore from "../../src/vault/MemoryBlobStore.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { START } from "../billing/Bench.ts"
import { MASTER } from "../vault/Vaults.ts"
import * as PlainReader from "./PlainReader.ts"

export const DOMAIN = "mail.example.com"
export const ALICE = "acc_01ARZ3NDEKTSV4RRFFQ69G5FAV"
export const BOB = "acc_01ARZ3NDEKTSV4RRFFQ69G5FAW"

export interface Shared {
  readonly events: EventStore.EventStore["Service"]
  readonly states: StateStore.StateStore["Service"]
  readonly blobs: BlobStore["Service"]
}

const storesOf = ({ events, states }: Pick<Shared, "events" | "states">) =>
  Layer.mergeAll(
    Layer.succeed(EventStore.EventStore, events),
    Layer.succeed(StateStore.StateStore, states),
    Layer.orDie(MasterKey.layer(MASTER))
  )

/** Stores in memory. */
export const shared = Effect.gen(function* () {
  const stores = { events: yield* MemoryEventStore.make, states: yield* MemoryStateStore.make }
  const layer = MemoryBlobStore.layer.pipe(Layer.provide(Vault.layer), Layer.provide(storesOf(stores)))
  const blobs = yield* Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, BlobStore))
  return { ...stores, blobs } satisfies Shared
})

export interface HostOptions {
  readonly reader?: Layer.Layer<MailReader>
  readonly upkeep?: InboxUpkeepOptions
}

/** A process on the stores. It stops with the scope. */
export const host = Effect.fnUntraced(function* (to: Shared, { reader = PlainReader.layer, upkeep }: HostOptions = {}) {
  const layer = Millrace.inboxes({ domain: DOMAIN, ...(upkeep === undefined ? {} : { upkeep }) }).pipe(
    Layer.provide(reader),
    Layer.provide(Layer.succeed(BlobStore, to.blobs)),
    Layer.provideMerge(Vault.layer),
    Layer.provide(storesOf(to))
  )
  const context = yield* Layer.build(Layer.fresh(layer))
  const inboxes = Context.get(context, Inboxes)
  return {
    inboxes,
    receiver: Context.get(context, MailReceiver),
    vault: Context.get(context, Vault),
    upkeep: Effect.flatMap(Effect.provideContext(Effect.serviceOption(InboxUpkeep), context), (upkeep) => Effect.fromOption(upkeep)),
    /** Creates an inbox. */
    create: Effect.fnUntraced(function* (accountId: string = ALICE, options: { readonly lifetime?: number; readonly label?: string } = {}) {
      const owner = { accountId, inboxId: Inbox.idOf(yield* newReservationId) }
      yield* inboxes.create({ ...owner, lifetime: options.lifetime ?? 3_600, label: options.label ?? null })
      const { address } = yield* inboxes.show(owner)
      return { ...owner, address }
    })
  }
})
export type Host = Effect.Success<ReturnType<typeof host>>

let queued = 0
export const incoming = (subject: string, more: Partial<Incoming> = {}): Incoming => ({
  queueId: `q${++queued}`,
  sender: "grace@example.org",
  remoteAddress: "192.0.2.1",
  raw: PlainReader.message(subject),
  authentication: { spf: "pass", dkim: "fail", dmarc: null, arc: null },
  ...more
})

export const ALL = { page: 1, perPage: 100 }

/** The subjects of an inbox, the newest first. */
export const subjects = ({ inboxes }: Host, owner: { readonly accountId: string; readonly inboxId: string }) =>
  Effect.map(inboxes.list(owner, ALL), ({ messages }) => messages.map(({ summary }) => summary.subject))

/** The types of all events of inboxes. */
export const story = ({ events }: Shared) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (all) => all.map(({ type }) => type))

/** Bytes of a message that is no small one. */
export const LARGE = 40_000

/** The stored messages, small and large. */
export const stored = Effect.fnUntraced(function* ({ blobs, states }: Shared) {
  const small = yield* states.list("inboxMail")
  const large = yield* Stream.runCollect(blobs.list)
  return [...small.map(({ key }) => key.slice(key.indexOf("/") + 1)), ...large.map(({ id }) => id)]
})

export const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, () =>
    Effect.runPromise(
      Effect.andThen(TestClock.setTime(START), Effect.asVoid(Effect.scoped(body))).pipe(
        Effect.provide(TestClock.layer()),
        Effect.provide(Logger.layer([]))
      )
    )
  )
