/** Several processes over the same stores: each with its own ledger, vault, registration and key ring. */
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Layer, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { test } from "vitest"
import { KeyRing } from "../../src/accounts/KeyRing.ts"
import { Payments } from "../../src/accounts/Payments.ts"
import { type Options, Registration } from "../../src/accounts/Registration.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { MASTER } from "../vault/Vaults.ts"

export interface Stores {
  readonly events: EventStore.EventStore["Service"]
  readonly states: StateStore.StateStore["Service"]
}

export const stores: Effect.Effect<Stores> = Effect.all({ events: MemoryEventStore.make, states: MemoryStateStore.make })

/** Opens a process. It ends with the scope. */
export const host = ({ events, states }: Stores, options: Options = {}) =>
  Effect.gen(function* () {
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, events),
      Layer.succeed(StateStore.StateStore, states),
      MasterKey.layer(MASTER)
    )
    const layer = Layer.mergeAll(Registration.layer(options), KeyRing.layer, Payments.layer).pipe(
      Layer.provideMerge(Layer.mergeAll(Ledger.layer(), Vault.layer)),
      Layer.provide(base)
    )
    const context = yield* Layer.build(Layer.fresh(layer))
    const services = Effect.all({ registration: Registration, keys: KeyRing, payments: Payments, ledger: Ledger, vault: Vault })
    return yield* Effect.provideContext(services, context)
  })

/** The whole log, as text. */
export const logText = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) => log.map((event) => JSON.stringify(event)).join("\n"))

/** Types of the events of one stream, or all. */
export const typesIn = ({ events }: Stores, stream?: `${string}-${string}`) =>
  Effect.map(Stream.runCollect(stream === undefined ? events.readAll(EventStore.start) : events.readStream(stream)), (log) =>
    log.map(({ type }) => type)
  )

export const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, () => Effect.runPromise(Effect.asVoid(body).pipe(Effect.scoped, Effect.provide(TestClock.layer()))))
