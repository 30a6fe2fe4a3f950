/** Connects to the addresses that `PinnedHost.ts` has checked. Apart from it, so that no published type needs those of undici. */
import { Agent } from "undici"
import { type Address, pinned } from "./PinnedHost.ts"

/** Opens connections to these addresses only. To be destroyed after use. */
export const agentTo = (addresses: ReadonlyArray<Address>): Agent => new Agent({ pipelining: 0, connect: { lookup: pinned(addresses) } })
