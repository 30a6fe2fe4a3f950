import { Charge, MasterKey, Millrace, Operation, Registration } from "@millrace/core"
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Layer, Schema } from "effect"

const greet = Operation.make("greeting.write", {
  summary: "Write a greeting",
  price: 1.5, // credits a call; 1 credit is $0.001
  route: { method: "GET", path: "/greeting/:name", params: { name: Schema.String } },
  success: Schema.Struct({ greeting: Schema.String }),
  run: ({ name }) => Effect.succeed({ data: { greeting: `Hello, ${name}!` } })
})

const program = Effect.gen(function* () {
  const [registration, charges] = [yield* Registration, yield* Charge.Charge]
  const accountId = yield* registration.open("ada@example.com")
  yield* registration.verify(accountId) // grants 200 credits, once
  const idempotency = { key: "greeting-1", request: "GET /greeting/Ada" }
  const first = yield* charges.run(greet, { name: "Ada" }, { accountId, requestId: "request-1", idempotency })
  const again = yield* charges.run(greet, { name: "Ada" }, { accountId, requestId: "request-2", idempotency })
  console.log(first.data, first.billed, "replayed:", again.replayed) // charged once: 198.5 credits are left
})

const stores = Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, MasterKey.layer("0".repeat(64)))
Effect.runPromise(Effect.provide(program, Layer.provideMerge(Millrace.layer({ operations: [greet] }), stores)))
