/** The faults that a test can switch on at a stand-in. They apply to calls that arrive later. */
import type { status as Code } from "@grpc/grpc-js"
import type { Expected, Proposed } from "./Log.ts"

export interface AppendCall {
  readonly path: "unary" | "batch"
  readonly stream: string
  readonly expected: Expected
  readonly events: ReadonlyArray<Proposed>
}

/**
 * - `lost`: the append is not written, and never answered
 * - `unanswered`: the append is written, and never answered
 * - `dropBefore`, `dropAfter`: the connection breaks before or after the append is written
 * - `notReady`: the node answers that it is still starting
 * - `late`: the append is written and answered when {@link Faults.release} is called
 * - a refusal: the append is not written, and answered with this status
 */
export type AppendFault = "lost" | "unanswered" | "dropBefore" | "dropAfter" | "notReady" | "late" | Refusal

/** `silent`: no answer. `drop`: the connection breaks. */
export type CallFault = "silent" | "drop" | "notReady" | Refusal

export interface Refusal {
  readonly code: Code
  readonly details: string
}

export class Faults {
  /** Asked for each append. */
  append: (call: AppendCall) => AppendFault | undefined = () => undefined
  /** Asked for each read that is not a subscription. */
  read: () => CallFault | undefined = () => undefined
  /** Asked for each subscription. */
  subscribe: () => CallFault | undefined = () => undefined
  /** Asked for each request for the server's features. */
  features: () => CallFault | undefined = () => undefined
  /** How far the server's clock is ahead of its clients', in milliseconds. */
  clockAhead = 0
  /**
   * Events that a subscription sends between reaching the end of the log and reporting it. A real node promises no order: an event that is
   * appended right after the confirmation may arrive before `caughtUp`.
   */
  beforeCaughtUp = 0
  /** Reads that miss a stream which was deleted softly and written again. At a real node, the first reads may not find it. */
  missesOfRevived = 0
  readonly #late: Array<() => void> = []

  calm(): void {
    this.append = this.read = this.subscribe = this.features = () => undefined
    this.clockAhead = this.beforeCaughtUp = this.missesOfRevived = 0
  }

  keep(late: () => void): void {
    this.#late.push(late)
  }

  /** Writes and answers every `late` append, in the order in which they came. */
  release(): void {
    for (const happen of this.#late.splice(0)) happen()
  }
}
