/**
 * The batch call of the protocol: one stream of appends to the leader, and one of their answers in any order. It costs the host a third of a
 * call for each append. A call has no deadline of its own, so whoever sends an append stops waiting for it. A node before 21.10 does not
 * have this call.
 */
import { randomUUID } from "node:crypto"
import type streams from "@eventstore/db-client/generated/streams_pb.js"
import { type ClientDuplexStream, status } from "@grpc/grpc-js"
import { cancelledWith } from "./Cancelling.ts"
import * as Messages from "./Messages.ts"

type Call = ClientDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>

interface Waiting {
  readonly resolve: (answer: streams.BatchAppendResp) => void
  readonly reject: (error: Error) => void
}

/** The node does not have the batch call, so nothing was done. */
export class NoBatchCall extends Error {
  override readonly name = "NoBatchCall"
}

/** The call ended with this error, which need not concern the append that waited: the append may have been carried out. */
export class CallEnded extends Error {
  override readonly name = "CallEnded"
  override readonly cause: Error

  constructor(cause: Error) {
    super(cause.message)
    this.cause = cause
  }
}

export class AppendStream {
  readonly #open: () => Call
  readonly #waiting = new Map<string, Waiting>()
  /** Appends that the connection had no room for. */
  readonly #unsent: Array<streams.BatchAppendReq> = []
  #call: Call | undefined
  #hasAnswered = false
  #isFull = false
  #isRetired = false

  /** `open` begins a call, at the first append and after a call has ended. */
  constructor(open: () => Call) {
    this.#open = open
  }

  /** Sends an append, and waits for its answer until `signal` is aborted. An aborted append may still be carried out. */
  send(append: Messages.Append, signal: AbortSignal): Promise<streams.BatchAppendResp> {
    return new Promise((resolve, reject) => {
      const id = randomUUID()
      this.#call ??= this.#begin()
      this.#waiting.set(id, { resolve, reject })
      cancelledWith(signal, { cancel: () => this.#settle(id)?.reject(new Error("The append was cancelled")) })
      this.#write(Messages.batchAppend(id, append))
    })
  }

  /** Accepts no more appends. Those under way may end. */
  retire(): void {
    this.#isRetired = true
    if (this.#waiting.size === 0) this.#call?.end()
  }

  #begin(): Call {
    const call = this.#open()
    const fail = (error: Error) => this.#fail(call, error)
    call.on("data", (answer: streams.BatchAppendResp) => {
      if (this.#call === call) this.#hasAnswered = true
      this.#settle(Messages.correlationOf(answer))?.resolve(answer)
    })
    call.on("error", (error: Error & { readonly code?: number }) =>
      fail(error.code === status.UNIMPLEMENTED ? new NoBatchCall(error.message) : error)
    )
    call.on("end", () => fail(new Error("The call for appends ended")))
    call.on("drain", () => {
      this.#isFull = false
      for (const message of this.#unsent.splice(0)) this.#write(message)
    })
    return call
  }

  /** Writes while the connection has room, and keeps the order. */
  #write(message: streams.BatchAppendReq): void {
    if (this.#isFull) this.#unsent.push(message)
    else if (this.#call?.write(message) === false) this.#isFull = true
  }

  /** Ends the wait for an append. Undefined if nobody waits for it any more. */
  #settle(id: string): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (this.#isRetired && this.#waiting.size === 0) this.#call?.end()
    return waiting
  }

  /** Ends the wait for all appends of a call that has ended. The next append begins another call. */
  #fail(call: Call, error: Error): void {
    if (this.#call !== call) return
    const isOfOne = this.#waiting.size === 1 && !this.#hasAnswered
    const reason = isOfOne || error instanceof NoBatchCall ? error : new CallEnded(error)
    this.#call = undefined
    this.#hasAnswered = false
    this.#isFull = false
    this.#unsent.length = 0
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { reject } of waiting) reject(reason)
  }
}
