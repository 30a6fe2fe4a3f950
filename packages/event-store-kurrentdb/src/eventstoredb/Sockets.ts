/**
 * The sockets of one client, so that closing it leaves none open. gRPC drops a connection whose other end took it and said nothing: it
 * waits for its settings for ever, and nobody closes it. Nor is one closed whose other end fell silent: that waits for its good-bye.
 */
import type { Socket } from "node:net"
import { ChannelCredentials } from "@grpc/grpc-js"

type Connecting = Parameters<ChannelCredentials["_createSecureConnector"]>
type Connector = ReturnType<ChannelCredentials["_createSecureConnector"]>

/**
 * Credentials as gRPC takes them: each socket of a channel goes through their hands. They equal no others, so that no connection is
 * shared with clients of the host, which may leave calls open or break them off, nor with a predecessor.
 */
export class Sockets extends ChannelCredentials {
  readonly #credentials: ChannelCredentials
  readonly #open = new Set<Socket>()
  #isClosed = false

  constructor(credentials: ChannelCredentials) {
    super()
    this.#credentials = credentials
  }

  /** Those that are open go at once, those that are on their way when they come. */
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
