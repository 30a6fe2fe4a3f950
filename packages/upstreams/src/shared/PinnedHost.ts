/**
 * Connects to addresses that others choose, safely: a name is resolved once, all its addresses are checked, and the connection goes to a
 * checked address. So a later change of DNS has no effect.
 */
import { lookup } from "node:dns/promises"
import type { LookupFunction } from "node:net"
import { Effect } from "effect"
import { isPublic } from "./PublicAddress.ts"

export interface Address {
  readonly address: string
  readonly family: 4 | 6
}

export interface Options {
  /** Allowed addresses; public ones by default. */
  readonly isAllowed?: (address: string) => boolean
  /** All addresses of a name; the system's resolver by default. */
  readonly resolve?: (name: string) => Promise<ReadonlyArray<Address>>
}

const system = async (name: string): Promise<ReadonlyArray<Address>> =>
  (await lookup(name, { all: true })).map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))

/** A resolver for sockets that knows these addresses only, whatever the name. */
export const pinned =
  (addresses: ReadonlyArray<Address>): LookupFunction =>
  (_, { all }, callback) => {
    // Node asks for one address or for all
    const [first] = addresses
    if (all === true || first === undefined) callback(null, [...addresses])
    else callback(null, first.address, first.family)
  }

/** The codes of an unknown name, which is the caller's error. Any other failure is the resolver's. */
const isUnknown = (cause: unknown): boolean => cause instanceof Error && "code" in cause && cause.code === "ENOTFOUND"

/** Hosts that end in a number are IPv4 to `URL`, which has written them with dots (WHATWG URL, 3.5). */
export const isLiteral = (hostname: string): boolean => hostname.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/u.test(hostname)

/**
 * The addresses of a URL's host, all of them checked. An IP address stands for itself; `URL` has normalised its form. `refused`: the name is
 * unknown, or one of its addresses is not allowed. `unresolved`: its name servers do not answer.
 */
export const addressesOf = (
  { hostname }: URL,
  { isAllowed = isPublic, resolve = system }: Options
): Effect.Effect<ReadonlyArray<Address>, "refused" | "unresolved"> =>
  Effect.gen(function* () {
    const literal = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname
    const addresses = isLiteral(hostname)
      ? [{ address: literal, family: hostname.startsWith("[") ? (6 as const) : (4 as const) }]
      : yield* Effect.tryPromise({
          try: () => resolve(hostname),
          catch: (cause) => (isUnknown(cause) ? ("refused" as const) : ("unresolved" as const))
        })
    if (addresses.length === 0 || !addresses.every(({ address }) => isAllowed(address))) return yield* Effect.fail("refused" as const)
    return addresses
  })
