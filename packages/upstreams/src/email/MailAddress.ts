/** The syntax of e-mail addresses. */
import { Dns } from "@millrace/core"
import email from "validator/lib/isEmail.js"

/** RFC 5321, 4.5.3.1.3, less the two brackets of a path; in octets. */
const MAX_OCTETS = 254

/** Characters that a mail header or a log could take for the end of a line: no address has them. */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u

export interface MailAddress {
  /** As given. */
  readonly local: string
  /** As DNS has it: in lower case and ASCII. */
  readonly domain: string
}

/**
 * Undefined where it is no address. RFC 5321 with the letters of RFC 6531, as `validator` reads it: a local part of at most 64 octets, with
 * or without quotes, and a domain name, never an IP address. Unlike `validator`, refuses control characters, an opening quote alone, and a
 * domain that has no form in DNS.
 */
export const parse = (text: string): MailAddress | undefined => {
  // Half a surrogate pair would make it throw
  if (!text.isWellFormed() || CONTROL.test(text) || Buffer.byteLength(text) > MAX_OCTETS || !email.default(text)) return undefined
  const at = text.lastIndexOf("@")
  const local = text.slice(0, at)
  const domain = Dns.domainName(text.slice(at + 1))
  return local === '"' || domain === undefined ? undefined : { local, domain }
}

/** What follows the last `@` in any text, in lower case; empty where there is none. */
export const domainOf = (text: string): string => (text.includes("@") ? text.slice(text.lastIndexOf("@") + 1).toLowerCase() : "")
