/** The meaning of a reply for its question: it may concern another name, to which a chain of CNAME records leads. */
import type { Dns } from "@millrace/core"
import type { Answer } from "dns-packet"
import { NXDOMAIN, type Question, type Reply } from "./Message.ts"
import { recordOf, ttlOf } from "./Records.ts"

export type Outcome =
  /** Empty where the domain exists, but has none of this type. */
  | { readonly _tag: "Records"; readonly records: ReadonlyArray<Dns.DnsRecord> }
  /** There is no such domain. */
  | { readonly _tag: "Nonexistent" }
  /** The chain leads to this name, which the reply does not resolve: another query has to. */
  | { readonly _tag: "Unresolved"; readonly name: string }

export interface Resolution {
  /** The names of the chain after the first, in order and in lower case. */
  readonly aliases: ReadonlyArray<string>
  /** Of the last name of the chain. */
  readonly outcome: Outcome
  /** Seconds for which it may be cached. */
  readonly ttl: number
}

/** CNAME records that one lookup follows, in one reply or several; a longer chain is taken for a loop. */
export const MAX_LINKS = 8

/** The longest time to cache that there is no such record, in seconds (RFC 2308, section 5). */
const MAX_ABSENCE = 3600

/** Undefined where the reply refers to other name servers: the server does not resolve names for us. */
export const make = (question: Question, { rcode, answers, authorities }: Reply): Resolution | undefined => {
  const aliases: Array<string> = []
  let name = question.name
  let ttl = Number.POSITIVE_INFINITY
  const until = (seconds: number, outcome: Outcome): Resolution => ({ aliases, outcome, ttl: Math.min(ttl, seconds) })

  while (aliases.length <= MAX_LINKS) {
    const here = answers.filter((answer) => isIn(answer) && answer.name.toLowerCase() === name)
    const records = here.flatMap((answer) => (answer.type === question.type ? (recordOf(answer) ?? []) : []))
    if (records.length > 0) {
      const capped = records.map((record) => ({ ...record, ttl: Math.min(ttl, record.ttl) }))
      return until(Math.min(...capped.map((record) => record.ttl)), { _tag: "Records", records: capped })
    }
    const alias = here.find(({ type }) => type === "CNAME")
    if (alias?.type !== "CNAME") break
    ttl = Math.min(ttl, ttlOf(alias))
    name = alias.data.toLowerCase()
    aliases.push(name)
  }

  const proof = authorities.find((authority) => authority.type === "SOA" && isWithin(name, authority.name.toLowerCase()))
  const absence = proof?.type === "SOA" ? Math.min(ttlOf(proof), proof.data.minimum ?? 0, MAX_ABSENCE) : 0
  if (rcode === NXDOMAIN) return until(absence, { _tag: "Nonexistent" })
  if (aliases.length > 0 && proof === undefined) return until(ttl, { _tag: "Unresolved", name })
  if (proof === undefined && authorities.some(({ type }) => type === "NS")) return undefined
  return until(absence, { _tag: "Records", records: [] })
}

const isIn = (answer: Answer): boolean => answer.type !== "OPT" && answer.class === "IN"

/** Whether a name is this domain, or below it. */
export const isWithin = (name: string, domain: string): boolean => domain === "." || name === domain || name.endsWith(`.${domain}`)
