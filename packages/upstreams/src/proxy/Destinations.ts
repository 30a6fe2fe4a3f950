/**
 * Connects to the destinations that clients of a proxy choose. A name is resolved once, all its addresses are checked, and the connection goes
 * to a checked address. No connection leads into the network behind this machine, to the machine itself, or to a mail server.
 */
import { createConnection, isIPv6, type Socket } from "node:net"
import { networkInterfaces } from "node:os"
import { Effect } from "effect"
import * as PinnedHost from "../shared/PinnedHost.ts"
import { isPublic } from "../shared/PublicAddress.ts"

/** Why there is no connection. */
export type Reason = "forbidden" | "unresolved" | "refused" | "unreachable" | "timeout" | "failed" | "noExit"

export class NotConnected extends Error {
  override readonly name = "NotConnected"
  readonly reason: Reason

  constructor(reason: Reason) {
    super(MESSAGES[reason])
    this.reason = reason
  }
}

/** For clients. They are the same for every forbidden address, so they reveal nothing of the internal network. */
const MESSAGES: Readonly<Record<Reason, string>> = {
  forbidden: "This destination is not allowed",
  unresolved: "The name servers of the destination do not answer",
  refused: "The destination refused the connection",
  unreachable: "The destination cannot be reached",
  timeout: "The destination does not answer",
  failed: "The connection failed",
  noExit: "No upstream proxy of the session's place answers now"
}

export interface DestinationOptions extends Pick<PinnedHost.Options, "resolve"> {
  /** Allowed destinations: by default public addresses that are not this machine's. Mail ports are refused in any case. */
  readonly isAllowed?: (address: string, port: number) => boolean
  /** How long a connection may take, in milliseconds: 10,000 by default. */
  readonly connectTimeout?: number
}

/** Milliseconds. */
export const CONNECT_TIMEOUT = 10_000

/** Submission and relay of mail: the exit addresses would be listed for spam. */
const MAIL_PORTS: ReadonlySet<number> = new Set([25, 465, 587])

/** A firewall often trusts what comes from the machine itself, also to its public address. */
const isOwn = (address: string): boolean =>
  Object.values(networkInterfaces()).some((own) => own?.some((entry) => entry.address === address))

const isForeign = (address: string): boolean => isPublic(address) && !isOwn(address)

const NAME = /^[\p{L}\p{M}\p{N}._-]{1,255}$/u
const LITERAL = /^\[[0-9a-fA-F:.]{2,45}\]$/u

/** The host as browsers read it: in lower case and ASCII, and an IPv4 address in any notation with dots. */
const urlOf = (host: string): URL | null => {
  if (isIPv6(host)) return URL.parse(`http://[${host}]`)
  // A port, a path or a user within it would be somebody else's
  return NAME.test(host) || LITERAL.test(host) ? URL.parse(`http://${host}`) : null
}

const addressesOf = async (host: string, port: number, options: DestinationOptions): Promise<ReadonlyArray<PinnedHost.Address>> => {
  const url = urlOf(host)
  if (url === null || MAIL_PORTS.has(port) || port < 1 || port > 65_535) throw new NotConnected("forbidden")
  const { isAllowed = isForeign, resolve } = options
  const checked = PinnedHost.addressesOf(url, {
    isAllowed: (address) => isAllowed(address, port),
    ...(resolve === undefined ? {} : { resolve })
  })
  const found = await Effect.runPromise(Effect.match(checked, { onFailure: (trouble) => trouble, onSuccess: (addresses) => addresses }))
  if (typeof found === "string") throw new NotConnected(found === "refused" ? "forbidden" : "unresolved")
  return found
}

const REASONS: Readonly<Record<string, Reason>> = {
  ECONNREFUSED: "refused",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  EADDRNOTAVAIL: "unreachable",
  ETIMEDOUT: "timeout"
}

const reasonOf = (error: unknown): Reason => {
  if (error instanceof AggregateError) return reasonOf(error.errors.at(-1))
  return (error instanceof Error && "code" in error && REASONS[String(error.code)]) || "failed"
}

const familyOf = (exit: string): 4 | 6 => (isIPv6(exit) ? 6 : 4)

const connect = (
  addresses: ReadonlyArray<PinnedHost.Address>,
  port: number,
  exit: string | undefined,
  timeLimit: number
): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({
      host: "pinned",
      port,
      lookup: PinnedHost.pinned(addresses),
      allowHalfOpen: true,
      noDelay: true,
      ...(exit === undefined ? {} : { localAddress: exit })
    })
    const failed = (reason: Reason) => {
      clearTimeout(timer)
      socket.destroy()
      reject(new NotConnected(reason))
    }
    const timer = setTimeout(() => failed("timeout"), timeLimit)
    const onError = (error: Error) => failed(reasonOf(error))
    socket.once("error", onError)
    socket.once("connect", () => {
      clearTimeout(timer)
      socket.off("error", onError)
      resolve(socket)
    })
  })

/** How a connection leaves: from an address of this machine, through somebody else's proxy, or from where the system chooses. */
export type Leave = string | ((address: string, port: number) => Promise<Socket>) | undefined

/** Upstreams often have no IPv6. */
const preferred = (addresses: ReadonlyArray<PinnedHost.Address>): PinnedHost.Address | undefined =>
  addresses.find(({ family }) => family === 4) ?? addresses[0]

/** Opens a connection to a destination. It is checked here also where another proxy connects. Rejects with {@link NotConnected}. */
export const connector =
  (options: DestinationOptions = {}) =>
  async (host: string, port: number, leave?: Leave): Promise<Socket> => {
    const found = await addressesOf(host, port, options)
    if (typeof leave === "function") return await leave(preferred(found)?.address ?? "", port)
    const addresses = leave === undefined ? found : found.filter(({ family }) => family === familyOf(leave))
    if (addresses.length === 0) throw new NotConnected("unreachable")
    return await connect(addresses, port, leave, options.connectTimeout ?? CONNECT_TIMEOUT)
  }

export type Connect = ReturnType<typeof connector>
