/** DNS lookups. */
import { Context, Effect, Schema } from "effect"
import * as Operation from "./Operation.ts"
import type { NotFound, UpstreamUnavailable } from "./OperationError.ts"

/** What can be asked for; `ANY` is all of the others, merged. */
export const RecordType = Schema.Literals(["ANY", "A", "AAAA", "MX", "TXT", "NS", "CNAME", "SOA"])
export type RecordType = typeof RecordType.Type

const record = <const Fields extends Schema.Struct.Fields>(type: Exclude<RecordType, "ANY">, fields: Fields) =>
  Schema.Struct({
    /** Told where the records of several types stand together. */
    type: Schema.optionalKey(Schema.Literal(type)),
    /** Seconds for which the answer may still be kept. */
    ttl: Schema.Int,
    ...fields
  })

/** RFC 1035, section 3.3.13. */
const soa = {
  mname: Schema.String,
  rname: Schema.String,
  serial: Schema.Int,
  /** Seconds, as are the three that follow. */
  refresh: Schema.Int,
  retry: Schema.Int,
  expire: Schema.Int,
  minimum: Schema.Int
}

export const DnsRecord = Schema.Union([
  record("A", { ip: Schema.String }),
  record("AAAA", { ip: Schema.String }),
  record("MX", { exchange: Schema.String, priority: Schema.Int }),
  record("NS", { host: Schema.String }),
  record("CNAME", { host: Schema.String }),
  record("TXT", { text: Schema.String }),
  record("SOA", soa)
])
export type DnsRecord = typeof DnsRecord.Type

export const DnsAnswer = Schema.Struct({
  domain: Schema.String,
  type: RecordType,
  /** Empty when the domain exists, but has none of this type. */
  records: Schema.Array(DnsRecord)
})
export type DnsAnswer = typeof DnsAnswer.Type

export class DnsResolver extends Context.Service<
  DnsResolver,
  {
    /**
     * Asks the name servers. `NotFound` when they say that there is no such domain; `UpstreamUnavailable` when none said either yes or
     * no: a timeout, SERVFAIL, REFUSED, or nothing that is an answer to the question.
     */
    readonly resolve: (query: {
      readonly domain: string
      readonly type: RecordType
    }) => Effect.Effect<DnsAnswer, NotFound | UpstreamUnavailable>
  }
>()("@millrace/core/operations/Dns/DnsResolver") {}

export const resolve = Operation.make("dns.resolve", {
  summary: "Resolve the DNS records of a domain",
  route: {
    method: "GET",
    path: "/dns/:domain",
    params: { domain: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(253)) },
    query: { type: RecordType }
  },
  success: DnsAnswer,
  run: Effect.fnUntraced(function* (query) {
    const resolver = yield* DnsResolver
    return { data: yield* resolver.resolve(query) }
  })
})
