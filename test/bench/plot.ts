/** Draws the curves of docs/performance.md into `docs/curves`. */
import { mkdirSync, writeFileSync } from "node:fs"
import { Audit } from "@millrace/audit"
import { PricePlan, Standard } from "@millrace/core"
import { Effect } from "effect"
import * as charges from "./charges.ts"
import { type Chart, svg } from "./chart.ts"
import { stores } from "./host.ts"
import * as ledgers from "./ledgers.ts"
import { median, type Options, withFolder } from "./measure.ts"
import * as hosts from "./stores.ts"

const FOLDER = new URL("../../docs/curves/", import.meta.url)
const CLIENTS = [1, 4, 16, 64, 256, 1_024]
const HOSTS = [1, 2, 4]
const LENGTHS = [2_000, 20_000, 200_000]

const byClients = async (options: Options): Promise<Chart> => {
  const rows: Array<{ readonly clients: number } & Awaited<ReturnType<typeof charges.ofLoad>>> = []
  for (const clients of CLIENTS) rows.push({ clients, ...(await charges.ofLoad(1_000, clients, options)) })
  const curve = (name: string, of: "bare" | "millrace") => ({ name, points: rows.map((row) => [row.clients, row[of]] as const) })
  return {
    title: "Charges a second by clients, SQLite, 1,000 accounts",
    x: "clients",
    y: "charges a second",
    curves: [curve("bare loop", "bare"), curve("Millrace", "millrace")]
  }
}

const byHosts = async (options: Options): Promise<Chart> => {
  const rows = await hosts.ofHosts(
    new Map(HOSTS.map((count) => [count, [true, false].map((routed) => ({ accounts: 1_000, routed }))])),
    options,
    ["ByHand", "PostgreSQL", "Leaders"]
  )
  const of = (name: string, routed: boolean, store: "ByHand" | "PostgreSQL" | "Leaders") => ({
    name,
    points: rows.filter((row) => row.routed === routed).map((row) => [row.hosts, row.compared[store]?.rate ?? Number.NaN] as const)
  })
  return {
    title: "Charges a second by hosts, PostgreSQL, 1,000 accounts, 64 clients",
    x: "hosts",
    y: "charges a second",
    curves: [
      of("by hand", false, "ByHand"),
      of("routed by account", true, "PostgreSQL"),
      of("unrouted, with leaders", false, "Leaders"),
      of("unrouted", false, "PostgreSQL")
    ]
  }
}

/** Milliseconds of an audit of so many events. */
const audited = (events: number, { rounds }: Options): Promise<number> =>
  withFolder((folder) =>
    Effect.gen(function* () {
      yield* Effect.provide(
        PricePlan.PriceBook.use((book) => book.plan),
        PricePlan.PriceBook.layerOf(PricePlan.ownOf(Standard.operations))
      )
      yield* ledgers.write(events, 200)
      const times: Array<number> = []
      for (let round = 0; round < rounds; round++) {
        const began = performance.now()
        const { ok } = yield* Audit.run()
        if (!ok) return yield* Effect.die(new Error("The audit found a problem"))
        times.push(performance.now() - began)
      }
      return median(times)
    }).pipe(Effect.provide(stores(folder)), Effect.orDie, Effect.runPromise)
  )

const byLength = async (options: Options): Promise<Chart> => {
  const points: Array<readonly [number, number]> = []
  for (const events of LENGTHS) points.push([events, await audited(events, options)])
  return { title: "Time of a whole audit by the length of the log", x: "events", y: "milliseconds", curves: [{ name: "audit", points }] }
}

export const draw = async (options: Options): Promise<void> => {
  mkdirSync(FOLDER, { recursive: true })
  for (const [name, chart] of [
    ["clients", byClients],
    ["hosts", byHosts],
    ["length", byLength]
  ] as const) {
    const drawn = await chart(options)
    writeFileSync(new URL(`${name}.svg`, FOLDER), svg(drawn))
    console.log(`docs/curves/${name}.svg`)
  }
}
