/** What a reply says about a question: it may say so of another name, to which a chain of CNAME records leads. */
import type { Dns } from "@millrace/core"
import type { Answer } from "dns-packet"
import { NXDOMAIN, type Question, type Reply } from "./Message.ts"
import { recordOf, ttlOf } from "./Records.ts"

export type Outcome =
  /** None when the domain exists, but has none of this type. */
  | { readonly _tag: "Records"; readonly records: ReadonlyArray<Dns.DnsRecord> }
  /** There is no such domain. */
  | { readonly _tag: "Nonexistent" }
  /** Nothing is said about this name, to which the chain leads: it is to be asked for. */
  | { readonly _tag: "Onward"; readonly name: string }

export interface Finding {
  /** The names that the chain leads to, in lower case and order. */
  readonly aliases: ReadonlyArray<string>
  /** Of the name at the chain's end. */
  readonly outcome: Outcome
  /** Seconds for which all of this holds. */
  readonly ttl: number
}

/** As many links as a chain may have, in one reply or several: more is a loop, or might as well be one. */
export const MAX_LINKS = 8

/** For how long something may be absent, at most, before it is asked for again: RFC 2308, section 5. */
const MAX_ABSENCE = 3600

/** Nothing when the reply sends one to other name servers: it comes from one that does not resolve. */
export const make = (question: Question, { rcode, answers, authorities }: Reply): Finding | undefined => {
  const aliases: Array<string> = []
  let name = question.name
  let ttl = Number.POSITIVE_INFINITY
  const until = (seconds: number, outcome: Outcome): Finding => ({ aliases, outcome, ttl: Math.min(ttl, seconds) })

  while (aliases.length <= MAX_LINKS) {
    const here = answers.filter((answer) => isIn(answer) && answer.name.toLowerCase() === name)
    const records = here.flatMap((answer) => (answer.type === question.type ? (recordOf(answer) ?? []) : []))
    if (records.length > 0) {
      const told = records.map((record) => ({ ...record, ttl: Math.min(ttl, record.ttl) }))
      return until(Math.min(...told.map((record) => record.ttl)), { _tag: "Records", records: told })
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
  if (aliases.length > 0 && proof === undefined) return until(ttl, { _tag: "Onward", name })
  if (proof === undefined && authorities.some(({ type }) => type === "NS")) return undefined
  return until(absence, { _tag: "Records", records: [] })
}

const isIn = (answer: Answer): boolean => answer.type !== "OPT" && answer.class === "IN"

/** Whether a name is this domain, or below it. */
export const isWithin = (name: string, domain: string): boolean => domain === "." || name === domain || name.endsWith(`.${domain}`)
