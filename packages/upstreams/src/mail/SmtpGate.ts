/**
 * Accepts connections for an SMTP server: a bounded number, of each client and of all, each for a bounded time. Refuses others with 421, as
 * it does with all once the server closes.
 */
import { createServer, type Server, type Socket } from "node:net"
import { clientOf } from "@millrace/core"
import { Clock, Effect } from "effect"
import { Rate } from "./Rate.ts"
import { CLOSING, TOO_MANY_CONNECTIONS } from "./SmtpAnswers.ts"

export interface GateLimits {
  /** Connections at once. */
  readonly connections: number
  /** Connections at once of one client: an IPv4 address, or the /64 network of an IPv6 address. */
  readonly connectionsOfClient: number
  /** New connections of one client. */
  readonly connectionsPerMinute: number
}

export interface Gate {
  readonly host: string
  readonly port: number
  /** Connections now. */
  readonly size: () => number
  /** From now on each new connection is refused. */
  readonly refuseAll: () => void
  /** Waits until there is no connection. */
  readonly emptied: Effect.Effect<void>
  /** The connections that began before an instant, in milliseconds since 1970. */
  readonly olderThan: (instant: number) => ReadonlyArray<Socket>
}

/** Why it does not listen, such as `EADDRINUSE`. */
export type ListenFailure = string

/** Listens until the scope closes, then destroys what is left. `accept` gets each connection that is not refused. */
export const open = (
  { host, port, implicitTls }: { readonly host: string; readonly port: number; readonly implicitTls: boolean },
  limits: GateLimits,
  accept: (socket: Socket) => void
) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const rate = new Rate(limits.connectionsPerMinute)
    const sockets = new Map<Socket, number>()
    const clients = new Map<string, number>()
    const waiting = new Set<() => void>()
    let closing = false

    const enter = (socket: Socket): void => {
      const client = clientOf(socket.remoteAddress ?? "")
      const own = clients.get(client) ?? 0
      const now = clock.currentTimeMillisUnsafe()
      socket.on("error", () => socket.destroy())
      if (closing) return refuse(socket, CLOSING, implicitTls)
      if (sockets.size >= limits.connections || own >= limits.connectionsOfClient || !rate.take(client, now))
        return refuse(socket, TOO_MANY_CONNECTIONS, implicitTls)
      sockets.set(socket, now)
      clients.set(client, own + 1)
      socket.once("close", () => {
        const others = (clients.get(client) ?? 0) - 1
        if (others > 0) clients.set(client, others)
        else clients.delete(client)
        sockets.delete(socket)
        if (sockets.size === 0) for (const resume of waiting) resume()
      })
      accept(socket)
    }

    const server = yield* Effect.acquireRelease(listen(host, port, enter), close(sockets))
    // Refused connections live until their line is written, which a client that does not read can delay
    server.maxConnections = limits.connections * 2
    const address = server.address()
    return {
      host,
      port: typeof address === "object" && address !== null ? address.port : port,
      size: () => sockets.size,
      refuseAll: () => {
        closing = true
      },
      emptied: Effect.callback<void>((resume) => {
        if (sockets.size === 0) return resume(Effect.void)
        const done = () => resume(Effect.void)
        waiting.add(done)
        return Effect.sync(() => waiting.delete(done))
      }),
      olderThan: (instant) => [...sockets].flatMap(([socket, since]) => (since < instant ? [socket] : []))
    } satisfies Gate
  })

const listen = (host: string, port: number, enter: (socket: Socket) => void): Effect.Effect<Server, ListenFailure> =>
  Effect.callback((resume) => {
    const server = createServer({ noDelay: true }, enter)
    server.once("error", (cause: NodeJS.ErrnoException) => resume(Effect.fail(cause.code ?? cause.message)))
    server.listen(port, host, () => resume(Effect.succeed(server)))
  })

const close = (sockets: ReadonlyMap<Socket, number>) => (server: Server) =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    for (const socket of sockets.keys()) socket.destroy()
  })

/** Nothing can be said in clear before a TLS handshake. */
const refuse = (socket: Socket, text: string, implicitTls: boolean): void => {
  if (implicitTls) {
    socket.destroy()
    return
  }
  // What the client sends meanwhile is discarded: unread bytes would turn the end of the connection into a reset
  socket.resume()
  socket.setTimeout(REFUSAL_LIMIT, () => socket.destroy())
  socket.write(`421 ${text}\r\n`, () => socket.destroySoon())
}

/** Milliseconds until a refused client that does not read is dropped. */
const REFUSAL_LIMIT = 5_000
