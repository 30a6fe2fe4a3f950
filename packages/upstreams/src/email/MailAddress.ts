/** Parses e-mail addresses. */
import { Dns } from "@millrace/core"
import email from "validator/lib/isEmail.js"

/** RFC 5321, 4.5.3.1.3, less the two brackets of a path; in octets. */
const MAX_OCTETS = 254

/** Characters that a mail header or a log could treat as the end of a line. No address has them. */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u

export interface MailAddress {
  /** As given. */
  readonly local: string
  /** As DNS has it: in lower case and ASCII. */
  readonly domain: string
}

/**
 * Parses an address by RFC 5321 with the letters of RFC 6531, as `validator` does: a local part of at most 64 octets, quoted or not, and a
 * domain name, never an IP address. Unlike `validator`, it also refuses control characters, an unclosed quote, and a domain without a DNS
 * form. Undefined if the address is malformed.
 */
export const parse = (text: string): MailAddress | undefined => {
  // Half a surrogate pair would make it throw
  if (!text.isWellFormed() || CONTROL.test(text) || Buffer.byteLength(text) > MAX_OCTETS || !email.default(text)) return undefined
  const at = text.lastIndexOf("@")
  const local = text.slice(0, at)
  const domain = Dns.domainName(text.slice(at + 1))
  return local === '"' || domain === undefined ? undefined : { local, domain }
}

/** The text after the last `@`, in lower case; empty without an `@`. */
export const domainOf = (text: string): string => (text.includes("@") ? text.slice(text.lastIndexOf("@") + 1).toLowerCase() : "")
