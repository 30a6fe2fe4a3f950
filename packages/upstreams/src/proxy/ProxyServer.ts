/** A proxy node: serves the sessions of every host on the log, and announces itself to them, for as long as its scope is open. */
import { createSocket } from "node:dgram"
import { type EventEmitter, once } from "node:events"
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net"
import { Server as TlsServer } from "node:tls"
import type { ProxyNode, ProxyNodes, ProxySessions } from "@millrace/core"
import { Array, Context, type Duration, Effect, Layer, Schema, type Scope } from "effect"
import * as CertificateFiles from "../shared/CertificateFiles.ts"
import * as Announcements from "./Announcements.ts"
import * as Destinations from "./Destinations.ts"
import * as HttpProxy from "./HttpProxy.ts"
import * as LiveSessions from "./LiveSessions.ts"
import * as SocksProxy from "./SocksProxy.ts"
import * as UpstreamPool from "./UpstreamPool.ts"
import type { UpstreamProxy } from "./UpstreamProxy.ts"
import { follow, misfit, type UpstreamSource } from "./Upstreams.ts"

export type { UpstreamProxy } from "./UpstreamProxy.ts"
export type { UpstreamSource } from "./Upstreams.ts"

export interface Listening {
  /** An address of this machine. */
  readonly host: string
  /** 0 for any that is free. */
  readonly port: number
}

export interface Options extends Destinations.DestinationOptions {
  /** Where HTTP proxying is served: CONNECT and plain requests; with a certificate, over TLS on the same port too. */
  readonly http?: Listening
  readonly socks?: Listening
  /** In PEM, or the files of it, which are read again when they change. */
  readonly certificate?: HttpProxy.Certificate | CertificateFiles.CertificateFiles
  /** How often the certificate's files and the source of upstreams are looked at; 10 seconds by default. */
  readonly renew?: Duration.Input
  /** Where connections leave from by themselves: ISO 3166-1 alpha-2, in capitals. Without it, all of them go through `upstreams`. */
  readonly country?: string
  readonly region?: string
  /**
   * Proxies that sessions of their places leave through. They must be of other places than the node's own. A source is read again while the
   * node serves.
   */
  readonly upstreams?: ReadonlyArray<UpstreamProxy> | UpstreamSource
  /** The name or address that clients are told: by default where HTTP, or else SOCKS, is served. */
  readonly publicHost?: string
  /** How long a client may take to say what it wants, in milliseconds: 10,000 by default. */
  readonly handshakeTimeout?: number
  /** Addresses of this machine that connections leave from. By default the system chooses. */
  readonly exits?: ReadonlyArray<string>
}

/** The node cannot listen: the port is in use or not allowed, or the address is not one of this machine. Or its settings do not fit. */
export class CannotServeProxy extends Schema.TaggedError<CannotServeProxy>()("CannotServeProxy", { reason: Schema.String }) {
  override get message(): string {
    return `The proxy cannot be served: ${this.reason}`
  }
}

type Certified = NonNullable<Options["certificate"]>

/** The first byte of a TLS connection (RFC 8446, 5.1). */
const TLS_HANDSHAKE = 0x16

/** The server of proxying over TLS. Its certificate is renewed while it serves, where it comes from files. */
const secureServer = Effect.fnUntraced(function* (
  service: HttpProxy.Service,
  certificate: Certified,
  renew: Duration.Input = "10 seconds"
) {
  if (!("certificate" in certificate)) return HttpProxy.make(service, certificate).server
  const first = yield* Effect.mapError(CertificateFiles.read(certificate), ({ message }) => new CannotServeProxy({ reason: message }))
  const { server } = HttpProxy.make(service, first)
  const apply = (next: CertificateFiles.Certificate) => {
    if (server instanceof TlsServer) server.setSecureContext(next)
  }
  yield* Effect.forkScoped(CertificateFiles.follow("The proxy", certificate, first, renew, apply))
  return server
})

/** Gives connections to a server for HTTP, and those that begin with TLS to another. */
const httpServer = (service: HttpProxy.Service, secure: EventEmitter | undefined): NetServer => {
  const plain = HttpProxy.make(service).server
  if (secure === undefined) return listener((client) => plain.emit("connection", client))
  // Node ends a TLS handshake that stops in the middle seconds too late
  const shaking = new Map<string, NodeJS.Timeout>()
  const forget = (name: string): void => {
    clearTimeout(shaking.get(name))
    shaking.delete(name)
  }
  secure.on("secureConnection", (client: Socket) => forget(nameOf(client)))
  return listener((client) => {
    const name = nameOf(client)
    shaking.set(
      name,
      setTimeout(() => client.destroy(), service.handshake)
    )
    client.on("error", () => client.destroy())
    client.once("close", () => forget(name))
    client.once("data", (first: Buffer) => {
      const isTls = first[0] === TLS_HANDSHAKE
      if (!isTls) forget(name)
      client.pause()
      client.unshift(first)
      ;(isTls ? secure : plain).emit("connection", client)
      process.nextTick(() => client.resume())
    })
  })
}

/** The client's end of a connection, which is the same below TLS and above it. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress}:${remotePort}`

const listener = (serve: (client: Socket) => void): NetServer => createServer({ allowHalfOpen: true, noDelay: true }, serve)

const hostAndPort = ({ host, port }: Listening): string => `${host.includes(":") ? `[${host}]` : host}:${port}`

/** Of all clients at a port. More are refused at once. */
const MAX_CONNECTIONS = 10_000

/** Listens until the scope closes. Then it accepts no further connection, and destroys those that are open. */
const listen = (server: NetServer, at: Listening): Effect.Effect<number, CannotServeProxy, Scope.Scope> => {
  const clients = new Set<Socket>()
  server.on("connection", (client: Socket) => {
    clients.add(client)
    client.once("close", () => clients.delete(client))
  })
  server.maxConnections = MAX_CONNECTIONS
  const open = Effect.tryPromise({
    try: async () => {
      server.listen(at)
      await once(server, "listening")
      return (server.address() as AddressInfo).port
    },
    catch: (error) => {
      const code = error instanceof Error && "code" in error ? String(error.code) : String(error)
      const reason = code === "EADDRINUSE" ? "the port is already in use" : code
      return new CannotServeProxy({ reason: `${hostAndPort(at)}: ${reason}` })
    }
  })
  return Effect.acquireRelease(open, () =>
    Effect.sync(() => {
      server.close()
      for (const client of clients) client.destroy()
    })
  )
}

/** The address that connections of this machine leave from by default. No packet is sent. */
const outgoing = Effect.promise(async () => {
  const socket = createSocket("udp4")
  try {
    // An address of the root servers: only the route counts
    socket.connect(53, "198.41.0.4")
    await once(socket, "connect")
    return socket.address().address
  } catch {
    return undefined
  } finally {
    socket.close()
  }
})

/** Listens for both kinds of proxying, and returns the ports by protocol. */
const listenAll = Effect.fnUntraced(function* (options: Options, service: HttpProxy.Service) {
  const { certificate, http, socks } = options
  const endpoints: Array<ProxyNode["endpoints"][number]> = []
  if (http !== undefined) {
    const secure = certificate === undefined ? undefined : yield* secureServer(service, certificate, options.renew)
    const port = yield* listen(httpServer(service, secure), http)
    endpoints.push({ protocol: "http", port }, ...(certificate === undefined ? [] : [{ protocol: "https" as const, port }]))
  }
  if (socks !== undefined) {
    const port = yield* listen(
      listener((client) => SocksProxy.serve(client, service)),
      socks
    )
    endpoints.push({ protocol: "socks5", port }, { protocol: "socks5h", port })
  }
  if (!Array.isArrayNonEmpty(endpoints)) return yield* new CannotServeProxy({ reason: "nowhere to listen was named" })
  return endpoints
})

const refused = ({ message }: { readonly message: string }) => new CannotServeProxy({ reason: message })

/** Reads the upstreams, which are of other places than the node itself. */
const readUpstreams = Effect.fnUntraced(function* (upstreams: NonNullable<Options["upstreams"]>, own: UpstreamPool.Place | undefined) {
  const read = "read" in upstreams ? yield* Effect.mapError(upstreams.read, refused) : upstreams
  const why = misfit(read, own)
  return why === undefined ? read : yield* new CannotServeProxy({ reason: why })
})

const make = Effect.fnUntraced(function* (options: Options) {
  const { country, exits = [], http, region, socks, upstreams = [] } = options
  const own = country === undefined ? undefined : { country, region }
  const first = yield* readUpstreams(upstreams, own)
  const pools = yield* UpstreamPool.make(first, options.connectTimeout ?? Destinations.CONNECT_TIMEOUT)
  const connect = Destinations.connector(options)
  const live = yield* LiveSessions.make({ connect, addresses: exits, direct: own !== undefined, pools: pools.current, turn: 0 })
  const run = Effect.runPromiseWith(yield* Effect.context<never>())
  const endpoints = yield* listenAll(options, { admit: (...of) => run(live.admit(...of)), handshake: options.handshakeTimeout ?? 10_000 })
  const host = options.publicHost ?? (http ?? socks)?.host ?? ""
  const announcing = { id: live.node, reached: { host, endpoints }, own, exits, address: (yield* outgoing) ?? host, pools }
  const update = yield* Effect.mapError(Announcements.make(announcing), refused)
  const places = Announcements.placesOf(announcing)
  const [place] = places
  if (place === undefined) return yield* new CannotServeProxy({ reason: "neither a country nor upstreams were named" })
  const served = { id: live.node, ...place, places }
  if (!("read" in upstreams)) return { ...served, trouble: () => undefined }
  const every = options.renew ?? "10 seconds"
  const { following, trouble } = follow(upstreams, first, pools, { own, every, update })
  yield* Effect.forkScoped(following)
  return { ...served, trouble }
})

/** A node that serves, as it was announced at first: its first place, and all of them. */
export interface Serving extends ProxyNode {
  readonly id: string
  /** Where its connections leave from: the node's own country, and that of each pool. */
  readonly places: ReadonlyArray<ProxyNode>
  /** Why the upstreams that its source has now are not used; undefined while they are. */
  readonly trouble: () => string | undefined
}

export class ProxyServer extends Context.Service<ProxyServer, Serving>()("@millrace/upstreams/proxy/ProxyServer") {
  static readonly layer = (options: Options): Layer.Layer<ProxyServer, CannotServeProxy, ProxySessions | ProxyNodes> =>
    Layer.effect(this, make(options))
}
