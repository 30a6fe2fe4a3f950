/**
 * The contract of event stores, as tests that each implementation runs unchanged. So no test assumes an empty log, one process, dense
 * positions, or a log that shows an event the instant it was written: a test waits for what must show up, with ten seconds as a failsafe.
 */
import { EventStore } from "@millrace/event-sourcing"
import { type Effect, Layer, type Scope } from "effect"
import { declare, type Runner } from "./suites/Contract.ts"
import { appending } from "./suites/EventStoreAppending.ts"
import { conditions, conditionsOfPeers } from "./suites/EventStoreConditions.ts"
import { content, snapshots } from "./suites/EventStoreContent.ts"
import { contention } from "./suites/EventStoreContention.ts"
import type { Store } from "./suites/EventStoreFixtures.ts"
import { peers } from "./suites/EventStorePeers.ts"
import { reading } from "./suites/EventStoreReading.ts"
import { subscribing } from "./suites/EventStoreSubscribing.ts"

export type { Runner } from "./suites/Contract.ts"

/**
 * Declares the tests of one store. `makeLayer` is built anew for each. The log beneath may hold anything, but no other process may write
 * streams of the category `suite`.
 */
export const eventStoreSuite = (name: string, makeLayer: () => Layer.Layer<EventStore.EventStore, unknown>, runner: Runner): void => {
  const groups = { appending: { ...appending, ...contention }, conditions, content, reading, "a subscription": subscribing, snapshots }
  for (const [group, contract] of Object.entries(groups)) declare(runner, `${name}: ${group}`, contract, EventStore.EventStore, makeLayer)
}

/** Declares the tests of two clients of one log, as two processes have them. `makePeers` opens them, anew for each test. */
export const eventStorePeersSuite = (
  name: string,
  makePeers: Effect.Effect<readonly [Store, Store], unknown, Scope.Scope>,
  runner: Runner
): void => declare(runner, `${name}: two clients of one log`, { ...peers, ...conditionsOfPeers }, makePeers, () => Layer.empty)
