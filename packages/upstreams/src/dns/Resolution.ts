/** Interprets a reply to a question. It follows chains of CNAME records within the reply. */
import type { Dns } from "@millrace/core"
import type { Answer } from "dns-packet"
import { NXDOMAIN, type Question, type Reply } from "./Message.ts"
import { recordOf, ttlOf } from "./Records.ts"

export type Outcome =
  /** Empty if the domain exists but has no record of this type. */
  | { readonly _tag: "Records"; readonly records: ReadonlyArray<Dns.DnsRecord> }
  /** The domain does not exist. */
  | { readonly _tag: "Nonexistent" }
  /** The chain leads to this name, which needs another query. */
  | { readonly _tag: "Unresolved"; readonly name: string }

export interface Resolution {
  /** The names of the chain after the first, in order and in lower case. */
  readonly aliases: ReadonlyArray<string>
  /** The outcome for the last name of the chain. */
  readonly outcome: Outcome
  /** Seconds for which it may be cached. */
  readonly ttl: number
}

/** The most CNAME records that a lookup follows, over all replies. A longer chain counts as a loop. */
export const MAX_LINKS = 8

/** The longest time to cache a negative answer, in seconds (RFC 2308, section 5). */
const MAX_ABSENCE = 3600

/** Interprets a reply. Undefined for a referral to other name servers: the server is not recursive for this host. */
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
