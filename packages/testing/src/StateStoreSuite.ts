/**
 * The contract of state stores, as tests that each implementation runs unchanged. So no test assumes an empty store, one process, or
 * versions that count by one.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Effect, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { declare, type Runner } from "./suites/Contract.ts"
import { entries } from "./suites/StateStoreEntries.ts"
import { expiring } from "./suites/StateStoreExpiring.ts"
import type { Store } from "./suites/StateStoreFixtures.ts"
import { peers } from "./suites/StateStorePeers.ts"
import { writing } from "./suites/StateStoreWriting.ts"

/**
 * Declares the tests of one store. `makeLayer` is built anew for each. The store beneath may hold anything, but nobody else may write to
 * spaces that begin with `suite`.
 */
export const stateStoreSuite = (name: string, makeLayer: () => Layer.Layer<StateStore.StateStore, unknown>, runner: Runner): void => {
  const on =
    (layer: () => Layer.Layer<StateStore.StateStore, unknown>) => (body: (store: Store) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
      Effect.runPromise(StateStore.StateStore.use(body).pipe(Effect.scoped, Effect.asVoid, Effect.provide(layer())))
  declare(runner, `${name}: entries`, entries, on(makeLayer))
  declare(runner, `${name}: a write`, writing, on(makeLayer))
  declare(
    runner,
    `${name}: an expiry`,
    expiring,
    on(() => Layer.provideMerge(makeLayer(), TestClock.layer()))
  )
}

/** Declares the tests of two clients of one store, as two processes have them. `makePeers` opens them, anew for each test. */
export const stateStorePeersSuite = (
  name: string,
  makePeers: Effect.Effect<readonly [Store, Store], unknown, Scope.Scope>,
  runner: Runner
): void =>
  declare(runner, `${name}: two on one store`, peers, (body: (a: Store, b: Store) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
    Effect.runPromise(Effect.asVoid(Effect.scoped(Effect.flatMap(makePeers, ([a, b]) => body(a, b)))))
  )
