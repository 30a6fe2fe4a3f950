/** A queue of paid work without HTTP: held for, run by this process or any other on the log, charged at its end. `npm run jobs -w examples`. With promises: `jobs-promises.ts`. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Charge, Credits, Jobs, Ledger, MasterKey, Millrace, Registration } from "@millrace/core"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer } from "effect"
import { count, read } from "./custom-job.ts"

const program = Effect.gen(function* () {
  const [charges, jobs, ledger, registration] = [yield* Charge.Charge, yield* Jobs, yield* Ledger, yield* Registration]
  const accountId = yield* registration.open("ada@example.com")
  yield* registration.verify(accountId) // grants 200 credits

  const book = { chapters: ["It was the best of times,", "it was the worst of times."] }
  const order = { accountId, requestId: "order-1", idempotency: { key: "order-1", request: JSON.stringify(book) } } // asked again: the same job
  const { billed, job } = yield* charges.run(count, book, order)
  if (job === undefined) return yield* Effect.die("A job operation makes a job")
  console.log("accepted:", billed) // nothing is charged yet, a credit is held
  yield* jobs.wait(job.id, "1 minute")
  yield* jobs.settle(job.id) // it happens by itself a moment later
  const { data } = yield* charges.run(read, { job: job.id }, { accountId, requestId: "order-1-read" })
  const { available } = yield* ledger.balance(accountId)
  console.log(data, "charged:", 200 - Credits.toDecimal(available), "left:", Credits.toDecimal(available))
})

const folder = mkdtempSync(join(tmpdir(), "millrace-jobs-"))
const stores = Layer.mergeAll(
  SqliteEventStore.layer({ filename: join(folder, "log.db") }),
  SqliteStateStore.layer({ filename: join(folder, "state.db") }),
  MasterKey.layer("0".repeat(64))
)
Effect.runPromise(Effect.provide(program, Layer.provideMerge(Millrace.layer({ operations: [count, read] }), stores)))
