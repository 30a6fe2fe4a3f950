/** Stores in memory under the test clock, for tests of projections, reactions and deadlines. */
import { Effect, Layer, Random, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { test } from "vitest"
import type { EventStore } from "../src/EventStore.ts"
import * as MemoryEventStore from "../src/MemoryEventStore.ts"
import * as MemoryStateStore from "../src/MemoryStateStore.ts"
import type { StateStore } from "../src/StateStore.ts"

type Body<A, E> = Effect.Effect<A, E, EventStore | StateStore | Scope.Scope>

/** The same schedules in each run; `MILLRACE_SOAK` multiplies their number. */
export const SEED = 1
export const SOAK = Number(process.env["MILLRACE_SOAK"] ?? 1)

export const simulated = <A, E>(body: Body<A, E>): Promise<A> =>
  body.pipe(
    Effect.scoped,
    Effect.provide(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer).pipe(Layer.provideMerge(TestClock.layer()))),
    Random.withSeed("simulated"),
    Effect.runPromise
  )

export const testing = (name: string, body: Body<unknown, unknown>) => test(name, () => simulated(body))

/** Runs all fibers that do not wait for the clock. */
export const settle = Effect.forEach(Array.from({ length: 100 }), () => Effect.yieldNow, { discard: true })
export const pass = (millis: number) => Effect.andThen(Effect.andThen(settle, TestClock.adjust(millis)), settle)
