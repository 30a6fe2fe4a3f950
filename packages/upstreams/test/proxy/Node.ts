/** A real proxy node on loopback, its destinations, and clients. */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { createServer as createHttpServer, type RequestListener, request } from "node:http"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import { MasterKey, ProxyNodes, ProxySession, ProxySessions, type SessionsOptions, Vault } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Layer, type Scope, Stream } from "effect"
import { SocksClient } from "socks"
import { type Options, ProxyServer } from "../../src/proxy/ProxyServer.ts"

const tls = new URL("../../../event-store-kurrentdb/test/tls/", import.meta.url)
const pem = (file: string): string => readFileSync(new URL(file, tls), "utf8")
/** Of 127.0.0.1 and localhost. */
export const loopback = { cert: pem("node.pem"), key: pem("node-key.pem") }
export const AUTHORITY = new URL("authority.pem", tls).pathname

export interface Target {
  readonly port: number
  /** Connections that it has seen. */
  readonly sockets: ReadonlyArray<Socket>
  /** The addresses that they came from. */
  readonly from: ReadonlyArray<string | undefined>
}

const listening = (server: Server): Effect.Effect<Target, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly server: Server; readonly target: Target }>((resume) => {
      const sockets: Array<Socket> = []
      const from: Array<string | undefined> = []
      server.on("connection", (socket) => {
        socket.on("error", () => {})
        sockets.push(socket)
        from.push(socket.remoteAddress)
      })
      server.listen(0, "127.0.0.1", () => {
        resume(Effect.succeed({ server, target: { port: (server.address() as AddressInfo).port, sockets, from } }))
      })
    }),
    ({ server, target }) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of target.sockets) socket.destroy()
      })
  ).pipe(Effect.map(({ target }) => target))

export const webServer = (answer: RequestListener) => listening(createHttpServer(answer))
export const tcpServer = (serve: (socket: Socket) => void) => listening(createServer({ allowHalfOpen: true }, serve))

const storesLayer = Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("5c".repeat(32))))

/** The services of one log, as several hosts have them. */
export const log = (options?: SessionsOptions) =>
  Layer.mergeAll(ProxySessions.layer(options), ProxyNodes.layer).pipe(
    Layer.provideMerge(Vault.Vault.layer),
    Layer.provideMerge(storesLayer)
  )

/** The names of destinations, and their addresses in turn. */
export type Names = Readonly<Record<string, ReadonlyArray<string>>>

export interface Given extends Pick<Options, "certificate" | "upstreams" | "connectTimeout"> {
  /** `DE` unless it is given. */
  readonly country?: string | undefined
  /** The only ports of 127.0.0.1 that may be reached. */
  readonly allowed: ReadonlyArray<number>
  readonly names?: Names
  readonly exits?: ReadonlyArray<string>
  readonly handshakeTimeout?: number
  /** Told of a name that is asked for, and then never answered: `slow.test`. */
  readonly resolving?: () => void
}

/** Reaches these ports of this machine and nothing else. */
export const serve = ({ allowed, exits, handshakeTimeout, names = {}, ...given }: Given) => {
  const { certificate = loopback, country = "country" in given ? undefined : "DE", connectTimeout, upstreams = [] } = given
  const asked = new Map<string, number>()
  return ProxyServer.layer({
    http: { host: "127.0.0.1", port: 0 },
    socks: { host: "127.0.0.1", port: 0 },
    certificate,
    upstreams,
    ...(country === undefined ? {} : { country }),
    ...(connectTimeout === undefined ? {} : { connectTimeout }),
    isAllowed: (address, port) => address === "127.0.0.1" && allowed.includes(port),
    resolve: async (name) => {
      if (name === "slow.test" && given.resolving !== undefined) {
        given.resolving()
        return await new Promise<never>(() => {})
      }
      const times = asked.get(name) ?? 0
      asked.set(name, times + 1)
      const address = names[name]?.[Math.min(times, (names[name]?.length ?? 1) - 1)]
      if (address === undefined) throw Object.assign(new Error("unknown"), { code: "ENOTFOUND" })
      return [{ address, family: 4 }]
    },
    ...(exits === undefined ? {} : { exits }),
    ...(handshakeTimeout === undefined ? {} : { handshakeTimeout })
  })
}

/** Runs an effect at a node. */
export const at = (given: Given, options?: SessionsOptions) => Effect.provide(serve(given).pipe(Layer.provideMerge(log(options))))

let made = 0

/** Opens a session as the operation does. */
export const open = Effect.fnUntraced(function* (
  mode: ProxySession.Mode = "sticky",
  ip = "127.0.0.1",
  country = "DE",
  region: string | null = null
) {
  const id = `proxy_01M7YKD46JCP6VGMKADN3${String(++made).padStart(5, "0")}`
  const terms = { accountId: "acc_1", protocol: "http", mode, country, region, host: "127.0.0.1", port: 0, ip } as const
  const { password, session } = yield* ProxySessions.use((sessions) => sessions.open(id, terms))
  return { id, password, session, login: `${id}:${password}` }
})

/** The port of a protocol. */
export const portOf = Effect.fnUntraced(function* (protocol: ProxySession.Protocol) {
  const { endpoints } = yield* ProxyServer
  return endpoints.find((endpoint) => endpoint.protocol === protocol)?.port ?? 0
})

/** The events of all sessions, by type and data. */
export const events = Effect.gen(function* () {
  const { readAll } = yield* EventStore.EventStore
  const all = yield* Stream.runCollect(readAll(EventStore.start))
  return all.map(({ data, type }) => ProxySession.ProxySession.codec.decode(type, data))
})

export interface Curled {
  readonly exit: number
  readonly out: string
}

/** Runs `curl`; its exit code, and what it printed. */
export const curl = (...args: ReadonlyArray<string>): Effect.Effect<Curled> =>
  Effect.callback((resume) => {
    execFile("curl", ["--silent", "--max-time", "10", ...args], (error, out) => {
      resume(Effect.succeed({ exit: typeof error?.code === "number" ? error.code : 0, out }))
    })
  })

interface Login {
  readonly id: string
  readonly password: string
}

/** Opens a tunnel by the package `socks`: its socket, or why there is none. */
export const bySocks = (port: number, { id, password }: Login, host: string, at: number): Effect.Effect<Socket | string> =>
  Effect.promise(() =>
    SocksClient.createConnection({
      proxy: { host: "127.0.0.1", port, type: 5, userId: id, password },
      command: "connect",
      destination: { host, port: at }
    }).then(
      ({ socket }) => socket.on("error", () => {}),
      (error: Error) => error.message
    )
  )

/** Opens a tunnel by CONNECT: its socket, or the status of a refusal; 0 where the node hung up. */
export const byConnect = (port: number, { id, password }: Login, target: string): Effect.Effect<Socket | number> =>
  Effect.callback((resume) => {
    const socket = connect(port, "127.0.0.1", () => {
      const auth = Buffer.from(`${id}:${password}`).toString("base64")
      socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: Basic ${auth}\r\n\r\n`)
    })
    socket.on("error", () => {})
    socket.once("data", (answer) => {
      const status = Number(/^HTTP\/1\.1 (\d+)/u.exec(answer.toString())?.[1])
      resume(Effect.succeed(status === 200 ? socket : status))
      if (status !== 200) socket.destroy()
    })
    socket.once("close", () => resume(Effect.succeed(0)))
  })

/** A plain request through a node: the status, and the body. */
export const get = (
  port: number,
  { id, password }: Login,
  url: string
): Effect.Effect<{ readonly status: number | undefined; readonly body: string }> =>
  Effect.callback((resume) => {
    const headers = { "proxy-authorization": `Basic ${Buffer.from(`${id}:${password}`).toString("base64")}`, host: new URL(url).host }
    request({ host: "127.0.0.1", port, path: url, headers, agent: false }, (answer) => {
      let body = ""
      answer.on("data", (chunk) => {
        body += String(chunk)
      })
      answer.once("close", () => resume(Effect.succeed({ status: answer.statusCode, body })))
    })
      .on("error", (error) => resume(Effect.succeed({ status: undefined, body: error.message })))
      .end()
  })

/** A socket of a tunnel that was opened. */
export const opened = (tunnel: Socket | string | number): Socket => {
  if (typeof tunnel !== "object") throw new Error(`No tunnel was opened: ${tunnel}`)
  return tunnel
}

/** All that a socket receives until it closes. */
export const closed = (socket: Socket): Effect.Effect<string> =>
  Effect.callback((resume) => {
    let received = ""
    socket.on("data", (chunk) => {
      received += chunk.toString()
    })
    const end = () => resume(Effect.succeed(received))
    if (socket.closed) end()
    else socket.once("close", end)
  })

/** The next bytes that a socket receives. */
export const next = (socket: Socket): Effect.Effect<string> =>
  Effect.callback((resume) => {
    socket.once("data", (chunk) => resume(Effect.succeed(chunk.toString())))
  })
