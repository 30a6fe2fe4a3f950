/**
 * Charges a second by hosts in processes of their own, durable: what teams write by hand on PostgreSQL, beside Millrace on that same
 * PostgreSQL and on SQLite.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { compare, withFolder } from "./measure.ts"
import { withPostgres } from "./postgres.ts"
import { Answer, type Place, type Told } from "./store-host.ts"

/** Of all hosts together. */
const CLIENTS = 64
/** By hosts: how many accounts, and whether each is charged at one host only, as where a proxy routes by account. */
const LOADS = new Map([
  [
    1,
    [
      { accounts: 1_000, routed: false },
      { accounts: 1, routed: false }
    ]
  ],
  [
    4,
    [
      { accounts: 1_000, routed: true },
      { accounts: 1_000, routed: false },
      { accounts: 1, routed: false }
    ]
  ]
])

interface Host {
  readonly ready: Promise<Answer>
  readonly tell: (told: Told) => Promise<Answer>
  readonly stop: () => Promise<void>
}

const start = (place: Place): Host => {
  const child = fork(fileURLToPath(new URL("store-host.ts", import.meta.url)), [JSON.stringify(place)])
  const ended = once(child, "exit").then(() => {})
  const next = async (): Promise<Answer> => {
    const failed = ended.then(() => Promise.reject(new Error(`A host on ${place._tag} has failed`)))
    const [message] = await Promise.race([once(child, "message"), failed])
    return Schema.decodeUnknownSync(Answer)(message)
  }
  return {
    ready: next(),
    tell: (told) => {
      const answer = next()
      child.send(told)
      return answer
    },
    stop: async () => {
      if (child.connected) child.disconnect()
      await ended
    }
  }
}

/** Hosts on one store, for the time of `use`. */
const withHosts = async <A>(place: Place, count: number, millis: number, use: (hosts: ReadonlyArray<Host>) => Promise<A>): Promise<A> => {
  const hosts: Array<Host> = []
  try {
    for (let n = 0; n < count; n++) {
      hosts.push(start(place))
      // It makes the tables
      if (n === 0) await hosts[n]?.ready
    }
    await Promise.all(hosts.map(({ ready }) => ready))
    // A process that is new is slow, the longer the more of them share the cores, and a server is not new for long
    const charge = await charges(hosts, CLIENTS, true)
    await charge(millis * count)
    return await use(hosts)
  } finally {
    await Promise.all(hosts.map(({ stop }) => stop()))
  }
}

const open = async ([host]: ReadonlyArray<Host>, count: number): Promise<ReadonlyArray<string>> => {
  const answer = await host?.tell({ _tag: "Open", count })
  return answer?._tag === "Opened" ? answer.ids : []
}

/** By hosts together, at the same accounts or each at its own. */
const charges = async (hosts: ReadonlyArray<Host>, accounts: number, routed: boolean) => {
  const all = await open(hosts, accounts)
  return async (millis: number): Promise<number> => {
    const answers = hosts.map(({ tell }, n) => {
      const ids = routed ? all.filter((_, i) => i % hosts.length === n) : all
      return tell({ _tag: "Charge", ids, clients: CLIENTS / hosts.length, millis })
    })
    return (await Promise.all(answers)).reduce((sum, answer) => sum + (answer._tag === "Charged" ? answer.rate : 0), 0)
  }
}

const measured = (url: string, folder: string, count: number, options: { readonly rounds: number; readonly millis: number }) =>
  withHosts({ _tag: "ByHand", url }, count, options.millis, (byHand) =>
    withHosts({ _tag: "PostgreSQL", url }, count, options.millis, (postgres) =>
      withHosts({ _tag: "SQLite", folder }, count, options.millis, async (sqlite) => {
        const rows = []
        for (const { accounts, routed } of LOADS.get(count) ?? []) {
          const contenders = {
            "by hand": await charges(byHand, accounts, routed),
            PostgreSQL: await charges(postgres, accounts, routed),
            SQLite: await charges(sqlite, accounts, routed)
          }
          const { "by hand": hand, PostgreSQL, SQLite } = await compare(contenders, options)
          rows.push({
            hosts: count,
            accounts,
            "each at": count === 1 || routed ? "one host" : "any host",
            "by hand": hand?.rate,
            PostgreSQL: PostgreSQL?.rate,
            "its ratio": PostgreSQL?.ratio,
            SQLite: SQLite?.rate,
            "SQLite's ratio": SQLite?.ratio
          })
        }
        return rows
      })
    )
  )

export const run = (options: { readonly rounds: number; readonly millis: number }) =>
  withPostgres(async (url) => {
    const rows = []
    for (const count of LOADS.keys()) rows.push(...(await withFolder((folder) => measured(url, folder, count, options))))
    return rows
  })
