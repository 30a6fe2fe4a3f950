/** The address at which the other hosts of a cluster reach a host: an IP address of this machine or of a private network, and a port. */
import { BlockList, isIP, isIPv6 } from "node:net"

export interface Address {
  readonly host: string
  readonly port: number
}

export const EXPECTED =
  "an address of this machine or of a private network at which the other hosts reach this one, and a port, such as 10.0.0.5:7400 or [fd00::5]:7400"

const PRIVATE: ReadonlyArray<readonly [network: string, prefix: number, family: "ipv4" | "ipv6"]> = [
  ["127.0.0.0", 8, "ipv4"],
  ["10.0.0.0", 8, "ipv4"],
  ["172.16.0.0", 12, "ipv4"],
  ["192.168.0.0", 16, "ipv4"],
  ["169.254.0.0", 16, "ipv4"],
  // Shared address space (RFC 6598), which clouds and overlay networks use
  ["100.64.0.0", 10, "ipv4"],
  ["::1", 128, "ipv6"],
  ["fc00::", 7, "ipv6"]
]
const privateAddresses = new BlockList()
for (const network of PRIVATE) privateAddresses.addSubnet(...network)

const WRITTEN = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[^:]+)):(?<port>\d{1,5})$/u

/** Undefined if the text is not {@link EXPECTED}. Port 0 is any that is free. */
export const parse = (text: string): Address | undefined => {
  const { v4, v6, port = "" } = WRITTEN.exec(text)?.groups ?? {}
  const host = v6 ?? v4 ?? ""
  if (isIP(host) === 0 || isIPv6(host) !== (v6 !== undefined) || Number(port) > 65_535) return undefined
  return privateAddresses.check(host, isIPv6(host) ? "ipv6" : "ipv4") ? { host, port: Number(port) } : undefined
}

export const format = ({ host, port }: Address): string => `${isIPv6(host) ? `[${host}]` : host}:${port}`
