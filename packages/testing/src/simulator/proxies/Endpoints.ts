/** Proxy sessions at simulated hosts: their operations with their prices, the node that each host announces, and the terms of sessions. */
import { type Operation, Proxies, type ProxyNode, ProxyNodes, type SessionsOptions } from "@millrace/core"
import { Effect, Layer } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import type { AnnouncedNode } from "../Records.ts"
import type { Process } from "../World.ts"

/** The operations, with their first prices in thousandths of a credit. */
export const OFFERS: ReadonlyArray<{ readonly operation: Operation.Any; readonly price: number }> = [
  { operation: Proxies.locations, price: 100 },
  { operation: Proxies.createSession, price: 2_000 }
]

/** The lifetime of sessions, milliseconds, and their bounds. */
export interface Terms extends SessionsOptions {
  readonly lifetime: number
  readonly byteLimit: number
  readonly connectionLimit: number
}

export const termsOf = (random: SeededRandom): Terms => ({
  lifetime: random.pick([40_000, 180_000, 600_000]),
  byteLimit: random.pick([2_000, 20_000]),
  connectionLimit: random.pick([1, 64])
})

/** The places of nodes and what they speak; hosts have them in turn. */
const PLACES: ReadonlyArray<Pick<ProxyNode, "country" | "region" | "endpoints">> = [
  {
    ...{ country: "DE", region: "Hesse" },
    endpoints: [
      { protocol: "http", port: 3_128 },
      { protocol: "socks5h", port: 1_080 }
    ]
  },
  { country: "FR", region: null, endpoints: [{ protocol: "socks5", port: 1_081 }] },
  { country: "DE", region: "Bavaria", endpoints: [{ protocol: "https", port: 3_129 }] }
]

/** The node of a process. Each process is a node of its own, for counts begin anew with it. */
export const nodeOf = ({ name }: Pick<Process, "name">): ProxyNode => {
  const place = PLACES[Number(/\d/u.exec(name)?.[0] ?? 0) % PLACES.length] ?? PLACES[0]
  if (place === undefined) throw new Error("There is a place for each node")
  return { ...place, host: `${name}.proxy.example`, exits: [`a.${name}`, `b.${name}`] }
}

/** Announces the node of a host for as long as the host runs. */
export const announced = (process: Process, nodes: Map<string, AnnouncedNode>): Layer.Layer<never, unknown, ProxyNodes> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const node = nodeOf(process)
      nodes.set(node.host, { node, process })
      yield* (yield* ProxyNodes).keep(process.name, node)
    })
  )

/** What callers ask for. */
export const draw = (random: SeededRandom) => {
  const country = random.pick([undefined, undefined, "DE", "fr", "Germany"])
  const protocol = random.pick([undefined, undefined, undefined, "http", "socks5", "https"])
  const mode = random.pick([undefined, "rotating", "sticky"])
  return {
    ...(country === undefined ? {} : { country }),
    ...(protocol === undefined ? {} : { protocol }),
    ...(mode === undefined ? {} : { mode })
  }
}
