/** Vaults of several processes on one state store. */
import { MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { test } from "vitest"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"

export const MASTER = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

type Store = StateStore.StateStore["Service"]

/** A separate vault, as another process would open it. */
export const open = (store: Store, master: string = MASTER) =>
  Effect.gen(function* () {
    return yield* Vault
  }).pipe(
    Effect.provide(
      Layer.fresh(Vault.layer).pipe(
        Layer.provide(Layer.fresh(MasterKey.layer(master))),
        Layer.provide(Layer.succeed(StateStore.StateStore, store))
      )
    )
  )

export const testing = (name: string, body: Effect.Effect<unknown, unknown, StateStore.StateStore | Scope.Scope>): void =>
  test(name, () =>
    Effect.runPromise(
      Effect.asVoid(body).pipe(Effect.scoped, Effect.provide(Layer.fresh(MemoryStateStore.layer)), Effect.provide(TestClock.layer()))
    )
  )

/** The result of an effect: a value, the tag of its error, or `defect`. */
export const outcome = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A | string, never, R> =>
  effect.pipe(
    Effect.catch((error) => Effect.succeed(error._tag)),
    Effect.catchDefect(() => Effect.succeed("defect"))
  )
