/** A server on `node:http` for hosts that have none. It listens for as long as its scope is open. */
import { createServer, type IncomingMessage, type Server as NodeServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Ids } from "@millrace/core"
import { Context, Duration, Effect, Layer, Schema, type Scope } from "effect"
import * as MalformedRequests from "./MalformedRequests.ts"
import { toNodeHandler } from "./NodeHandler.ts"
import type { WebHandler } from "./WebHandler.ts"

/** The server cannot listen: the port is in use or not allowed, or the address is not one of this machine. */
export class CannotListen extends Schema.TaggedError<CannotListen>()("CannotListen", {
  host: Schema.String,
  port: Schema.Int,
  /** Such as `EADDRINUSE`. */
  code: Schema.String
}) {
  override get message(): string {
    const reason = this.code === "EADDRINUSE" ? "the port is already in use" : this.code
    return `Cannot listen on ${this.host}:${this.port}: ${reason}`
  }
}

export interface Options {
  /** `127.0.0.1` by default. */
  readonly host?: string
  /** 0, the default, is any free port. */
  readonly port?: number
  /** The client's address: by default that of the socket. Behind a proxy, the address that the proxy reports. */
  readonly address?: (request: IncomingMessage) => string | undefined
  /** How long a client may take to send its headers: 10 seconds by default. */
  readonly headersTimeout?: Duration.Input
  /** How long it may take to send the whole request: one minute by default. */
  readonly requestTimeout?: Duration.Input
  /** How long a connection may be silent, also while a call runs: 3 minutes by default, longer than the longest wait. */
  readonly idleTimeout?: Duration.Input
  /** How long a connection is kept for the next request: 65 seconds by default, longer than proxies keep theirs. */
  readonly keepAliveTimeout?: Duration.Input
}

/** How long clients may take to read their answers once all calls have ended. */
const LINGER = "1 second"

/** The address at which the server listens. */
export class Server extends Context.Service<Server, { readonly host: string; readonly port: number; readonly url: string }>()(
  "@millrace/http/Server"
) {
  /** Closing stops accepting, drains the handler, and then closes the remaining connections. */
  static readonly layer = <E, R>(
    handler: Effect.Effect<WebHandler, E, R>,
    options: Options = {}
  ): Layer.Layer<Server, E | CannotListen, Exclude<R, Scope.Scope>> =>
    Layer.effect(
      Server,
      Effect.flatMap(handler, (handler) => listen(handler, options))
    )
}

/** Listens for as long as the scope is open. Requests without a `Host` are refused here, with an error object, and not by Node. */
export const listen = ({ handle, drain }: WebHandler, options: Options = {}): Effect.Effect<Server["Service"], CannotListen, Scope.Scope> =>
  Effect.gen(function* () {
    const { host = "127.0.0.1", port = 0, address } = options
    const ids = yield* Ids
    const headersTimeout = Duration.toMillis(options.headersTimeout ?? "10 seconds")
    const requestTimeout = Duration.toMillis(options.requestTimeout ?? "1 minute")
    const server = createServer({
      maxHeaderSize: MalformedRequests.MAX_HEADERS,
      headersTimeout: Math.min(headersTimeout, requestTimeout),
      requestTimeout,
      connectionsCheckingInterval: Math.max(100, Math.min(headersTimeout, requestTimeout) / 4),
      keepAliveTimeout: Duration.toMillis(options.keepAliveTimeout ?? "65 seconds"),
      requireHostHeader: false
    })
    server.timeout = Duration.toMillis(options.idleTimeout ?? "3 minutes")
    MalformedRequests.serve(server, toNodeHandler(handle, address === undefined ? {} : { address }), () => ids.uuid())
    yield* Effect.acquireRelease(open(server, host, port), () => close(server, drain))
    const actual = portOf(server.address())
    return { host, port: actual, url: `http://${host.includes(":") ? `[${host}]` : host}:${actual}` }
  })

const open = (server: NodeServer, host: string, port: number): Effect.Effect<void, CannotListen> =>
  Effect.callback((resume) => {
    const failed = (error: NodeJS.ErrnoException) =>
      resume(Effect.fail(new CannotListen({ host, port, code: error.code ?? error.message })))
    server.once("error", failed)
    server.listen({ host, port }, () => {
      server.off("error", failed)
      resume(Effect.void)
    })
  })

const close = (server: NodeServer, drain: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    yield* drain
    server.closeIdleConnections()
    yield* Effect.timeoutOption(
      Effect.promise(() => closed),
      LINGER
    )
    server.closeAllConnections()
  })

const portOf = (address: AddressInfo | string | null): number => (typeof address === "object" && address !== null ? address.port : 0)
