/** A process that asks a worker thread once, and leaves it and its scope to themselves. */
import { Effect, Schema, Scope } from "effect"
import * as WorkerThread from "../../src/shared/WorkerThread.ts"
import type { Order } from "./FaultyWorker.ts"

const Reply = Schema.Struct({ echo: Schema.String })

const reply = await Effect.gen(function* () {
  const worker = yield* WorkerThread.make<Order, typeof Reply.Type>({
    upstream: "faulty",
    script: new URL("./FaultyWorker.ts", import.meta.url),
    reply: Reply,
    timeLimit: "8 seconds",
    idleLimit: "Infinity"
  })
  return yield* worker.ask({ echo: "a" })
}).pipe(Scope.provide(Scope.makeUnsafe()), Effect.runPromise)

process.stdout.write(reply.echo)
