/** What DNS says of the mail of a domain. */
import type { Dns, UpstreamUnavailable } from "@millrace/core"
import { Effect } from "effect"
import domainName from "validator/lib/isFQDN.js"

export interface MailDomain {
  /** Where mail goes (RFC 5321, 5.1): to hosts that MX records name, to the domain's own address, or nowhere. */
  readonly delivery: "mx" | "address" | "none"
  /** Whether the domain has both NS and SOA, as the top of a zone has, or neither, as names below it. */
  readonly healthy: boolean
}

const NOWHERE: MailDomain = { delivery: "none", healthy: true }

/** The name of a host. The root, which says that a domain takes no mail (RFC 7505), is none; nor are an IP address and `localhost`. */
const isHost = (name: string): boolean => domainName.default(name, { allow_trailing_dot: true, allow_underscores: true })

/**
 * Asks for MX, and for other records only where mail can be delivered. A domain whose MX records name no host takes no mail, even where it
 * has an address. `UpstreamUnavailable` where a query that matters is not answered.
 */
export const inspect = Effect.fnUntraced(function* (
  resolver: (typeof Dns.DnsResolver)["Service"],
  domain: string
): Effect.fn.Return<MailDomain, UpstreamUnavailable> {
  /** Undefined where there is no such domain. */
  const ask = (type: Dns.RecordType) =>
    resolver.resolve({ domain, type }).pipe(
      Effect.map(({ records }) => records),
      Effect.catchTag("NotFound", () => Effect.undefined)
    )
  const has = (type: Dns.RecordType) => Effect.map(ask(type), (records = []) => records.length > 0)

  const exchanges = yield* ask("MX")
  if (exchanges === undefined) return NOWHERE
  if (exchanges.length > 0 && !exchanges.some((record) => "exchange" in record && isHost(record.exchange))) return NOWHERE
  if (exchanges.length === 0 && !(yield* has("A")) && !(yield* has("AAAA"))) return NOWHERE
  const [ns, soa] = yield* Effect.all([has("NS"), has("SOA")], { concurrency: 2 })
  return { delivery: exchanges.length > 0 ? "mx" : "address", healthy: ns === soa }
})
