/** The checks of `doctor` of a host that is one of several, of which one leads each account. Only where the environment sets that up. */
import { createServer } from "node:net"
import { networkInterfaces } from "node:os"
import { ClusterAddress, ClusterProbe, Vault } from "@millrace/core"
import { Effect, Layer, Option } from "effect"
import { type Check, check, finding } from "./Check.ts"
import * as ClusterSettings from "./ClusterSettings.ts"
import { isSet, set } from "./EnvironmentSettings.ts"
import { codeOf, fail, textOf } from "./Failure.ts"
import * as Setting from "./Setting.ts"
import type * as StateUrl from "./StateUrl.ts"
import * as StoreUrl from "./StoreUrl.ts"

const address = set("MILLRACE_CLUSTER", ClusterSettings.address)
const listen = set("MILLRACE_CLUSTER_LISTEN", Setting.hostAndPort)

/** The checks for a host on this store. */
export const checks = (store: string): Effect.Effect<ReadonlyArray<Check>, never, StateUrl.Given> =>
  Effect.gen(function* () {
    if (yield* isSet("MILLRACE_CLUSTER")) return yield* Effect.all([check("cluster", ownAddress(store)), check("hosts", otherHosts(store))])
    if (!(yield* isSet("MILLRACE_CLUSTER_LISTEN"))) return []
    const alone = finding("MILLRACE_CLUSTER_LISTEN is set, and no address", "set MILLRACE_CLUSTER: where the other hosts reach this one")
    return [yield* check("cluster", Effect.succeed(alone))]
  }).pipe(Effect.orDie)

/** The address of this host; fails where there is none. */
const given = Effect.flatMap(address, Option.match({ onNone: () => fail("MILLRACE_CLUSTER is empty"), onSome: Effect.succeed }))

// this host

/** Whether the others can be told this address, and this host can listen. */
const ownAddress = (store: string) =>
  Effect.gen(function* () {
    const own = yield* given
    const listening = Option.getOrElse(yield* listen, () => own)
    const [told, at] = [own, listening].map(ClusterAddress.format)
    if (!isHere(listening.host))
      return finding(`${listening.host} is not of this machine`, "in a container, set MILLRACE_CLUSTER_LISTEN, such as 0.0.0.0:7400")
    const kept = yield* Effect.promise(() => whyNotFree(listening))
    if (kept === undefined) return finding(told === at ? `${at} is free` : `${at} is free, and the other hosts call ${told}`)
    if (kept !== "EADDRINUSE") return finding(`this host cannot listen on ${at}: ${kept}`, "choose another port, or another address")
    // A host that cannot look into the store does not know whose port it is
    const found = yield* Effect.option(Effect.provide(ClusterProbe.at(reachable(listening)), StoreUrl.secretsLayer(store)))
    return Option.contains(found, "host" as const)
      ? finding(`a host with this master key listens on ${at}`)
      : finding(
          `${at} is in use by another program, or by a host with another master key`,
          "choose another port, or end what listens there"
        )
  })

const ANYWHERE: ReadonlySet<string> = new Set(["0.0.0.0", "::"])

/** Names are left to the system. */
const isHere = (host: string): boolean => {
  if (ANYWHERE.has(host) || ClusterAddress.parse(ClusterAddress.format({ host, port: 1 })) === undefined) return true
  const own = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses.map(({ address }) => address))
  return host.startsWith("127.") || own.includes(host)
}

/** Where this machine reaches what listens there. */
const reachable = ({ host, port }: Setting.Listening): Setting.Listening => ({
  host: host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host,
  port
})

/** Listens for a moment. Returns what keeps it from that, as the code of the system; undefined if nothing does. */
const whyNotFree = ({ host, port }: Setting.Listening): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", (error) => resolve(codeOf(error) === "EADDRINUSE" ? "EADDRINUSE" : textOf(error)))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })

// the other hosts

/** Whether the hosts that are in the store can be reached from here, with this master key. */
const otherHosts = (store: string) =>
  Effect.gen(function* () {
    const own = yield* given
    if (store === StoreUrl.MEMORY)
      return finding("a store in memory is of one process, so there are no other hosts", "name a store that the hosts share, by --store")
    const stores = Layer.provideMerge(Vault.Vault.layer, StoreUrl.secretsLayer(store))
    const present = Effect.map(ClusterProbe.present, (hosts) => hosts.filter((host) => !isSame(host.address, own)))
    const look = Effect.flatMap(present, (hosts) =>
      Effect.forEach(hosts, (host) => Effect.map(ClusterProbe.at(host.address), (found) => ({ ...host, found })), { concurrency: 16 })
    )
    const hosts = yield* Effect.provide(look, stores)
    const those = (which: (host: (typeof hosts)[number]) => boolean) =>
      hosts.filter(which).map(({ address }) => ClusterAddress.format(address))
    const elsewhere = StoreUrl.isRemote(store) ? [] : those(({ address }) => !isHere(address.host))
    const [strange, silent] = [those(({ found }) => found === "stranger"), those(({ found }) => found === "nothing")]
    if (elsewhere.length > 0)
      return finding(`a SQLite file is for hosts of one machine, and ${elsewhere.join(", ")} is not here`, "use PostgreSQL or KurrentDB")
    if (strange.length > 0)
      return finding(
        `${strange.join(", ")} does not know this host`,
        "give all hosts the same MILLRACE_MASTER_KEY and release; until then, each runs its calls itself"
      )
    if (silent.length > 0)
      return finding(
        `${silent.join(", ")} cannot be reached from here`,
        "open its port to this host; until then, each runs its calls itself"
      )
    const reached = hosts.length === 0 ? "no other host is up" : `reached ${those(() => true).join(", ")}`
    const isPublic = !StoreUrl.isRemote(store) && !own.host.startsWith("127.") && own.host !== "::1"
    return finding(
      reached,
      isPublic ? "hosts of other machines cannot share this SQLite file: use PostgreSQL or KurrentDB" : undefined,
      true
    )
  })

const isSame = (one: ClusterAddress.Address, other: ClusterAddress.Address): boolean => one.host === other.host && one.port === other.port
