/** Connects to the addresses that `PinnedHost.ts` has checked. Apart from it, so that no published type needs those of undici. */
import type { LookupFunction } from "node:net"
import { Agent } from "undici"
import type { Address } from "./PinnedHost.ts"

/** Opens connections to these addresses only. To be destroyed after use. */
export const agentTo = (addresses: ReadonlyArray<Address>): Agent => {
  // Node asks for one address or for all
  const pinned: LookupFunction = (_, { all }, callback) => {
    const [first] = addresses
    if (all === true || first === undefined) callback(null, [...addresses])
    else callback(null, first.address, first.family)
  }
  return new Agent({ pipelining: 0, connect: { lookup: pinned } })
}
