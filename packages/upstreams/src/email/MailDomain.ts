/** The mail routing of a domain, from DNS, and the score of an address there. */
import type { Dns, UpstreamUnavailable } from "@millrace/core"
import { Effect } from "effect"
import domainName from "validator/lib/isFQDN.js"

export interface MailDomain {
  /** The destination of mail (RFC 5321, 5.1): hosts of MX records, the domain's own address, or none. */
  readonly delivery: "mx" | "address" | "none"
  /** Whether the domain has both NS and SOA, as the top of a zone has, or neither, as names below it. */
  readonly healthy: boolean
}

const NOWHERE: MailDomain = { delivery: "none", healthy: true }

/** Whether a name is that of a mail host. The root (null MX, RFC 7505), IP addresses and `localhost` are not. */
const isHost = (name: string): boolean => domainName.default(name, { allow_trailing_dot: true, allow_underscores: true })

/**
 * Queries MX, and other records only if mail can be delivered. A domain whose MX records name no host accepts no mail, even if it has an
 * address. `UpstreamUnavailable` if a necessary query is not answered.
 */
export const inspect = Effect.fnUntraced(function* (
  resolver: (typeof Dns.DnsResolver)["Service"],
  domain: string
): Effect.fn.Return<MailDomain, UpstreamUnavailable> {
  /** Undefined if the domain does not exist. */
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

export interface Findings extends MailDomain {
  readonly disposable: boolean
  readonly role: boolean
}

// In hundredths, which add up exactly
const DELIVERY: Readonly<Record<MailDomain["delivery"], number>> = { mx: 90, address: 50, none: 0 }
const ROLE = 15
const UNSOUND = 10
const MOST_IF_DISPOSABLE = 10

/** From 0 to 1. It is 0 if and only if mail cannot be delivered. */
export const scoreOf = ({ delivery, healthy, disposable, role }: Findings): number => {
  const score = Math.max(0, DELIVERY[delivery] - (role ? ROLE : 0) - (healthy ? 0 : UNSOUND))
  return (disposable ? Math.min(score, MOST_IF_DISPOSABLE) : score) / 100
}
