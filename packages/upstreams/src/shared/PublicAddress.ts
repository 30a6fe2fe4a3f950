/** Tells public IP addresses from those of the network behind this host. */
import { isIP } from "node:net"
import ipaddr from "ipaddr.js"

/** All global unicast addresses of IPv6 (RFC 4291, 2.4); mapped and NAT64 addresses lie outside. */
const GLOBAL = ipaddr.IPv6.parseCIDR("2000::/3")

/** Azure's address for metadata and DNS of the host, in a public range. */
const PUBLIC_IN_NAME_ONLY = new Set(["168.63.129.16"])

/**
 * Takes an address in its canonical form. False for private, loopback, link-local, shared (RFC 6598), multicast, documentation and reserved
 * ranges, and so for the metadata services of all clouds; for IPv4 in IPv6 in any form (mapped, NAT64, 6to4, Teredo); with a zone; and
 * for any other text.
 */
export const isPublic = (address: string): boolean => {
  if (isIP(address) === 0 || address.includes("%") || PUBLIC_IN_NAME_ONLY.has(address)) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== "unicast") return false
  return parsed instanceof ipaddr.IPv4 || parsed.match(GLOBAL)
}
