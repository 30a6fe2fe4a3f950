/** Converts records of a DNS message to the operation's format. */
import type { Dns } from "@millrace/core"
import type { Answer } from "dns-packet"

/** The largest time to live, in seconds; a larger one counts as 0 (RFC 2181, section 8). */
const MAX_TTL = 0x7fff_ffff

/** Seconds. */
export const ttlOf = ({ ttl = 0 }: { readonly ttl?: number | undefined }): number => (ttl > MAX_TTL ? 0 : ttl)

/** Bytes of a name that cannot be printed are written as `\` and three decimal digits (RFC 1035, section 5.1). */
const presented = (name: string): string =>
  name.replaceAll(/\\(?!\.)|[^\x21-\x7e]/gu, (character) =>
    character === "\\" ? "\\\\" : [...Buffer.from(character)].map((byte) => `\\${String(byte).padStart(3, "0")}`).join("")
  )

/** The format of RFC 5952, which omits the longest run of zeros. */
const compressed = (ip: string): string => new URL(`http://[${ip}]`).hostname.slice(1, -1)

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textOf = (bytes: Buffer): string => {
  try {
    return utf8.decode(bytes)
  } catch {
    return bytes.toString("latin1")
  }
}

/** Undefined for types that the operation does not support. Optional fields in the types of `dns-packet` are optional for encoding only. */
export const recordOf = (answer: Answer): Dns.DnsRecord | undefined => {
  switch (answer.type) {
    case "A":
      return { type: answer.type, ttl: ttlOf(answer), ip: answer.data }
    case "AAAA":
      return { type: answer.type, ttl: ttlOf(answer), ip: compressed(answer.data) }
    case "MX":
      return { type: answer.type, ttl: ttlOf(answer), exchange: presented(answer.data.exchange), priority: answer.data.preference ?? 0 }
    case "NS":
      return { type: answer.type, ttl: ttlOf(answer), host: presented(answer.data) }
    case "CNAME":
      return { type: answer.type, ttl: ttlOf(answer), host: presented(answer.data) }
    case "TXT":
      return { type: answer.type, ttl: ttlOf(answer), text: textOf(Buffer.concat([answer.data].flat().map((part) => Buffer.from(part)))) }
    case "SOA": {
      const { mname, rname, serial = 0, refresh = 0, retry = 0, expire = 0, minimum = 0 } = answer.data
      return {
        type: answer.type,
        ttl: ttlOf(answer),
        mname: presented(mname),
        rname: presented(rname),
        serial,
        refresh,
        retry,
        expire,
        minimum
      }
    }
    default:
      return undefined
  }
}
