/** Charges a second through `Charge`, durable, beside the bare ceiling. */
import { Effect } from "effect"
import * as bare from "./bare.ts"
import { charge, host, openAccounts } from "./host.ts"
import { type Contender, compare, withFolder } from "./measure.ts"

const millrace =
  (accounts: number, clients: number): Contender =>
  (millis) =>
    withFolder(async (folder) =>
      Effect.gen(function* () {
        const ids = yield* openAccounts(accounts)
        let done = 0
        const began = performance.now()
        const client = Effect.gen(function* () {
          while (performance.now() - began < millis) {
            yield* charge(ids[(Math.random() * ids.length) | 0] ?? "")
            done++
          }
        })
        yield* Effect.forEach(Array.from({ length: clients }), () => client, { concurrency: "unbounded", discard: true })
        return (done / (performance.now() - began)) * 1000
      }).pipe(Effect.provide(host(folder)), Effect.runPromise)
    )

const LOADS = [
  [1_000, 1],
  [1_000, 64],
  [1_000, 1_024],
  [1, 1],
  [1, 64],
  [1, 1_024]
] as const

export const run = async (options: { readonly rounds: number; readonly millis: number }) => {
  const rows = []
  for (const [accounts, clients] of LOADS) {
    const result = await withFolder((folder) =>
      compare({ bare: (millis) => bare.charge(folder, accounts, clients, millis), millrace: millrace(accounts, clients) }, options)
    )
    rows.push({ accounts, clients, bare: result["bare"]?.rate, millrace: result["millrace"]?.rate, ratio: result["millrace"]?.ratio })
  }
  return rows
}
