/**
 * Connects to the addresses that `PinnedHost.ts` has checked. Apart from it, so that no published type needs those of undici, and so that
 * undici is loaded with the first request: it takes a host some 50 milliseconds, and many hosts and most commands never make one.
 */
import { Agent, fetch } from "undici"
import { type Address, pinned } from "./PinnedHost.ts"

export { request } from "undici"

/** Opens connections to these addresses only. To be destroyed after use. */
export const agentTo = (addresses: ReadonlyArray<Address>): Agent => new Agent({ pipelining: 0, connect: { lookup: pinned(addresses) } })

/** A `fetch` that connects to these addresses only, and its end, which closes the connections. */
export const fetchTo = (addresses: ReadonlyArray<Address>) => {
  const agent = agentTo(addresses)
  return {
    // The types of undici's own `fetch` differ from the global ones only in name
    fetch: ((input: string, init: object) => fetch(input, { ...init, dispatcher: agent })) as unknown as typeof globalThis.fetch,
    close: () => agent.destroy()
  }
}
