/**
 * The contract of state stores, as tests that each implementation runs unchanged. So no test assumes an empty store, one process, or
 * versions that count by one.
 */
import { StateStore } from "@millrace/event-sourcing"
import { type Effect, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { declare, type Runner } from "./suites/Contract.ts"
import { entries } from "./suites/StateStoreEntries.ts"
import { expiring } from "./suites/StateStoreExpiring.ts"
import type { Store } from "./suites/StateStoreFixtures.ts"
import { peers, writing } from "./suites/StateStoreWriting.ts"

/**
 * Declares the tests of one store. `makeLayer` is built anew for each. The store beneath may hold anything, but no other process may write
 * to spaces that begin with `suite`.
 */
export const stateStoreSuite = (name: string, makeLayer: () => Layer.Layer<StateStore.StateStore, unknown>, runner: Runner): void => {
  const store = StateStore.StateStore
  declare(runner, `${name}: entries`, entries, store, makeLayer)
  declare(runner, `${name}: a write`, writing, store, makeLayer)
  declare(runner, `${name}: an expiry`, expiring, store, () => Layer.provideMerge(makeLayer(), TestClock.layer()))
}

/** Declares the tests of two clients of one store, as two processes have them. `makePeers` opens them, anew for each test. */
export const stateStorePeersSuite = (
  name: string,
  makePeers: Effect.Effect<readonly [Store, Store], unknown, Scope.Scope>,
  runner: Runner
): void => declare(runner, `${name}: two clients of one store`, peers, makePeers, () => Layer.empty)
