/**
 * A link to another host, on which calls are sent there. It opens again by itself whenever it breaks. It tells of each call whether the
 * call was sent at all, because a call that was sent may have run.
 */
import type { Address } from "./Address.ts"
import { Channel } from "./Channel.ts"
import { type Ended, type Forwarded, LONGEST_CALL, type Message } from "./Message.ts"
import { open, type Secret } from "./Tls.ts"

/** What became of a call. `NotBegun`: it may run elsewhere. `Lost`: it was sent, and nobody knows whether it ran. */
export type Outcome = { readonly _tag: "Ended"; readonly ended: Ended } | { readonly _tag: "NotBegun" } | { readonly _tag: "Lost" }

const NOT_BEGUN: Outcome = { _tag: "NotBegun" }
const LOST: Outcome = { _tag: "Lost" }

/** The most calls under way on a link. */
const MOST_CALLS = 4_096
/** Milliseconds until a broken link opens again, at first and at most. */
const REOPEN = 250
const REOPEN_AT_MOST = 2_000

interface Pending {
  isSent: boolean
  /** Milliseconds of the process's monotonic clock after which the call is given up. */
  readonly until: number
  readonly told: (outcome: Outcome) => void
}

/** `leaving`: the other host stops; it ends what was sent to it. */
export type State = "opening" | "open" | "leaving" | "closed"

export class Link {
  readonly address: Address
  readonly #secret: Secret
  readonly #onState: () => void
  readonly #pending = new Map<number, Pending>()
  #channel: Channel | undefined
  #state: State = "opening"
  #lastId = 0
  #reopenIn = REOPEN
  #reopening: NodeJS.Timeout | undefined

  /** `onState`: told whenever the state may have changed. */
  constructor(address: Address, secret: Secret, onState: () => void) {
    this.address = address
    this.#secret = secret
    this.#onState = onState
    this.#open()
  }

  get state(): State {
    return this.#state
  }

  /** Whether calls are under way. */
  get isBusy(): boolean {
    return this.#pending.size > 0
  }

  /**
   * Sends a call and tells its outcome once, within `patience` milliseconds. Returns what cancels it: then nothing is told. Undefined if the
   * call cannot be sent now.
   */
  call(call: Forwarded, patience: number, told: (outcome: Outcome) => void): (() => void) | undefined {
    const channel = this.#channel
    if (this.#state !== "open" || channel === undefined || channel.isCongested || this.#pending.size >= MOST_CALLS) return undefined
    const id = ++this.#lastId
    const text = JSON.stringify(["call", id, call] satisfies Message)
    if (text.length > LONGEST_CALL) return undefined
    const pending: Pending = { isSent: false, until: performance.now() + patience, told }
    this.#pending.set(id, pending)
    channel.send(text, () => {
      pending.isSent = true
    })
    return () => {
      if (this.#pending.delete(id)) channel.say(["cancel", id])
    }
  }

  close(): void {
    if (this.#state === "closed") return
    this.#become("closed")
    clearTimeout(this.#reopening)
    this.#channel?.close()
  }

  #become(state: State): void {
    this.#state = state
    this.#onState()
  }

  #open(): void {
    let isOpen = false
    const socket = open(this.address, this.#secret, () => {
      isOpen = true
      this.#reopenIn = REOPEN
      this.#channel = new Channel(socket, {
        onMessage: (message) => this.#hear(message),
        onClose: () => this.#broken(),
        onTick: () => this.#giveUpLate()
      })
      if (this.#state === "closed") this.#channel.close()
      else this.#become("open")
    })
    socket.on("error", () => {})
    // From when it is open, the channel tells
    socket.once("close", () => {
      if (!isOpen) this.#reopen()
    })
  }

  #reopen(): void {
    if (this.#state === "closed") return
    this.#reopening = setTimeout(() => this.#open(), this.#reopenIn)
    this.#reopening.unref()
    this.#reopenIn = Math.min(this.#reopenIn * 2, REOPEN_AT_MOST)
  }

  #broken(): void {
    this.#channel = undefined
    if (this.#state !== "closed") this.#become("opening")
    const calls = [...this.#pending.values()]
    this.#pending.clear()
    for (const { isSent, told } of calls) told(isSent ? LOST : NOT_BEGUN)
    this.#reopen()
  }

  #hear(message: Message): void {
    switch (message[0]) {
      case "ended":
        return this.#end(message[1], { _tag: "Ended", ended: message[2] })
      case "refused":
        return this.#end(message[1], NOT_BEGUN)
      case "leaving":
        return this.#become("leaving")
    }
  }

  #end(id: number, outcome: Outcome): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    pending?.told(outcome)
  }

  #giveUpLate(): void {
    const now = performance.now()
    for (const [id, { until }] of this.#pending) {
      if (until > now) continue
      this.#channel?.say(["cancel", id])
      this.#end(id, LOST)
    }
  }
}
