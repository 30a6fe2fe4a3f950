/**
 * The sockets of one client. Closing the client closes all of them, because gRPC leaves two kinds of sockets open. If a node accepts a
 * connection and never answers, gRPC waits for the node's settings for ever. If a node falls silent later, gRPC waits for its GOAWAY.
 */
import type { Socket } from "node:net"
import { ChannelCredentials } from "@grpc/grpc-js"

type Connecting = Parameters<ChannelCredentials["_createSecureConnector"]>
type Connector = ReturnType<ChannelCredentials["_createSecureConnector"]>

/**
 * Credentials for gRPC, which makes each socket of a channel through them. They equal no other credentials. So gRPC shares no connection
 * with an earlier client of the store, or with the host's clients, which may exhaust or close it.
 */
export class Sockets extends ChannelCredentials {
  readonly #credentials: ChannelCredentials
  readonly #open = new Set<Socket>()
  #isClosed = false

  constructor(credentials: ChannelCredentials) {
    super()
    this.#credentials = credentials
  }

  /** Destroys the open sockets now, and each pending socket as soon as it is connected. */
  close(): void {
    this.#isClosed = true
    for (const socket of this.#open) socket.destroy()
  }

  override _isSecure(): boolean {
    return this.#credentials._isSecure()
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other
  }

  override _createSecureConnector(...connecting: Connecting): Connector {
    const connector = this.#credentials._createSecureConnector(...connecting)
    return {
      connect: (socket) => {
        this.#open.add(socket)
        socket.once("close", () => this.#open.delete(socket))
        if (this.#isClosed) socket.destroy()
        return connector.connect(socket)
      },
      waitForReady: () => connector.waitForReady(),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => connector.destroy()
    }
  }
}
