/** A proxy session at this node: its connections, and the bytes that they carry. */
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import type { ProxySession } from "@millrace/core"
import type { Connect } from "./Destinations.ts"
import { IDLE } from "./Tunnel.ts"

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
  /** Counts the connections of rotating sessions. */
  turn: number
}

export class LiveSession {
  readonly id: string
  readonly terms: ProxySession.Terms
  readonly #exits: Exits
  readonly #exit: string | undefined
  readonly #targets = new Set<Socket>()
  /** Connections that are being opened. */
  #opening = 0
  /** What was carried by connections that are closed. */
  #closed: ProxySession.Traffic = { sent: 0, received: 0, connections: 0 }
  #ended = false
  /** Bytes that other nodes carried, by node. */
  readonly others = new Map<string, number>()
  /** What of `traffic` is in the log. */
  counted: ProxySession.Traffic = this.#closed

  constructor(id: string, terms: ProxySession.Terms, exits: Exits) {
    this.id = id
    this.terms = terms
    this.#exits = exits
    const { addresses } = exits
    // Another node has other addresses than the one that the caller was told of: a sticky session keeps to one of its own
    this.#exit = addresses.includes(terms.ip) ? terms.ip : addresses[Number.parseInt(id.slice(-2), 36) % addresses.length]
  }

  /** All that this node carried for the session so far. */
  get traffic(): ProxySession.Traffic {
    let { connections, received, sent } = this.#closed
    for (const { bytesRead, bytesWritten } of this.#targets) {
      sent += bytesWritten
      received += bytesRead
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

  /** Whether its bytes are used up, as far as this node knows what others carried. */
  get isUsedUp(): boolean {
    const { received, sent } = this.traffic
    return [...this.others.values()].reduce((sum, bytes) => sum + bytes, sent + received) >= this.terms.byteLimit
  }

  /** Connects to a destination for a client. Rejects with `NotAdmitted` or `NotConnected`. */
  async connect(client: Duplex, host: string, port: number): Promise<Socket> {
    if (this.#ended || this.open >= this.terms.connectionLimit || this.isUsedUp) throw new NotAdmitted("full")
    this.#opening++
    try {
      const target = await this.#exits.connect(host, port, this.#nextExit())
      this.#keep(target)
      if (!this.#ended && !client.destroyed) return target
      target.destroy()
      throw new NotAdmitted("full")
    } finally {
      this.#opening--
    }
  }

  /** Closes all connections. No further one is opened. */
  end(): void {
    this.#ended = true
    for (const target of this.#targets) target.destroy()
  }

  #nextExit(): string | undefined {
    const { addresses } = this.#exits
    return this.terms.mode === "sticky" ? this.#exit : addresses[this.#exits.turn++ % addresses.length]
  }

  #keep(target: Socket): void {
    this.#targets.add(target)
    // It is destroyed then, which its close tells
    target.on("error", () => {})
    target.setTimeout(IDLE, () => target.destroy())
    target.once("close", () => {
      this.#targets.delete(target)
      const { connections, received, sent } = this.#closed
      this.#closed = { sent: sent + target.bytesWritten, received: received + target.bytesRead, connections: connections + 1 }
    })
  }
}
