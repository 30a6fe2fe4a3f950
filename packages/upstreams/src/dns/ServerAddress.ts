/** The address of a name server. */
import { isIP } from "node:net"

const PORT = 53

export interface ServerAddress {
  readonly host: string
  readonly family: 4 | 6
  readonly port: number
  /** The address as configured. */
  readonly text: string
}

/** Parses `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[2001:db8::1]:5353`. Undefined for anything else, such as a name. */
export const parse = (text: string): ServerAddress | undefined => {
  const [, bracketed, host = bracketed, digits] = /^(?:\[(.+)\]|([^:[\]]+))(?::([0-9]{1,5}))?$/u.exec(text) ?? [text, undefined, text]
  const port = digits === undefined ? PORT : Number(digits)
  const family = isIP(host ?? "")
  if (host === undefined || port < 1 || port > 65_535 || (bracketed !== undefined && family !== 6)) return undefined
  return family === 4 || family === 6 ? { host, family, port, text } : undefined
}

/** Like `parse`, but throws on a malformed address. */
export const parseOrThrow = (text: string): ServerAddress => {
  const address = parse(text)
  if (address === undefined) throw new Error(`${JSON.stringify(text)} is not the address of a name server`)
  return address
}
