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
  /** Destroys the connections that began before an instant, in milliseconds since 1970. */
  readonly dropOlderThan: (instant: number) => void
}

interface Accepted {
  /** Milliseconds since 1970. */
  readonly since: number
  readonly top: Socket
}

/** Why it does not listen, such as `EADDRINUSE`. */
export type ListenFailure = string

/**
 * Listens until the scope closes, then destroys what is left. `accept` gets each connection that is not refused, and returns the socket to
 * destroy for its end: one of TLS must not lose the socket below it, which ends the process if it happens within a handshake.
 */
export const open = (
  { host, port, implicitTls }: { readonly host: string; readonly port: number; readonly implicitTls: boolean },
  limits: GateLimits,
  accept: (socket: Socket) => Socket
) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const rate = new Rate(limits.connectionsPerMinute)
    const sockets = new Map<Socket, Accepted>()
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
      clients.set(client, own + 1)
      whenClosed(socket, () => {
        const others = (clients.get(client) ?? 0) - 1
        if (others > 0) clients.set(client, others)
        else clients.delete(client)
        sockets.delete(socket)
        if (sockets.size === 0) for (const resume of waiting) resume()
      })
      sockets.set(socket, { since: now, top: accept(socket) })
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
      dropOlderThan: (instant) => {
        for (const { since, top } of sockets.values()) if (since < instant) top.destroy()
      }
    } satisfies Gate
  })

/** Also if somebody removes all listeners of the socket, as `smtp-server` does at STARTTLS. */
const whenClosed = (socket: Socket, leave: () => void): void => {
  const watch = () => {
    if (socket.closed) return closed()
    socket.once("close", closed).on("removeListener", removed)
  }
  const removed = (_event: string, listener: unknown) => {
    if (listener === closed) process.nextTick(watch)
  }
  let over = false
  const closed = () => {
    if (over) return
    over = true
    socket.off("removeListener", removed)
    leave()
  }
  watch()
}

const listen = (host: string, port: number, enter: (socket: Socket) => void): Effect.Effect<Server, ListenFailure> =>
  Effect.callback((resume) => {
    const server = createServer({ noDelay: true }, enter)
    server.once("error", (cause: NodeJS.ErrnoException) => resume(Effect.fail(cause.code ?? cause.message)))
    server.listen(port, host, () => resume(Effect.succeed(server)))
  })

const close = (sockets: ReadonlyMap<Socket, Accepted>) => (server: Server) =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    for (const { top } of sockets.values()) top.destroy()
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
