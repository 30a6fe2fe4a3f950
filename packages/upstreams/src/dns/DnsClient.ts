/**
 * `DnsResolver` on recursive name servers, spoken to over UDP, and over TCP where an answer does not fit a datagram. What they say is
 * kept for as long as they say that it holds.
 */
import { Dns, NotFound, type UpstreamUnavailable } from "@millrace/core"
import { Cache, Clock, type Duration, Effect, Exit, Layer } from "effect"
import { isWithin, MAX_LINKS } from "./Finding.ts"
import type { RecordType } from "./Message.ts"
import * as NameServers from "./NameServers.ts"
import * as ServerAddress from "./ServerAddress.ts"
import { unavailable } from "./Transport.ts"

export { QueryIds } from "./NameServers.ts"

export interface Options {
  /** IP addresses, with a port unless it is 53: `192.0.2.1`, `[2001:db8::1]:5353`. Asked in this order; those of the system unless told. */
  readonly servers?: ReadonlyArray<string>
  /** For how long a server is waited for, over UDP and TCP together, before the next is asked. */
  readonly timeout?: Duration.Input
  /** How often the list of servers is gone through. */
  readonly attempts?: number
  /** For how long a lookup may take as a whole. */
  readonly timeLimit?: Duration.Input
  /** Answers kept at most; none when 0. */
  readonly cacheEntries?: number
  /** Queries under way at most, each on a socket of its own; others wait. */
  readonly concurrency?: number
  /** Domains, in lower case, that are `NotFound`, and all below them, whatever the servers would say; `SPECIAL_USE` unless told. */
  readonly withheld?: ReadonlyArray<string>
}

/**
 * Domains that the public DNS does not have: what a name server tells of them is the inside of its network. Those of RFC 6761 and its
 * registry, ICANN's `internal`, others found in use inside (RFC 6762, appendix G), and the reverse zones of private addresses (RFC 6303).
 */
export const SPECIAL_USE: ReadonlyArray<string> = [
  ...["localhost", "local", "invalid", "test", "onion", "alt", "home.arpa", "internal", "intranet", "private", "corp", "home", "lan"],
  ...["127", "10", "168.192", "254.169", ...Array.from({ length: 16 }, (_, net) => `${16 + net}.172`)].map((net) => `${net}.in-addr.arpa`),
  ...["d.f", "8.e.f", "9.e.f", "a.e.f", "b.e.f"].map((net) => `${net}.ip6.arpa`)
]

/** Whether `servers` may have this one. */
export const isServer = (text: string): boolean => ServerAddress.parse(text) !== undefined

/** Seconds for which an answer is kept at most, whatever its servers say. */
const MAX_TTL = 86_400

/** Answers in larger messages are not kept, so that entries bound the cache's memory. */
const MAX_KEPT_BYTES = 4096

type Lookup = Effect.fn.Return<ReadonlyArray<Dns.DnsRecord>, NotFound | UpstreamUnavailable>

const isDotless = (name: string): boolean => !name.includes(".")

const everyType = Dns.RecordType.literals.filter((type) => type !== "ANY")

/** Unless told, a server has two seconds, the list two rounds, a lookup ten seconds. An address that is none is a defect. */
export const layer = ({
  servers = ServerAddress.system(),
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
      /** Those who ask the same at the same time share one query, which ends with the last of them. */
      const cache = yield* Cache.makeWith(({ name, type }: { readonly name: string; readonly type: RecordType }) => ask(name, type), {
        capacity: cacheEntries,
        timeToLive: (exit) =>
          Exit.isSuccess(exit) && exit.value.bytes <= MAX_KEPT_BYTES ? Math.min(exit.value.finding.ttl, MAX_TTL) * 1000 : 0
      })
      const notFound = new NotFound({ resource: "domain" })
      const isWithheld = (name: string) => withheld.some((domain) => isWithin(name, domain))

      /** Goes on from a name to which `links` led, and whose answer holds no longer than they do: `hold` seconds. */
      const follow = Effect.fnUntraced(function* (name: string, type: RecordType, links = 0, hold = Number.POSITIVE_INFINITY): Lookup {
        const { finding, at } = yield* Cache.get(cache, { name, type })
        const age = Math.floor(((yield* Clock.currentTimeMillis) - at) / 1000)
        const left = (ttl: number) => Math.max(0, Math.min(hold, ttl - age))
        const { aliases, outcome } = finding
        const length = links + aliases.length
        if (length > MAX_LINKS) return yield* unavailable(`more than ${MAX_LINKS} CNAME records lead on from one another`)
        if (outcome._tag === "Nonexistent" || aliases.some((alias) => isWithheld(alias) || isDotless(alias))) return yield* notFound
        if (outcome._tag === "Onward" && Dns.domainName(outcome.name) !== outcome.name)
          return yield* unavailable("a CNAME record leads to what cannot be asked for")
        if (outcome._tag === "Onward") return yield* follow(outcome.name, type, length, left(finding.ttl))
        return outcome.records.map((record) => ({ ...record, ttl: left(record.ttl) }))
      })

      const lookup = Effect.fnUntraced(function* (name: string, type: RecordType) {
        if (isWithheld(name)) return yield* notFound
        if (!isDotless(name) || type === "NS" || type === "SOA") return yield* follow(name, type)
        // A top-level domain has nothing else (SAC053); what a server may know by such a name is a host of its network.
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
