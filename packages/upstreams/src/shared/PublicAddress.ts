/** Which addresses are anybody's: those of the public internet, and nothing behind this host. */
import { isIP } from "node:net"
import ipaddr from "ipaddr.js"

/** IPv6 gives out nothing else (RFC 4291, 2.4); in it are no mapped addresses and no NAT64. */
const GLOBAL = ipaddr.IPv6.parseCIDR("2000::/3")

/** Inside of Azure it is the host itself, for metadata and DNS, though it lies in a public range. */
const PUBLIC_IN_NAME_ONLY = new Set(["168.63.129.16"])

/**
 * Of an address in its usual form. False for private, loopback, link-local, shared (RFC 6598), multicast, documentation and reserved
 * ranges, so for the metadata services of all clouds, too; for IPv4 in IPv6 in any form (mapped, NAT64, 6to4, Teredo); with a zone; and
 * for what is no address.
 */
export const isPublic = (address: string): boolean => {
  if (isIP(address) === 0 || address.includes("%") || PUBLIC_IN_NAME_ONLY.has(address)) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== "unicast") return false
  return parsed instanceof ipaddr.IPv4 || parsed.match(GLOBAL)
}
