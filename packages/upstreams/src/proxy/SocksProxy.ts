/**
 * The SOCKS 5 side of a proxy node: CONNECT, with user name and password (RFC 1928, RFC 1929). A name is resolved here. The whole handshake has
 * one time limit, and reads no byte more than it needs.
 */
import type { Socket } from "node:net"
import { NotConnected, type Reason } from "./Destinations.ts"
import type { Service } from "./HttpProxy.ts"
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

const REPLIES: Readonly<Record<Reason, number>> = {
  forbidden: 2,
  unresolved: 4,
  unreachable: 4,
  timeout: 4,
  refused: 5,
  failed: FAILED,
  noExit: FAILED
}

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

/** Reads a handshake. What follows it stays in the socket. */
class Reader {
  readonly client: Socket
  #wake = () => {}
  // One listener throughout: each new one would be told of bytes that are there already, which may be too few, again and again
  readonly #heard = () => this.#wake()

  constructor(client: Socket) {
    this.client = client
    for (const event of EVENTS) client.on(event, this.#heard)
  }

  /** Reads exactly so many bytes. */
  async take(size: number): Promise<Buffer> {
    while (size > 0) {
      const found: Buffer | null = this.client.read(size)
      if (found?.length === size) return found
      if (found !== null || this.client.readableEnded || this.client.destroyed) throw new Broken()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return Buffer.alloc(0)
  }

  async byte(): Promise<number> {
    return (await this.take(1)).readUInt8()
  }

  /** A text after its length in one byte. */
  async text(): Promise<string> {
    return (await this.take(await this.byte())).toString()
  }

  /** Leaves the socket to others. */
  end(): void {
    for (const event of EVENTS) this.client.off(event, this.#heard)
  }
}

const EVENTS = ["readable", "end", "close"] as const

const agreeOnPassword = async (from: Reader): Promise<void> => {
  if ((await from.byte()) !== VERSION) throw new Broken()
  const methods = await from.take(await from.byte())
  if (!methods.includes(BY_PASSWORD)) throw new Broken([VERSION, NO_METHOD])
  from.client.write(Uint8Array.of(VERSION, BY_PASSWORD))
}

const credentials = async (from: Reader): Promise<readonly [username: string, password: string]> => {
  if ((await from.byte()) !== AUTH_VERSION) throw new Broken([AUTH_VERSION, FAILED])
  return [await from.text(), await from.text()]
}

const hostOf = async (from: Reader, type: number): Promise<string> => {
  if (type === 1) return (await from.take(4)).join(".")
  if (type === 3) return await from.text()
  if (type !== 4) throw new Broken(replyOf(ADDRESS_UNKNOWN))
  const groups = await from.take(16)
  return Array.from({ length: 8 }, (_, i) => groups.readUInt16BE(2 * i).toString(16)).join(":")
}

const destination = async (from: Reader): Promise<readonly [host: string, port: number]> => {
  const [version, command, , type = 0] = await from.take(4)
  if (version !== VERSION) throw new Broken()
  const host = await hostOf(from, type)
  const port = (await from.take(2)).readUInt16BE()
  if (command !== CONNECT) throw new Broken(replyOf(COMMAND_UNKNOWN))
  return [host, port]
}

const open = async (client: Socket, { admit, handshake }: Service): Promise<void> => {
  const timer = setTimeout(() => client.destroy(), handshake)
  client.once("close", () => clearTimeout(timer))
  const from = new Reader(client)
  await agreeOnPassword(from)
  const session = await admit(client.remoteAddress ?? "", ...(await credentials(from)))
  if (session === undefined) throw new Broken([AUTH_VERSION, FAILED])
  client.write(Uint8Array.of(AUTH_VERSION, SUCCEEDED))
  const [host, port] = await destination(from)
  from.end()
  clearTimeout(timer)
  const target = await session.connect(client, host, port)
  client.write(Uint8Array.from(replyOf(SUCCEEDED)))
  client.setTimeout(IDLE, () => client.destroy())
  session.weigh(client, target)
  join(client, target)
}

const replyTo = (error: unknown): Uint8Array | undefined => {
  if (error instanceof Broken) return error.reply
  if (error instanceof NotAdmitted) return Uint8Array.from(error.reason === "full" ? replyOf(NOT_ALLOWED) : [AUTH_VERSION, FAILED])
  return Uint8Array.from(replyOf(error instanceof NotConnected ? REPLIES[error.reason] : FAILED))
}

/** Serves one client. Its socket allows half of it to be closed. */
export const serve = (client: Socket, service: Service): void => {
  client.on("error", () => client.destroy())
  open(client, service).catch((error: unknown) => {
    const reply = replyTo(error)
    if (reply === undefined || client.destroyed) client.destroy()
    // What a client still sends is not read
    else client.end(reply, () => client.destroy())
  })
}
