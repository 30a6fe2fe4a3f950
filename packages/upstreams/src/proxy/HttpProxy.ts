/** The HTTP side of a proxy node, by `proxy-chain`: CONNECT, and plain requests. Connections are opened and counted by the session. */
import { Agent, createServer } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { type PrepareRequestFunction, RequestError, Server } from "proxy-chain"
import { NotConnected, type Reason } from "./Destinations.ts"
import { type LiveSession, NotAdmitted } from "./LiveSession.ts"
import { IDLE, join } from "./Tunnel.ts"

/** What both sides of a node need. */
export interface Service {
  readonly admit: (client: string, username: string, password: string) => Promise<LiveSession | undefined>
  /** How long a client may take to say what it wants, in milliseconds. */
  readonly handshake: number
}

/** A certificate and its key, in PEM. */
export interface Certificate {
  readonly cert: string | Buffer
  readonly key: string | Buffer
}

const STATUS: Readonly<Record<Reason, number>> = {
  forbidden: 403,
  unresolved: 502,
  refused: 502,
  unreachable: 502,
  timeout: 504,
  failed: 502,
  noExit: 503
}

const refusalOf = (error: unknown): unknown => {
  if (error instanceof NotConnected) return new RequestError(error.message, STATUS[error.reason])
  if (error instanceof NotAdmitted) return new RequestError(error.message, error.reason === "full" ? 429 : 503)
  return error
}

/** An agent for one request, over a connection that is open. */
class OneConnection extends Agent {
  readonly #target: Socket
  readonly #session: LiveSession

  constructor(target: Socket, session: LiveSession) {
    super({ keepAlive: false })
    this.#target = target
    this.#session = session
  }

  override createConnection(): Duplex {
    this.#session.weigh(this.#target)
    return this.#target.resume()
  }
}

/** The target ends with its client, but not the client with its target: it may send further requests. */
const agentOf = (client: Duplex, target: Socket, session: LiveSession): Agent => {
  const end = () => target.destroy()
  client.once("close", end)
  target.once("close", () => client.off("close", end))
  return new OneConnection(target, session)
}

/** Tunnels of CONNECT: `proxy-chain` hands the client's socket to a server, once it has answered. */
const tunnels = () => {
  const targets = new WeakMap<Duplex, { readonly session: LiveSession; readonly target: Socket }>()
  const server = createServer()
  server.removeAllListeners("connection")
  server.on("connection", (client: Duplex) => {
    const tunnel = targets.get(client)
    if (tunnel === undefined) return void client.destroy()
    tunnel.session.weigh(client, tunnel.target)
    join(client, tunnel.target)
  })
  return { server, targets }
}

/** A server that is not listening: connections are given to it. */
export const make = ({ admit, handshake }: Service, certificate?: Certificate): Server => {
  const { server: tunnel, targets } = tunnels()
  const waiting = new WeakMap<Duplex, NodeJS.Timeout>()

  const prepareRequestFunction: PrepareRequestFunction = async ({ hostname, isHttp, password, port, request, username }) => {
    const client = request.socket
    clearTimeout(waiting.get(client))
    try {
      const session = username === "" ? undefined : await admit(client.remoteAddress ?? "", username, password)
      if (session === undefined) return { requestAuthentication: true }
      const target = await session.connect(client, hostname, port)
      if (isHttp) {
        // It flows when it is piped to its destination
        session.weigh(request.pause())
        return { httpAgent: agentOf(client, target, session) }
      }
      targets.set(client, { session, target })
      return { customConnectServer: tunnel }
    } catch (error) {
      throw refusalOf(error)
    }
  }

  const options = { prepareRequestFunction, authRealm: "proxy" }
  const server =
    certificate === undefined
      ? new Server(options)
      : new Server({ ...options, serverType: "https", httpsOptions: { ...certificate, handshakeTimeout: handshake } })
  server.server.timeout = IDLE
  server.server.on(certificate === undefined ? "connection" : "secureConnection", (client: Socket) => {
    waiting.set(
      client,
      setTimeout(() => client.destroy(), handshake)
    )
    client.once("close", () => clearTimeout(waiting.get(client)))
  })
  return server
}
