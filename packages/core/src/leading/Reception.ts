/** The side of a host that accepts links, and runs the calls that come on them. */
import type { AddressInfo, Socket } from "node:net"
import type { Server } from "node:tls"
import type { Address } from "./Address.ts"
import { Channel } from "./Channel.ts"
import type { Ended, Forwarded, Message } from "./Message.ts"
import { listener, type Secret } from "./Tls.ts"

/** The most forwarded calls under way at a host. It refuses others, which then run where they came from. */
const MOST_CALLS = 8_192

/** Starts a call and tells once how it ended. Returns what interrupts it; undefined if it cannot run here, and then nothing is told. */
export type Run = (call: Forwarded, told: (ended: Ended) => void) => (() => void) | undefined

export class Reception {
  readonly #server: Server
  readonly #run: Run
  readonly #channels = new Map<Channel, Calls>()
  #running = 0
  #isLeaving = false
  #onIdle: (() => void) | undefined

  constructor(secret: Secret, run: Run) {
    this.#run = run
    this.#server = listener(secret, (socket) => this.#accept(new Map(), socket))
    // Of a stranger's connection
    this.#server.on("tlsClientError", () => {})
  }

  /** Calls under way. */
  get running(): number {
    return this.#running
  }

  /** Returns the address with the port that is listened on. */
  listen({ host, port }: Address): Promise<Address> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject)
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject).on("error", () => {})
        resolve({ host, port: (this.#server.address() as AddressInfo).port })
      })
    })
  }

  /** Begins nothing more, and tells the others so. Resolves once the calls under way have ended. */
  leave(): Promise<void> {
    this.#isLeaving = true
    for (const channel of this.#channels.keys()) channel.say(["leaving"])
    return new Promise((resolve) => {
      this.#onIdle = resolve
      if (this.#running === 0) resolve()
    })
  }

  /** Interrupts the calls under way. */
  interrupt(): void {
    for (const calls of this.#channels.values()) interruptAll(calls)
  }

  /** Ends the links, after what was said on them. */
  close(): void {
    this.#server.close()
    for (const channel of this.#channels.keys()) channel.end()
    setTimeout(() => [...this.#channels.keys()].forEach((channel) => channel.close()), LAST_WORDS).unref()
  }

  #accept(calls: Calls, socket: Socket): void {
    const channel = new Channel(socket, {
      onMessage: (message) => this.#hear(calls, channel, message),
      onClose: () => {
        this.#channels.delete(channel)
        interruptAll(calls)
      }
    })
    this.#channels.set(channel, calls)
    if (this.#isLeaving) channel.say(["leaving"])
  }

  #hear(calls: Calls, channel: Channel, message: Message): void {
    if (message[0] === "call") this.#begin(calls, channel, message[1], message[2])
    else if (message[0] === "cancel") calls.get(message[1])?.()
  }

  #begin(calls: Calls, channel: Channel, id: number, call: Forwarded): void {
    let isOver = false
    const end = (message: Message) => {
      isOver = true
      calls.delete(id)
      this.#running--
      channel.say(message)
      if (this.#running === 0) this.#onIdle?.()
    }
    this.#running++
    if (this.#isLeaving || this.#running > MOST_CALLS) return end(["refused", id])
    const interrupt = this.#run(call, (ended) => end(["ended", id, ended]))
    if (interrupt === undefined) end(["refused", id])
    else if (!isOver) calls.set(id, interrupt)
  }
}

/** What interrupts the calls under way of a link, by their ids. */
type Calls = Map<number, () => void>

const interruptAll = (calls: Calls): void => {
  for (const interrupt of [...calls.values()]) interrupt()
}

/** Milliseconds for the last answers to go out. */
const LAST_WORDS = 1_000
