/**
 * Charges a second by hosts in processes of their own, durable: what teams write by hand on PostgreSQL, beside Millrace on that same
 * PostgreSQL, there also with one host that leads each account, on SQLite, and on the KurrentDB that KURRENTDB_URL names, with its state in that PostgreSQL.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { type Contender, compare, type Options, withFolder } from "./measure.ts"
import { withPostgres } from "./postgres.ts"
import { Answer, type Place, type Told } from "./store-host.ts"

/** A node that is there already; its log gets the benchmark's events, and keeps them. */
const KURRENTDB = process.env["KURRENTDB_URL"]
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

/** Where the contenders keep their accounts, the one that others are compared with first. */
const placesOf = (url: string, folder: string): ReadonlyArray<Place> => [
  { _tag: "ByHand", url },
  { _tag: "PostgreSQL", url },
  { _tag: "Leaders", url },
  { _tag: "SQLite", folder },
  ...(KURRENTDB === undefined ? [] : [{ _tag: "KurrentDB", connection: KURRENTDB, stateUrl: url } as const])
]

type Contenders = ReadonlyMap<Place["_tag"], ReadonlyArray<Host>>

/** The hosts of all contenders, for the time of `use`. */
const withContenders = <A>(
  [place, ...others]: ReadonlyArray<Place>,
  count: number,
  millis: number,
  use: (contenders: Contenders) => Promise<A>
): Promise<A> =>
  place === undefined
    ? use(new Map())
    : withHosts(place, count, millis, (hosts) =>
        withContenders(others, count, millis, (contenders) => use(new Map([[place._tag, hosts], ...contenders])))
      )

interface Load {
  readonly accounts: number
  /** Whether each account is charged at one host only. */
  readonly routed: boolean
}

const measured = (places: ReadonlyArray<Place>, count: number, loads: ReadonlyArray<Load>, options: Options) =>
  withContenders(places, count, options.millis, async (contenders) => {
    const rows = []
    for (const { accounts, routed } of loads) {
      const charging: Record<string, Contender> = {}
      for (const [name, hosts] of contenders) charging[name] = await charges(hosts, accounts, routed)
      const at = count === 1 || routed ? "one host" : "any host"
      rows.push({ accounts, routed, at, compared: await compare(charging, options, `${count} hosts, ${accounts} accounts, each at ${at}`) })
    }
    return rows
  })

/** The rates of each kind of store by the number of hosts, of these only if any are named. */
export const ofHosts = (loads: ReadonlyMap<number, ReadonlyArray<Load>>, options: Options, only?: ReadonlyArray<Place["_tag"]>) =>
  withPostgres(async (url) => {
    const all = []
    for (const [hosts, ofCount] of loads) {
      const rows = await withFolder((folder) => {
        const places = placesOf(url, folder).filter(({ _tag }) => only?.includes(_tag) ?? true)
        return measured(places, hosts, ofCount, options)
      })
      all.push(...rows.map((row) => ({ hosts, ...row })))
    }
    return all
  })

export const run = async (options: Options) =>
  (await ofHosts(LOADS, options)).map(({ accounts, at, compared: { ByHand: hand, ...stores }, hosts }) => ({
    hosts,
    accounts,
    "each at": at,
    "by hand": hand?.rate,
    ...Object.fromEntries(
      Object.entries(stores).flatMap(([name, { rate, ratio }]) => [[name, rate] as const, [`${name} ratio`, ratio] as const])
    )
  }))
