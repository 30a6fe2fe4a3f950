/** `DnsResolver` on recursive name servers, over UDP, or over TCP for long answers. Caches answers for their time to live. */
import { getServers } from "node:dns"
import { Dns, NotFound, type UpstreamUnavailable } from "@millrace/core"
import { Cache, Clock, type Duration, Effect, Exit, Layer } from "effect"
import type { RecordType } from "./Message.ts"
import * as NameServers from "./NameServers.ts"
import { isWithin, MAX_LINKS } from "./Resolution.ts"
import * as ServerAddress from "./ServerAddress.ts"
import { unavailable } from "./Transport.ts"

export { QueryIds } from "./NameServers.ts"

export interface Options {
  /** IP addresses in the order of queries, with a port unless it is 53: `192.0.2.1`, `[2001:db8::1]:5353`. By default the system's. */
  readonly servers?: ReadonlyArray<string>
  /** The time limit of one server, over UDP and TCP together. */
  readonly timeout?: Duration.Input
  /** How often each server is queried. */
  readonly attempts?: number
  /** The time limit of a lookup. */
  readonly timeLimit?: Duration.Input
  /** The most answers to cache; 0 for none. */
  readonly cacheEntries?: number
  /** The most concurrent queries, each on its own socket. Others wait. */
  readonly concurrency?: number
  /** Domains in lower case that, with their subdomains, are answered with `NotFound` without a query; `SPECIAL_USE` by default. */
  readonly withheld?: ReadonlyArray<string>
}

/**
 * Domains that are not in the public DNS, so an answer would reveal an internal network: those of RFC 6761 and its registry, ICANN's
 * `internal`, others in private use (RFC 6762, appendix G), and the reverse zones of private addresses (RFC 6303).
 */
export const SPECIAL_USE: ReadonlyArray<string> = [
  ...["localhost", "local", "invalid", "test", "onion", "alt", "home.arpa", "internal", "intranet", "private", "corp", "home", "lan"],
  ...["127", "10", "168.192", "254.169", ...Array.from({ length: 16 }, (_, net) => `${16 + net}.172`)].map((net) => `${net}.in-addr.arpa`),
  ...["d.f", "8.e.f", "9.e.f", "a.e.f", "b.e.f"].map((net) => `${net}.ip6.arpa`)
]

/** Whether `servers` may hold this address. */
export const isServer = (text: string): boolean => ServerAddress.parse(text) !== undefined

/** The longest time to cache an answer, in seconds. */
const MAX_TTL = 86_400

/** Bytes. Larger messages are not cached, so the number of entries limits the cache's memory. */
const MAX_KEPT_BYTES = 4096

type Lookup = Effect.fn.Return<ReadonlyArray<Dns.DnsRecord>, NotFound | UpstreamUnavailable>

const isDotless = (name: string): boolean => !name.includes(".")

const everyType = Dns.RecordType.literals.filter((type) => type !== "ANY")

/** By default a server has two seconds and is queried twice, and a lookup has ten seconds. A malformed server address is a defect. */
export const layer = ({
  servers = getServers(),
  timeout = "2 seconds",
  attempts = 2,
  timeLimit = "10 seconds",
  cacheEntries = 4096,
  concurrency = 256,
  withheld = SPECIAL_USE
}: Options = {}): Layer.Layer<Dns.DnsResolver> =>
  Layer.effect(
    Dns.DnsResolver,
    Effect.gen(function* () {
      const ask = yield* NameServers.make({ servers: servers.map(ServerAddress.parseOrThrow), timeout, attempts, concurrency })
      /** Concurrent equal lookups share one query, which is interrupted with the last of them. */
      const cache = yield* Cache.makeWith(({ name, type }: { readonly name: string; readonly type: RecordType }) => ask(name, type), {
        capacity: cacheEntries,
        timeToLive: (exit) =>
          Exit.isSuccess(exit) && exit.value.bytes <= MAX_KEPT_BYTES ? Math.min(exit.value.resolution.ttl, MAX_TTL) * 1000 : 0
      })
      const notFound = new NotFound({ resource: "domain" })
      const isWithheld = (name: string) => withheld.some((domain) => isWithin(name, domain))

      /** Resolves a name after `links` CNAME records. The answer may be cached for at most `hold` seconds, as they may. */
      const follow = Effect.fnUntraced(function* (name: string, type: RecordType, links = 0, hold = Number.POSITIVE_INFINITY): Lookup {
        const { resolution, at } = yield* Cache.get(cache, { name, type })
        const age = Math.floor(((yield* Clock.currentTimeMillis) - at) / 1000)
        const left = (ttl: number) => Math.max(0, Math.min(hold, ttl - age))
        const { aliases, outcome } = resolution
        const length = links + aliases.length
        if (length > MAX_LINKS) return yield* unavailable(`more than ${MAX_LINKS} CNAME records lead on from one another`)
        if (outcome._tag === "Nonexistent" || aliases.some((alias) => isWithheld(alias) || isDotless(alias))) return yield* notFound
        if (outcome._tag === "Unresolved" && Dns.domainName(outcome.name) !== outcome.name)
          return yield* unavailable("a CNAME record leads to a malformed name")
        if (outcome._tag === "Unresolved") return yield* follow(outcome.name, type, length, left(resolution.ttl))
        return outcome.records.map((record) => ({ ...record, ttl: left(record.ttl) }))
      })

      const lookup = Effect.fnUntraced(function* (name: string, type: RecordType) {
        if (isWithheld(name)) return yield* notFound
        if (!isDotless(name) || type === "NS" || type === "SOA") return yield* follow(name, type)
        // A top-level domain has no other records (SAC053), so other records would be of an internal host
        yield* follow(name, "SOA")
        return []
      })

      const lookupAll = (name: string) =>
        Effect.map(
          Effect.forEach(everyType, (type) => lookup(name, type), { concurrency: "unbounded" }),
          (records) => records.flat()
        )

      return {
        resolve: Effect.fn("DnsClient.resolve")(
          function* ({ domain, type }) {
            const name = Dns.domainName(domain)
            if (name === undefined) return yield* notFound
            const records = type === "ANY" ? yield* lookupAll(name) : (yield* lookup(name, type)).map(({ type, ...record }) => record)
            return { domain: name, type, records }
          },
          Effect.timeoutOrElse({ duration: timeLimit, orElse: () => Effect.fail(unavailable("the lookup exceeds its time limit")) })
        )
      }
    })
  )
