/** Charges a second through `Charge`, durable, beside the bare ceiling. */
import { ManagedRuntime } from "effect"
import * as bare from "./bare.ts"
import { chargesASecond, host, openAccounts } from "./host.ts"
import { compare, type Options, withFolder } from "./measure.ts"

const LOADS = [
  [1_000, 1],
  [1_000, 64],
  [1_000, 1_024],
  [1, 1],
  [1, 64],
  [1, 1_024]
] as const

/** Both live through all rounds of a load, as a server does: what a process pays for once is not paid for in each. */
const measured = async (folder: string, accounts: number, clients: number, options: Options) => {
  const ceiling = bare.open(folder, accounts)
  const millrace = ManagedRuntime.make(host(folder))
  const ids = await millrace.runPromise(openAccounts(accounts))

  try {
    return await compare(
      {
        bare: (millis) => ceiling.charge(clients, millis),
        millrace: (millis) => millrace.runPromise(chargesASecond(ids, clients, millis))
      },
      options,
      `${clients} clients, ${accounts} accounts`
    )
  } finally {
    await millrace.dispose()
    ceiling.close()
  }
}

/** Charges a second of so many clients at so many accounts. */
export const ofLoad = async (accounts: number, clients: number, options: Options) => {
  const { bare, millrace } = await withFolder((folder) => measured(folder, accounts, clients, options))
  return { bare: bare?.rate ?? Number.NaN, millrace: millrace?.rate ?? Number.NaN }
}

/** One account beside a thousand, with as many clients. Both take turns, because the machine drifts from one load to the next. */
const hotBeside = (clients: number, options: Options) =>
  withFolder(async (folder) => {
    const millrace = ManagedRuntime.make(host(folder))
    const many = await millrace.runPromise(openAccounts(1_000))
    const one = await millrace.runPromise(openAccounts(1))
    const charge = (ids: ReadonlyArray<string>) => (millis: number) => millrace.runPromise(chargesASecond(ids, clients, millis))
    try {
      return await compare({ many: charge(many), "a hot account": charge(one) }, options, `${clients} clients`)
    } finally {
      await millrace.dispose()
    }
  })

export const run = async (options: Options) => {
  const rows = []
  for (const [accounts, clients] of LOADS) {
    const result = await withFolder((folder) => measured(folder, accounts, clients, options))
    rows.push({ accounts, clients, bare: result["bare"]?.rate, millrace: result["millrace"]?.rate, ratio: result["millrace"]?.ratio })
  }
  for (const clients of [64, 1_024]) {
    const { many, "a hot account": hot } = await hotBeside(clients, options)
    rows.push({ accounts: 1, clients, "1,000 accounts": many?.rate, millrace: hot?.rate, ratio: hot?.ratio })
  }
  return rows
}
