/**
 * The SOCKS 5 side of a proxy node: CONNECT, with user name and password (RFC 1928, RFC 1929). A name is resolved here. The whole handshake has
 * one time limit, and reads no byte more than it needs.
 */
import type { Socket } from "node:net"
import { NotConnected, type Reason } from "./Destinations.ts"
import { type Admit, HANDSHAKE } from "./HttpProxy.ts"
import { NotAdmitted } from "./LiveSession.ts"
import { IDLE, join } from "./Tunnel.ts"

const VERSION = 5
const AUTH_VERSION = 1
const BY_PASSWORD = 2
const NO_METHOD = 0xff
const CONNECT = 1

const SUCCEEDED = 0
const FAILED = 1
const NOT_ALLOWED = 2
const COMMAND_UNKNOWN = 7
const ADDRESS_UNKNOWN = 8

const REPLIES: Readonly<Record<Reason, number>> = { forbidden: 2, unresolved: 4, unreachable: 4, timeout: 4, refused: 5, failed: FAILED }

/** The client broke the protocol, or left. With `reply`, it is told. */
class Broken extends Error {
  override readonly name = "Broken"
  readonly reply: Uint8Array | undefined

  constructor(reply?: ReadonlyArray<number>) {
    super("The handshake failed")
    this.reply = reply === undefined ? undefined : Uint8Array.from(reply)
  }
}

/** A reply without an address of ours, which clients do not use. */
const replyOf = (code: number): ReadonlyArray<number> => [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]

/** Waits until there may be more to read, or no more will come. */
const more = (client: Socket): Promise<void> =>
  new Promise((resolve) => {
    const events = ["readable", "end", "close"] as const
    const heard = () => {
      for (const event of events) client.off(event, heard)
      resolve()
    }
    for (const event of events) client.on(event, heard)
  })

/** Reads exactly so many bytes. What follows stays in the socket. */
const take = async (client: Socket, size: number): Promise<Buffer> => {
  for (; size > 0; ) {
    const found: Buffer | null = client.read(size)
    if (found?.length === size) return found
    if (found !== null || client.readableEnded || client.destroyed) throw new Broken()
    await more(client)
  }
  return Buffer.alloc(0)
}

const byte = async (client: Socket): Promise<number> => (await take(client, 1)).readUInt8()

/** A text after its length in one byte. */
const text = async (client: Socket): Promise<string> => (await take(client, await byte(client))).toString()

const agreeOnPassword = async (client: Socket): Promise<void> => {
  if ((await byte(client)) !== VERSION) throw new Broken()
  const methods = await take(client, await byte(client))
  if (!methods.includes(BY_PASSWORD)) throw new Broken([VERSION, NO_METHOD])
  client.write(Uint8Array.of(VERSION, BY_PASSWORD))
}

const credentials = async (client: Socket): Promise<readonly [username: string, password: string]> => {
  if ((await byte(client)) !== AUTH_VERSION) throw new Broken([AUTH_VERSION, FAILED])
  return [await text(client), await text(client)]
}

const hostOf = async (client: Socket, type: number): Promise<string> => {
  if (type === 1) return (await take(client, 4)).join(".")
  if (type === 3) return await text(client)
  if (type !== 4) throw new Broken(replyOf(ADDRESS_UNKNOWN))
  const groups = await take(client, 16)
  return Array.from({ length: 8 }, (_, i) => groups.readUInt16BE(2 * i).toString(16)).join(":")
}

const destination = async (client: Socket): Promise<readonly [host: string, port: number]> => {
  const [version, command, , type = 0] = await take(client, 4)
  if (version !== VERSION) throw new Broken()
  const host = await hostOf(client, type)
  const port = (await take(client, 2)).readUInt16BE()
  if (command !== CONNECT) throw new Broken(replyOf(COMMAND_UNKNOWN))
  return [host, port]
}

const open = async (client: Socket, admit: Admit): Promise<void> => {
  const timer = setTimeout(() => client.destroy(), HANDSHAKE)
  client.once("close", () => clearTimeout(timer))
  await agreeOnPassword(client)
  const session = await admit(client.remoteAddress ?? "", ...(await credentials(client)))
  if (session === undefined) throw new Broken([AUTH_VERSION, FAILED])
  client.write(Uint8Array.of(AUTH_VERSION, SUCCEEDED))
  const [host, port] = await destination(client)
  clearTimeout(timer)
  const target = await session.connect(client, host, port)
  client.write(Uint8Array.from(replyOf(SUCCEEDED)))
  client.setTimeout(IDLE, () => client.destroy())
  join(client, target)
}

const replyTo = (error: unknown): Uint8Array | undefined => {
  if (error instanceof Broken) return error.reply
  if (error instanceof NotAdmitted) return Uint8Array.from(replyOf(NOT_ALLOWED))
  return Uint8Array.from(replyOf(error instanceof NotConnected ? REPLIES[error.reason] : FAILED))
}

/** Serves one client. Its socket allows half of it to be closed. */
export const serve = (client: Socket, admit: Admit): void => {
  client.on("error", () => client.destroy())
  open(client, admit).catch((error: unknown) => {
    const reply = replyTo(error)
    if (reply === undefined || client.destroyed) client.destroy()
    // What a client still sends is not read
    else client.end(reply, () => client.destroy())
  })
}
