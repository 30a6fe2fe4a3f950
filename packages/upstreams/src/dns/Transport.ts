/** Exchanges one message with a name server, over its own socket. */
import { createSocket } from "node:dgram"
import { connect } from "node:net"
import { UpstreamUnavailable } from "@millrace/core"
import { Effect } from "effect"
import type { ServerAddress } from "./ServerAddress.ts"

/** Isolated, because the caller chooses the domain and so the authoritative servers. Their failure says nothing of other lookups. */
export const unavailable = (reason: string): UpstreamUnavailable => new UpstreamUnavailable({ upstream: "dns", reason, isolated: true })

/** Decodes a message; undefined if it is not a reply to the query. */
export type Read<A> = (message: Buffer) => A | undefined

/**
 * The first datagram that `read` accepts. Others are ignored: they may be forged, and the true reply may still come. Each query has a new
 * random port, and only datagrams from the server's own address and port are received.
 */
export const overUdp = <A>(server: ServerAddress, query: Buffer, read: Read<A>): Effect.Effect<A, UpstreamUnavailable> =>
  Effect.acquireUseRelease(
    Effect.sync(() => createSocket(server.family === 4 ? "udp4" : "udp6")),
    (socket) =>
      Effect.callback((resume) => {
        socket.on("error", ({ message }) => resume(Effect.fail(unavailable(message))))
        socket.on("message", (message) => {
          const reply = read(message)
          if (reply !== undefined) resume(Effect.succeed(reply))
        })
        socket.once("connect", () => {
          socket.send(query, (error) => {
            if (error) resume(Effect.fail(unavailable(error.message)))
          })
        })
        socket.connect(server.port, server.host)
      }),
    (socket) =>
      Effect.callback<void>((resume) => {
        socket.close(() => resume(Effect.void))
      })
  )

const LENGTH_BYTES = 2
const MAX_MESSAGE_BYTES = 65_535

/** The first message of the server, which is preceded by its length, as is the query (RFC 7766). */
export const overTcp = <A>(server: ServerAddress, query: Buffer, read: Read<A>): Effect.Effect<A, UpstreamUnavailable> =>
  Effect.acquireUseRelease(
    Effect.sync(() => connect({ host: server.host, port: server.port })),
    (socket) =>
      Effect.callback((resume) => {
        const received = Buffer.alloc(LENGTH_BYTES + MAX_MESSAGE_BYTES)
        let size = 0
        socket.on("error", ({ message }) => resume(Effect.fail(unavailable(message))))
        socket.on("close", () => resume(Effect.fail(unavailable("it hung up"))))
        socket.on("data", (chunk: Buffer) => {
          size += chunk.copy(received, size)
          const end = LENGTH_BYTES + received.readUInt16BE(0)
          if (size < LENGTH_BYTES || size < end) return
          const reply = read(received.subarray(LENGTH_BYTES, end))
          resume(reply === undefined ? Effect.fail(unavailable("it answered something else over TCP")) : Effect.succeed(reply))
        })
        const length = Buffer.alloc(LENGTH_BYTES)
        length.writeUInt16BE(query.length)
        socket.write(Buffer.concat([length, query]))
      }),
    (socket) =>
      Effect.callback<void>((resume) => {
        if (socket.closed) return resume(Effect.void)
        socket.once("close", () => resume(Effect.void)).destroy()
      })
  )
