/** Charges a second through `Charge`, durable, beside the bare ceiling. */
import { Effect, ManagedRuntime } from "effect"
import * as bare from "./bare.ts"
import { charge, host, openAccounts } from "./host.ts"
import { compare, withFolder } from "./measure.ts"

const LOADS = [
  [1_000, 1],
  [1_000, 64],
  [1_000, 1_024],
  [1, 1],
  [1, 64],
  [1, 1_024]
] as const

/** Both live through all rounds of a load, as a server does: what a process pays for once is not paid for in each. */
const measured = async (
  folder: string,
  accounts: number,
  clients: number,
  options: { readonly rounds: number; readonly millis: number }
) => {
  const ceiling = bare.open(folder, accounts)
  const millrace = ManagedRuntime.make(host(folder))
  const ids = await millrace.runPromise(openAccounts(accounts))

  const charges = (millis: number) =>
    Effect.gen(function* () {
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
    })

  try {
    return await compare(
      { bare: (millis) => ceiling.charge(clients, millis), millrace: (millis) => millrace.runPromise(charges(millis)) },
      options
    )
  } finally {
    await millrace.dispose()
    ceiling.close()
  }
}

export const run = async (options: { readonly rounds: number; readonly millis: number }) => {
  const rows = []
  for (const [accounts, clients] of LOADS) {
    const result = await withFolder((folder) => measured(folder, accounts, clients, options))
    rows.push({ accounts, clients, bare: result["bare"]?.rate, millrace: result["millrace"]?.rate, ratio: result["millrace"]?.ratio })
  }
  return rows
}
