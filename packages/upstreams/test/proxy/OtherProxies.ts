/** Other proxies, for a node that connects through them: real ones, and what clients do at the node. */
import { connect } from "node:net"
import { ProxyNodes, type ProxySession } from "@millrace/core"
import { Effect, type Scope } from "effect"
import { type HttpServerOptions, Server } from "proxy-chain"
import type { UpstreamProxy } from "../../src/proxy/ProxyServer.ts"
import * as Node from "./Node.ts"

export const upstream = (url: string, rest: Partial<UpstreamProxy> = {}): UpstreamProxy => ({ url: new URL(url), country: "FR", ...rest })

export interface Upstream {
  readonly port: number
  /** What it was asked to connect to. */
  readonly asked: ReadonlyArray<string>
}

/** `proxy-chain` as somebody else's proxy, with a password or without; with a certificate it speaks TLS. */
export const httpUpstream = (
  password?: string,
  certificate?: { readonly cert: string; readonly key: string }
): Effect.Effect<Upstream, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const asked: Array<string> = []
      const served: HttpServerOptions = {
        host: "127.0.0.1",
        port: 0,
        prepareRequestFunction: (request) => {
          asked.push(`${request.hostname}:${request.port}`)
          return { requestAuthentication: password !== undefined && request.password !== password }
        }
      }
      const server = new Server(certificate === undefined ? served : { ...served, serverType: "https", httpsOptions: certificate })
      await server.listen()
      return { server, upstream: { port: server.port, asked } }
    }),
    ({ server }) => Effect.promise(() => server.close(true))
  ).pipe(Effect.map(({ upstream }) => upstream))

/** Sends a greeting before it is asked anything, and then what it gets. */
export const greeter = Effect.suspend(() =>
  Node.tcpServer((socket) => {
    socket.write("welcome")
    socket.pipe(socket)
  })
)

/** What a tunnel sends back; it is closed then. */
export const echoed = (tunnel: Parameters<typeof Node.opened>[0]): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const socket = Node.opened(tunnel)
    let received = ""
    socket.on("data", (chunk) => {
      received += String(chunk)
      if (!received.endsWith("hello")) return
      socket.destroy()
      resume(Effect.succeed("hello"))
    })
    socket.write("hello")
  })

/** All that comes until the greeting, where a client says nothing but what it wants. */
export const greeted = (port: number, { id, password }: { readonly id: string; readonly password: string }, target: string) =>
  Effect.callback<string>((resume) => {
    const auth = Buffer.from(`${id}:${password}`).toString("base64")
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: Basic ${auth}\r\n\r\n`)
    )
    let received = ""
    socket.on("data", (chunk) => {
      received += String(chunk)
      if (!received.endsWith("welcome")) return
      socket.destroy()
      resume(Effect.succeed(received.split("\r\n\r\n")[1] ?? ""))
    })
  })

/** The node has no country of its own: every connection goes through an upstream. */
export const via = (allowed: ReadonlyArray<number>, upstreams: ReadonlyArray<UpstreamProxy>, more: Partial<Node.Given> = {}) =>
  Node.at({ allowed, country: undefined, upstreams, ...more })

export const inFrance = (mode: ProxySession.Mode = "rotating", ip?: string) => Node.open(mode, ip, "FR")

export const alive = Effect.map(
  ProxyNodes.use(({ list }) => list),
  (nodes) => nodes.map(({ country, members }) => [country, members])
)

/** Lets sockets be heard while the clock stands still. */
export const turn = Effect.promise(() => new Promise<void>((resume) => setTimeout(resume, 1)))
