/** A process that prints `ready`, then grants the payment of each line that it reads: `node PaymentWorker.ts <store> <account>`. */
import { createInterface } from "node:readline"
import { Effect, Stream } from "effect"
import * as Credits from "../../src/Credits.ts"
import { Payments } from "../../src/payments/Payments.ts"
import { host } from "../jobs/Worker.ts"

const [store, accountId] = process.argv.slice(2)
if (import.meta.main && store !== undefined && accountId !== undefined) {
  const main = Effect.gen(function* () {
    const payments = yield* Payments
    const lines = createInterface(process.stdin)
    console.log("ready")
    yield* Stream.fromAsyncIterable(lines, String).pipe(
      Stream.runForEach((paymentRef) =>
        Effect.match(payments.grant(accountId, { source: "topup", amount: Credits.of(1_000), paymentRef }), {
          onSuccess: () => console.log(`told ${paymentRef} granted`),
          onFailure: ({ _tag }) => console.log(`told ${paymentRef} ${_tag}`)
        })
      )
    )
  })
  await Effect.runPromise(main.pipe(Effect.provide(host(JSON.parse(store))), Effect.scoped))
}
