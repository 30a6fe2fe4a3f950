/**
 * A KurrentDB node for tests. It speaks the published gRPC protocol over real sockets on the loopback interface, and produces faults on
 * request. It keeps its log in memory, and in a file if one is named. It is not a database: it has no projections, no persistent
 * subscriptions, and no memory limit.
 */
import { createServer, type Server as NetServer, type Socket } from "node:net"
import { status as Code, Server, ServerCredentials } from "@grpc/grpc-js"
import { Clock, Effect, Schema, type Scope } from "effect"
import * as Appends from "./Appends.ts"
import { getSupportedMethods, readGossip } from "./Cluster.ts"
import { Faults } from "./Faults.ts"
import { Log } from "./Log.ts"
import { failure } from "./Messages.ts"
import { type Address, Node } from "./Node.ts"
import { featuresService, gossipService, streamsService } from "./Protocol.ts"
import { read } from "./Reads.ts"

export interface Options {
  /** A free port by default. */
  readonly port?: number
  /** Where the log is kept. A node that is started on it later continues this log. */
  readonly file?: string
  /** Calls that a connection may have open: 100 by default. The next call waits until one of them ends. */
  readonly openCalls?: number
  /** PEM. `clients` is the authority that must have signed the certificates of clients. */
  readonly tls?: { readonly certificate: string; readonly key: string; readonly clients?: string }
  /** Passwords by user. Other callers are refused. */
  readonly users?: Readonly<Record<string, string>>
  /** Makes this node a follower of that one: it has the same log, and redirects calls that need the leader. */
  readonly leader?: KurrentDbStandIn
  /** Whether it has the call BatchAppend, as nodes since 21.10 do: true by default. */
  readonly batchAppend?: boolean
  /** The version that it reports. */
  readonly version?: string
}

export interface KurrentDbStandIn extends Address {
  readonly url: string
  readonly log: Log
  readonly faults: Faults
  /** How often a method was called: `Append`, `BatchAppend`, `Read`, `Subscribe`, `GetSupportedMethods`, `Gossip`, ... */
  readonly calls: (method: string) => number
  /** How many calls of a method are open now. */
  readonly open: (method: string) => number
  /** How many connections are open now. */
  readonly connections: () => number
  /** Breaks every connection, and keeps serving. */
  readonly disconnect: Effect.Effect<void>
  /** Ends every subscription; by default as a node that shuts down, which accepts appends for a while longer. */
  readonly endSubscriptions: (code?: Code, details?: string) => Effect.Effect<void>
  /** The present subscriptions send nothing more, and do not end. */
  readonly muteSubscriptions: Effect.Effect<void>
  /** Where each subscription to the log began. */
  readonly subscribedFrom: ReadonlyArray<bigint>
  /** Position of the checkpoint that was sent last. */
  readonly checkpointed: () => bigint
  /** As `kill -9`: the connections break and the port is closed. */
  readonly kill: Effect.Effect<void>
  readonly follow: (member: Address) => void
}

export class NotServed extends Schema.TaggedError<NotServed>()("NotServed", { reason: Schema.String }) {}

/** Serves until the scope closes, or it is killed. */
export const serve = (options: Options = {}): Effect.Effect<KurrentDbStandIn, NotServed, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const { leader } = options
    const log = leader?.log ?? new Log(options.file)
    const faults = new Faults()
    const sockets = new Map<string, Socket>()
    const drop = (peer: string) => sockets.get(peer)?.resetAndDestroy()
    const node = new Node({ log, faults, now: () => clock.currentTimeMillisUnsafe(), leader, users: options.users, drop })
    const followers: Array<Address> = []
    const members = (): ReadonlyArray<Address> => (leader === undefined ? [self, ...followers] : [leader, self])
    const server = servicesOf(node, options, members)
    const listener = listenerOf(server, sockets, options.tls)
    const self: Address = { host: HOST, port: yield* listen(listener, options.port ?? 0) }
    leader?.follow(self)

    const disconnect = Effect.sync(() => {
      for (const socket of [...sockets.values()]) socket.resetAndDestroy()
    })
    const kill = Effect.suspend(() => {
      const closed = close(listener)
      return Effect.andThen(disconnect, closed)
    })
    const end = Effect.sync(() => {
      server.forceShutdown()
      if (leader === undefined) log.close()
    })
    yield* Effect.addFinalizer(() => Effect.andThen(kill, end))
    return {
      ...self,
      url: `esdb://${HOST}:${self.port}?tls=${options.tls !== undefined}`,
      log,
      faults,
      calls: (method) => node.calls(method),
      open: (method) => node.open(method),
      connections: () => sockets.size,
      disconnect,
      endSubscriptions: (code = Code.INTERNAL, details = "Server is shutting down") =>
        Effect.sync(() => node.endSubscriptions(failure(code, details))),
      muteSubscriptions: Effect.sync(() => node.muteSubscriptions()),
      subscribedFrom: node.subscribedFrom,
      checkpointed: () => node.checkpointed,
      kill,
      follow: (member) => void followers.push(member)
    }
  })

const HOST = "127.0.0.1"

/** `members` are the nodes of the cluster, beginning with the leader. */
const servicesOf = (node: Node, options: Options, members: () => ReadonlyArray<Address>): Server => {
  const { batchAppend = true, openCalls = 100, version = "23.10.6" } = options
  const server = new Server({ "grpc.max_concurrent_streams": openCalls, "grpc.max_receive_message_length": 17 << 20 })
  server.addService(streamsService.StreamsService, {
    append: Appends.append(node),
    ...(batchAppend ? { batchAppend: Appends.batchAppend(node) } : {}),
    read: read(node),
    delete: Appends.deleteStream(node),
    tombstone: Appends.tombstone(node)
  })
  server.addService(featuresService.ServerFeaturesService, { getSupportedMethods: getSupportedMethods(node, version, batchAppend) })
  server.addService(gossipService.GossipService, { read: readGossip(node, members) })
  return server
}

/** Hands each connection to the server, and keeps its socket while it is open. */
const listenerOf = (server: Server, sockets: Map<string, Socket>, tls: Options["tls"]): NetServer => {
  const injector = server.createConnectionInjector(credentialsOf(tls))
  return createServer((socket) => {
    const peer = `${socket.remoteAddress}:${socket.remotePort}`
    sockets.set(peer, socket)
    socket.on("close", () => sockets.delete(peer)).on("error", () => {})
    injector.injectConnection(socket)
  })
}

const credentialsOf = (tls: Options["tls"]): ServerCredentials => {
  if (tls === undefined) return ServerCredentials.createInsecure()
  const pair = { private_key: Buffer.from(tls.key), cert_chain: Buffer.from(tls.certificate) }
  return ServerCredentials.createSsl(tls.clients === undefined ? null : Buffer.from(tls.clients), [pair], tls.clients !== undefined)
}

/** Returns the port. */
const listen = (listener: NetServer, port: number): Effect.Effect<number, NotServed> =>
  Effect.callback((resume) => {
    listener.once("error", (error) => resume(Effect.fail(new NotServed({ reason: error.message }))))
    listener.listen(port, HOST, () => {
      const address = listener.address()
      resume(
        typeof address === "object" && address !== null
          ? Effect.succeed(address.port)
          : Effect.fail(new NotServed({ reason: "The listener has no port" }))
      )
    })
  })

const close = (listener: NetServer): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (!listener.listening) return resume(Effect.void)
    listener.close(() => resume(Effect.void))
  })
