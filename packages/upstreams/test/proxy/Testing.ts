import { Effect, type Scope } from "effect"
import { test } from "vitest"

/** A test that is one effect, over real sockets. */
export const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, () => Effect.runPromise(Effect.asVoid(Effect.scoped(body))))
