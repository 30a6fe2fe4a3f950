/** The state that the handlers of one stand-in share: its log, its faults, its users, and its open calls. */
import { status as Code, type Metadata, type ServiceError } from "@grpc/grpc-js"
import type { CallFault, Faults } from "./Faults.ts"
import type { Log } from "./Log.ts"
import { failure, notReady } from "./Messages.ts"

export interface Address {
  readonly host: string
  readonly port: number
}

/** The part of a call that is needed here. */
export interface Call {
  readonly metadata: Metadata
  readonly getPeer: () => string
}

/** A call whose answers are a stream. */
export interface StreamingCall extends Call {
  readonly on: (event: "cancelled" | "close" | "finish" | "error", then: () => void) => unknown
  readonly emit: (event: "error", error: ServiceError) => unknown
}

export class Node {
  readonly log: Log
  readonly faults: Faults
  readonly now: () => number
  /** The leader, to which calls are redirected; undefined at the leader itself. */
  readonly leader: Address | undefined
  /** Passwords by user; undefined without authentication. */
  readonly users: Readonly<Record<string, string>> | undefined
  /** Breaks the connection of a call. */
  readonly drop: (peer: string) => void
  readonly #calls = new Map<string, number>()
  readonly #open = new Map<string, number>()
  readonly #subscriptions = new Set<StreamingCall>()
  readonly #mute = new WeakSet<object>()
  /** Where each subscription to the log began. */
  readonly subscribedFrom: Array<bigint> = []
  /** Position of the checkpoint that was sent last. */
  checkpointed = 0n

  constructor(options: Pick<Node, "log" | "faults" | "now" | "leader" | "users" | "drop">) {
    this.log = options.log
    this.faults = options.faults
    this.now = options.now
    this.leader = options.leader
    this.users = options.users
    this.drop = options.drop
  }

  /** Counts a call. Returns an error for a caller that is not authenticated or must go to the leader. */
  admit(method: string, call: Call): ServiceError | undefined {
    this.#calls.set(method, this.calls(method) + 1)
    if (this.users !== undefined && !this.#isKnown(call.metadata, this.users)) return failure(Code.UNAUTHENTICATED, "Access Denied")
    if (this.leader === undefined || call.metadata.get("requires-leader").length === 0) return undefined
    return failure(Code.NOT_FOUND, "Leader info available", {
      exception: "not-leader",
      "leader-endpoint-host": this.leader.host,
      "leader-endpoint-port": this.leader.port.toString()
    })
  }

  /** Counts a call with streamed answers until it ends. */
  opened(method: string, call: StreamingCall): void {
    this.#open.set(method, this.open(method) + 1)
    let isOpen = true
    const ended = () => {
      if (isOpen) this.#open.set(method, this.open(method) - 1)
      isOpen = false
      this.#subscriptions.delete(call)
    }
    for (const end of ["cancelled", "close", "finish", "error"] as const) call.on(end, ended)
  }

  /** Remembers a subscription, so that {@link endSubscriptions} finds it. */
  subscribed(call: StreamingCall): void {
    this.#subscriptions.add(call)
  }

  /** The present subscriptions send nothing more, and do not end. */
  muteSubscriptions(): void {
    for (const call of this.#subscriptions) this.#mute.add(call)
  }

  isMute(call: StreamingCall): boolean {
    return this.#mute.has(call)
  }

  endSubscriptions(error: ServiceError): void {
    for (const call of [...this.#subscriptions]) call.emit("error", error)
  }

  /** The effect of a fault on a call: an error to answer with, `silent` for no answer, or undefined for none. */
  failing(call: Call, fault: CallFault | undefined): ServiceError | "silent" | undefined {
    if (fault === undefined || fault === "silent") return fault
    if (fault === "notReady") return notReady()
    if (fault !== "drop") return failure(fault.code, fault.details)
    this.drop(call.getPeer())
    return "silent"
  }

  /** How often a method was called, such as `Append`, `BatchAppend`, `Read`, `GetSupportedMethods`. */
  calls(method: string): number {
    return this.#calls.get(method) ?? 0
  }

  /** How many calls of a method are open now. */
  open(method: string): number {
    return this.#open.get(method) ?? 0
  }

  #isKnown(metadata: Metadata, users: Readonly<Record<string, string>>): boolean {
    const [authorization] = metadata.get("authorization")
    if (typeof authorization !== "string") return false
    const told = Buffer.from(authorization.replace(/^Basic /, ""), "base64").toString()
    const colon = told.indexOf(":")
    const user = told.slice(0, colon)
    return Object.hasOwn(users, user) && users[user] === told.slice(colon + 1)
  }
}
