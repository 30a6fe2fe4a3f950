/** The operation that resolves DNS records, and the service that does it. */
import { Context, Effect, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, type NotFound, type UpstreamUnavailable } from "../work/OperationError.ts"

/** The types of records. `ANY` merges the records of all other types. */
export const RecordType = Schema.Literals(["ANY", "A", "AAAA", "MX", "TXT", "NS", "CNAME", "SOA"])
export type RecordType = typeof RecordType.Type

const record = <const Fields extends Schema.Struct.Fields>(type: Exclude<RecordType, "ANY">, fields: Fields) =>
  Schema.Struct({
    /** Set only in a list with records of several types. */
    type: Schema.optionalKey(Schema.Literal(type)),
    /** Seconds for which the record may still be cached. */
    ttl: Schema.Int,
    ...fields
  })

/** RFC 1035, section 3.3.13. */
const soa = {
  mname: Schema.String,
  /** A mailbox in the format of a name: the first label is the local part, with its dots escaped by a backslash. */
  rname: Schema.String,
  serial: Schema.Int,
  /** Seconds, as are the next three. */
  refresh: Schema.Int,
  retry: Schema.Int,
  expire: Schema.Int,
  minimum: Schema.Int
}

/** Names are in presentation format (RFC 1035, section 5.1) without a trailing dot; the root is a single dot. */
export const DnsRecord = Schema.Union([
  record("A", { ip: Schema.String }),
  record("AAAA", { ip: Schema.String }),
  record("MX", { exchange: Schema.String, priority: Schema.Int }),
  record("NS", { host: Schema.String }),
  record("CNAME", { host: Schema.String }),
  /** All strings of the record, joined; decoded as UTF-8 or, if that is invalid, as Latin-1. */
  record("TXT", { text: Schema.String }),
  record("SOA", soa)
])
export type DnsRecord = typeof DnsRecord.Type

export const DnsAnswer = Schema.Struct({
  /** The name in the query to the name servers: in lower case and ASCII. */
  domain: Schema.String,
  type: RecordType,
  /** Empty if the domain exists but has no record of this type. */
  records: Schema.Array(DnsRecord)
})
export type DnsAnswer = typeof DnsAnswer.Type

const LABEL = /^[a-z0-9_-]{1,63}$/u
const MAX_NAME = 253

/** The ASCII form of a name by the browsers' rules for hosts (UTS 46); undefined if they refuse it. */
const asciiOf = (name: string): string | undefined => {
  // `URL` also decodes percent encoding, which could yield a name that the caller did not write
  if (/^[\w.-]*$/u.test(name)) return name
  return /[\0-\x7f]/u.test(name.replaceAll(/[\w.-]/gu, "")) ? undefined : URL.parse(`http://${name}`)?.hostname
}

/**
 * A domain name of at most 253 characters, or `longest`, in the form of a query: in lower case, in ASCII (punycode), without a trailing dot. Undefined for an IP address, the root,
 * and a name with a label that is empty, too long, or has characters other than letters, digits, hyphens and underscores.
 */
export const domainName = (text: string, longest = MAX_NAME): string | undefined => {
  const name = asciiOf(text)?.toLowerCase().replace(/\.$/u, "")
  if (name === undefined || name.length > longest) return undefined
  const labels = name.split(".")
  // No top-level domain is a number (RFC 3696, section 2), but the last part of an IPv4 address is
  return labels.every((label) => LABEL.test(label)) && !/^[0-9]+$/u.test(labels.at(-1) ?? "") ? name : undefined
}

export class DnsResolver extends Context.Service<
  DnsResolver,
  {
    /**
     * Queries the name servers. `NotFound` if they answer that the domain does not exist. `UpstreamUnavailable` if none gives a valid
     * answer: a timeout, SERVFAIL, REFUSED, or a malformed reply.
     */
    readonly resolve: (query: {
      readonly domain: string
      readonly type: RecordType
    }) => Effect.Effect<DnsAnswer, NotFound | UpstreamUnavailable>
  }
>()("@millrace/core/operations/Dns/DnsResolver") {}

export const resolve = Operation.make("dns.resolve", {
  summary: "Resolve the DNS records of a domain",
  price: 0.5,
  route: {
    method: "GET",
    path: "/dns/:domain",
    params: { domain: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(MAX_NAME)) },
    query: { type: RecordType }
  },
  success: DnsAnswer,
  check: ({ domain }) =>
    domainName(domain) === undefined
      ? Effect.fail(new InvalidInput({ field: "domain", message: `${JSON.stringify(domain)} is not a domain name such as "example.com"` }))
      : Effect.void,
  run: Effect.fnUntraced(function* (query) {
    return { data: yield* DnsResolver.use((resolver) => resolver.resolve(query)) }
  }),
  example: {
    input: { domain: "example.com", type: "MX" },
    data: { domain: "example.com", type: "MX", records: [{ ttl: 3600, exchange: "mail.example.com", priority: 10 }] }
  }
})
