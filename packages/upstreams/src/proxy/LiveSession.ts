/** A proxy session at this node: its connections, and the bytes that they carry. */
import type { Socket } from "node:net"
import type { Duplex, Readable } from "node:stream"
import type { ProxySession } from "@millrace/core"
import { Semaphore } from "effect"
import { type Connect, type Leave, NotConnected } from "./Destinations.ts"
import { IDLE } from "./Tunnel.ts"
import type { UpstreamPool } from "./UpstreamPool.ts"

/** The session has as many connections as it may, or has ended, or its client has left; or it cannot be looked up now. */
export class NotAdmitted extends Error {
  override readonly name = "NotAdmitted"
  readonly reason: "full" | "unavailable"

  constructor(reason: NotAdmitted["reason"]) {
    super(reason === "full" ? "The session has ended, or has too many connections" : "Sessions cannot be looked up now")
    this.reason = reason
  }
}

/** What a node needs for every connection. */
export interface Exits {
  readonly connect: Connect
  /** The addresses that connections leave from; empty where the system chooses. */
  readonly addresses: ReadonlyArray<string>
  /** Whether sessions of places without a pool may leave from here. */
  readonly direct: boolean
  /** The pools of this moment. */
  readonly pools: () => ReadonlyArray<UpstreamPool>
  /** Counts the connections of rotating sessions. */
  turn: number
}

/**
 * Other nodes hear of bytes when a node has carried this part of the bound. It carries one more portion while the store takes that count, and then
 * waits for the store: so each node exceeds the bound by a few portions, however slow the store is.
 */
const PORTION = 1 / 64

export const bytesOf = ({ received, sent }: Pick<ProxySession.Traffic, "sent" | "received">): number => sent + received

export class LiveSession {
  readonly id: string
  readonly terms: ProxySession.Terms
  readonly #exits: Exits
  readonly #exit: string | undefined
  readonly #share: (session: LiveSession) => Promise<unknown>
  /** With the bytes that were read and written before the tunnel was open. */
  readonly #targets = new Map<Socket, { readonly read: number; readonly written: number }>()
  readonly #clients = new Set<Duplex>()
  /** Connections that are being opened. */
  #opening = 0
  /** What was carried by connections that are closed. */
  #closed: ProxySession.Traffic = { sent: 0, received: 0, connections: 0 }
  #ended = false
  /** Bytes that other nodes carried, by node. */
  readonly others = new Map<string, number>()
  /** What of `traffic` is in the log. */
  counted: ProxySession.Traffic = this.#closed
  /** One count at a time: totals in the log never fall. */
  readonly counting = Semaphore.makeUnsafe(1)
  /** Bytes until the bounds are looked at again. */
  #left = 0
  #isSharing = false
  /** The bytes when the last count began that the store took or refused. */
  #offered = 0
  /** Streams that are not read until the store has taken, or refused, a count. */
  readonly #held = new Set<Readable>()

  /** `share` writes what was carried to the log, and resolves when that is done or has failed. */
  constructor(id: string, terms: ProxySession.Terms, exits: Exits, share: (session: LiveSession) => Promise<unknown>) {
    this.id = id
    this.terms = terms
    this.#exits = exits
    this.#share = share
    const { addresses } = exits
    // Another node has other addresses than the one that the caller was told of: a sticky session keeps to one of its own
    this.#exit = addresses.includes(terms.ip) ? terms.ip : addresses[Number.parseInt(id.slice(-2), 36) % addresses.length]
  }

  /** All that this node carried for the session so far. */
  get traffic(): ProxySession.Traffic {
    let { connections, received, sent } = this.#closed
    for (const [{ bytesRead, bytesWritten }, { read, written }] of this.#targets) {
      sent += bytesWritten - written
      received += bytesRead - read
      connections++
    }
    return { sent, received, connections }
  }

  /** Connections that are open or being opened. */
  get open(): number {
    return this.#targets.size + this.#opening
  }

  get hasEnded(): boolean {
    return this.#ended
  }

  /** Bytes that may still be carried, as far as this node knows what others carried. */
  get #room(): number {
    return [...this.others.values()].reduce((room, bytes) => room - bytes, this.terms.byteLimit - bytesOf(this.traffic))
  }

  get isUsedUp(): boolean {
    return this.#room <= 0
  }

  /** Connects to a destination for a client. Rejects with `NotAdmitted` or `NotConnected`. */
  async connect(client: Duplex, host: string, port: number): Promise<Socket> {
    if (this.#ended || this.open >= this.terms.connectionLimit || this.isUsedUp) throw new NotAdmitted("full")
    this.#opening++
    this.#follow(client)
    try {
      const target = await this.#exits.connect(host, port, this.#leave())
      this.#keep(target)
      if (!this.#ended && !client.destroyed) return target
      target.destroy()
      throw new NotAdmitted("full")
    } finally {
      this.#opening--
    }
  }

  /** Counts each read of these streams, and ends the session with the one that uses up its bytes. They are read by others. */
  weigh(...streams: ReadonlyArray<Readable>): void {
    for (const stream of streams) {
      stream.on("data", ({ length }: Buffer) => this.#carried(stream, length))
      // The other side of a pipe resumes it when it can take more
      stream.on("resume", () => this.#held.has(stream) && stream.pause())
    }
  }

  /** Closes all connections, also those that are being opened and those that still deliver. No further one is opened. */
  end(): void {
    this.#ended = true
    for (const target of this.#targets.keys()) target.destroy()
    for (const client of this.#clients) client.destroy()
  }

  #carried(stream: Readable, bytes: number): void {
    this.#left -= bytes
    if (this.#left > 0) return
    const [room, portion] = [this.#room, Math.ceil(this.terms.byteLimit * PORTION)]
    // The read that exceeds the bound is still delivered
    if (room <= 0) return process.nextTick(() => this.end())
    const unshared = bytesOf(this.traffic) - Math.max(this.#offered, bytesOf(this.counted))
    if (unshared >= portion) void this.#shareNow()
    if (unshared >= 2 * portion) this.#hold(stream)
    this.#left = Math.min(room, Math.max(0, (unshared < portion ? portion : 2 * portion) - unshared))
  }

  async #shareNow(): Promise<void> {
    if (this.#isSharing) return
    this.#isSharing = true
    const offered = bytesOf(this.traffic)
    await this.#share(this)
    this.#offered = offered
    this.#isSharing = false
    const held = [...this.#held]
    this.#held.clear()
    for (const stream of held) stream.resume()
  }

  #hold(stream: Readable): void {
    this.#held.add(stream)
    stream.pause()
  }

  #leave(): Leave {
    const { direct, pools } = this.#exits
    const { country, ip, mode, region } = this.terms
    const pool = pools().find((pool) => pool.country === country && pool.region === region)
    if (pool !== undefined) return (address, port) => pool.connect(address, port, mode === "sticky" ? { id: this.id, ip } : undefined)
    if (!direct) throw new NotConnected("noExit")
    return this.#nextExit()
  }

  #nextExit(): string | undefined {
    const { addresses } = this.#exits
    return this.terms.mode === "sticky" ? this.#exit : addresses[this.#exits.turn++ % addresses.length]
  }

  /** A client of plain requests comes again. */
  #follow(client: Duplex): void {
    if (this.#clients.has(client)) return
    this.#clients.add(client)
    client.once("close", () => this.#clients.delete(client))
  }

  #keep(target: Socket): void {
    const [read, written] = [target.bytesRead, target.bytesWritten]
    this.#targets.set(target, { read, written })
    // It is destroyed then, which its close tells
    target.on("error", () => {})
    target.setTimeout(IDLE, () => target.destroy())
    target.once("close", () => {
      this.#targets.delete(target)
      const { connections, received, sent } = this.#closed
      this.#closed = {
        sent: sent + target.bytesWritten - written,
        received: received + target.bytesRead - read,
        connections: connections + 1
      }
    })
  }
}
