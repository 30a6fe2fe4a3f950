/**
 * The contract of event stores, as tests that each implementation runs unchanged. So no test assumes an empty log, one process, dense
 * positions, or a log that shows an event the instant it was written: a test waits for what must show up, with ten seconds as a failsafe.
 */
import { EventStore } from "@millrace/event-sourcing"
import { Effect, type Layer, type Scope } from "effect"
import { declare, type Runner } from "./suites/Contract.ts"
import { appending } from "./suites/EventStoreAppending.ts"
import { content } from "./suites/EventStoreContent.ts"
import { contention } from "./suites/EventStoreContention.ts"
import type { Store } from "./suites/EventStoreFixtures.ts"
import { peers } from "./suites/EventStorePeers.ts"
import { reading } from "./suites/EventStoreReading.ts"
import { snapshots } from "./suites/EventStoreSnapshots.ts"
import { subscribing } from "./suites/EventStoreSubscribing.ts"

export type { Runner } from "./suites/Contract.ts"

/**
 * Declares the tests of one store. `makeLayer` is built anew for each. The log beneath may hold anything, but nobody else may write
 * streams of the category `suite`.
 */
export const eventStoreSuite = (name: string, makeLayer: () => Layer.Layer<EventStore.EventStore, unknown>, runner: Runner): void => {
  const run = (body: (store: Store) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
    Effect.runPromise(EventStore.EventStore.use(body).pipe(Effect.scoped, Effect.asVoid, Effect.provide(makeLayer())))
  declare(runner, `${name}: appending`, appending, run)
  declare(runner, `${name}: appending`, contention, run)
  declare(runner, `${name}: what is kept`, content, run)
  declare(runner, `${name}: reading`, reading, run)
  declare(runner, `${name}: a subscription`, subscribing, run)
  declare(runner, `${name}: a snapshot`, snapshots, run)
}

/** Declares the tests of two clients of one log, as two processes have them. `makePeers` opens them, anew for each test. */
export const eventStorePeersSuite = (
  name: string,
  makePeers: Effect.Effect<readonly [Store, Store], unknown, Scope.Scope>,
  runner: Runner
): void =>
  declare(runner, `${name}: two on one log`, peers, (body) =>
    Effect.runPromise(Effect.asVoid(Effect.scoped(Effect.flatMap(makePeers, ([a, b]) => body(a, b)))))
  )
