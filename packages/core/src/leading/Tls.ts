/**
 * How hosts know each other: TLS with a key that derives from the master key, which all hosts of a store share. Both sides prove that they
 * have it, and what they say is encrypted. Others cannot open a link, nor can hosts of another version of the messages.
 */
import { hkdfSync } from "node:crypto"
import { type ConnectionOptions, connect, createServer, type Server, type TLSSocket, type TlsOptions } from "node:tls"
import { Effect, Redacted } from "effect"
import type { Address } from "./Address.ts"
import { VERSION } from "./Message.ts"

/** Ephemeral keys, so that one who learns the master key later cannot read what was said before. */
const CIPHERS = "ECDHE-PSK-CHACHA20-POLY1305"
/** Milliseconds until a handshake has failed. */
const HANDSHAKE = 3_000
const BYTES = 32
/** More than hosts of one store. */
const MOST_CONNECTIONS = 1_024

const IDENTITY = `millrace/${VERSION}`

export type Secret = Redacted.Redacted<Buffer>

export const secretOf = (masterKey: Redacted.Redacted<Uint8Array>): Secret =>
  Redacted.make(Buffer.from(hkdfSync("sha256", Redacted.value(masterKey), "", "millrace/v1/cluster", BYTES)), { label: "ClusterSecret" })

// OpenSSL takes keys without certificates up to TLS 1.2 only
const TLS = { ciphers: CIPHERS, minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const

/**
 * Whether a host with our secret listens at an address. `stranger`: something listens there that is no host, or one with another master key or
 * of another version of the messages. Leaves no link.
 */
export const probe = (address: Address, secret: Secret): Effect.Effect<"host" | "stranger" | "nothing"> =>
  Effect.callback((resume) => {
    let isConnected = false
    const socket = open(address, secret, () => {
      socket.destroy()
      resume(Effect.succeed("host"))
    })
    socket.once("connect", () => {
      isConnected = true
    })
    socket.on("error", () => {})
    socket.once("close", () => resume(Effect.succeed(isConnected ? "stranger" : "nothing")))
    return Effect.sync(() => socket.destroy())
  })

/** Opens a link. `onOpen` once both sides have proved that they have the secret. */
export const open = ({ host, port }: Address, secret: Secret, onOpen: () => void): TLSSocket => {
  const options: ConnectionOptions = {
    ...TLS,
    host,
    port,
    pskCallback: () => ({ psk: Redacted.value(secret), identity: IDENTITY }),
    // There are no certificates
    checkServerIdentity: () => undefined
  }
  const socket = connect(options, () => {
    socket.setTimeout(0)
    onOpen()
  })
  return socket.setTimeout(HANDSHAKE, () => socket.destroy())
}

/** Accepts links. `onLink` once both sides have proved that they have the secret. */
export const listener = (secret: Secret, onLink: (socket: TLSSocket) => void): Server => {
  const options: TlsOptions = {
    ...TLS,
    handshakeTimeout: HANDSHAKE,
    pskCallback: (_, identity) => (identity === IDENTITY ? Redacted.value(secret) : null)
  }
  const server = createServer(options, onLink)
  server.maxConnections = MOST_CONNECTIONS
  return server
}
