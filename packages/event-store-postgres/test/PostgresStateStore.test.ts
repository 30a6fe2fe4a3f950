import { StateStore } from "@millrace/event-sourcing"
import { PostgresStateStore } from "@millrace/event-store-postgres"
import { Effect, Exit, Layer } from "effect"
import fc from "fast-check"
import { assert, describe, expect, it } from "vitest"
import { stateStorePeersSuite, stateStoreSuite } from "../../testing/src/StateStoreSuite.ts"
import { schema, schemaOfFile, url } from "./Postgres.ts"

const shared = schemaOfFile()

stateStoreSuite(
  "postgres",
  () => Layer.unwrap(Effect.map(Effect.promise(url), (address) => PostgresStateStore.layer({ url: address, schema: shared }))),
  { describe, it }
)

const twoPools = Effect.gen(function* () {
  const options = yield* schema
  return [yield* PostgresStateStore.make(options), yield* PostgresStateStore.make(options)] as const
})

stateStorePeersSuite("postgres", twoPools, { describe, it })

describe("postgres: concurrent writes", () => {
  it("have the same result as one after another", () =>
    Effect.gen(function* () {
      const store = yield* PostgresStateStore.make(yield* schema)
      let spaces = 0
      const keys = fc.constantFrom("a", "b", "c", "d")
      const change = fc.record({ key: keys, value: fc.oneof(fc.constantFrom("remove", "check"), fc.nat(9)), isNew: fc.boolean() })
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 24 }), (schedule) =>
            Effect.gen(function* () {
              const space = `at once ${spaces++}`
              const writes = schedule.map((changes) =>
                changes.map(
                  ({ key, value, isNew }): StateStore.Change =>
                    value === "remove"
                      ? { _tag: "remove", space, key }
                      : value === "check"
                        ? { _tag: "check", space, key, expected: "absent" }
                        : { _tag: "put", space, key, value: Buffer.from(`${value}`), ...(isNew ? { expected: "absent" } : {}) }
                )
              )
              const exits = yield* Effect.forEach(
                writes,
                ([first, ...rest]) => {
                  assert(first !== undefined)
                  return Effect.exit(store.write([first, ...rest]))
                },
                { concurrency: "unbounded" }
              )
              let model = new Map<string, string>()
              const versions = new Map<string, number>()
              for (const [i, changes] of writes.entries()) {
                const exit = exits[i]
                const conflict = changes.find((one) => one.expected === "absent" && model.has(one.key))
                if (conflict !== undefined) {
                  expect(exit).toEqual(Exit.fail(new StateStore.StateConflict({ space, key: conflict.key })))
                  continue
                }
                assert(exit !== undefined && Exit.isSuccess(exit))
                model = new Map(model)
                for (const one of changes) {
                  if (one._tag === "check") continue
                  // Later writes of one key have greater versions
                  expect(exit.value).toBeGreaterThanOrEqual(versions.get(one.key) ?? 0)
                  versions.set(one.key, exit.value)
                  if (one._tag === "put") model.set(one.key, Buffer.from(one.value).toString())
                  else model.delete(one.key)
                }
              }
              const there = (yield* store.list(space)).map(({ key, value }) => [key, Buffer.from(value).toString()])
              expect(new Map(there.map(([key = "", value = ""]) => [key, value]))).toEqual(model)
            }).pipe(Effect.runPromise)
          ),
          { numRuns: 60 }
        )
      )
    }).pipe(Effect.scoped, Effect.runPromise))
})
