/**
 * What the actors of a simulation record: every call, grant and observation of a caller or administrator, and everything that upstreams
 * did. Together with the log these records are the evidence that the checkers read.
 */
import { hash } from "node:crypto"
import type { Charge, Credits, OperationError, ProxyNode, ProxySession, WebhookMessage } from "@millrace/core"
import { Cause, Data, Exit, Option, Schema } from "effect"
import type { Process } from "./World.ts"

// biome-ignore lint/suspicious/noExplicitAny: what any operation takes
export type Input = any

/** The host went away before it answered. */
export class Disconnected extends Data.TaggedError("Disconnected")<{}> {}

/** What a caller wants. Retries under one key repeat the same intent. */
export interface Intent {
  readonly accountId: string
  readonly operation: string
  readonly input: Input
  readonly key?: string
  /** A text that differs whenever the request does. */
  readonly request: string
  readonly maxCost?: Credits.Credits
  /** Seconds for which an answer may wait for something to happen. */
  readonly wait?: number
}

/** Whether two calls use the same idempotency key of one account. */
export const haveSameKey = (a: Intent, b: Intent): boolean => a.accountId === b.accountId && a.key === b.key

export type CallError = Charge.ChargeError | OperationError | Disconnected
export type Answer = Exit.Exit<Charge.Reply, CallError>

/** One call, as its caller and its host saw it. Times are milliseconds since 1970, lengths count the events in the log. */
export interface Call {
  readonly intent: Intent
  readonly requestId: string
  readonly process: Process
  readonly startedAt: number
  readonly lengthBefore: number
  /** What the caller was answered; absent if it hung up, or still waits. */
  response?: { readonly answer: Answer; readonly at: number; readonly lengthAfter: number }
  hungUp: boolean
  /** When the host finished the call, whether or not its caller still waited. */
  ended?: { readonly at: number; readonly lengthAfter: number }
}

/** A grant that an administrator asked for. */
export interface Grant {
  readonly accountId: string
  readonly lotId: string
  readonly amount: number
  /** `ok`, or the tag of the error. */
  readonly answer: string
}

/** A recurring grant that was asked for, whatever the answer. */
export interface RecurringGrant {
  readonly accountId: string
  readonly grantId: string
  readonly amount: number
}

/** A host's attempt to open an account for one of its users. */
export interface Opening {
  readonly owner: { readonly reference: string; readonly email?: string }
  /** The name of the host that was asked. */
  readonly host: string
  /** `ok`, or the tag of the error. */
  answer?: string
  /** The account that the answer names. */
  accountId?: string
}

/** A caller's wait for the end of a job, or its download of a file. */
export interface JobObservation {
  readonly kind: "waits" | "fetches"
  readonly jobId: string
  readonly accountId: string
  readonly process: Process
  readonly lengthBefore: number
  readonly lengthAfter: number
  readonly at: number
  /** `ended`, `open`, the tag of the file, or the tag of the error. */
  readonly answer: string
  readonly failed: boolean
}

/** Work that an upstream delivered for a call. */
export interface Delivery {
  /** Absent where recovery found the work. */
  readonly requestId: string | undefined
  readonly reservationId: string
  readonly data: string
  /** Absent: all units that the call asked for. */
  readonly quantity: number | undefined
}

/** A webhook that a host posted, whatever became of it. Times are milliseconds since 1970. */
export interface Post extends WebhookMessage {
  readonly process: Process
  /** When it was sent; `at` is what the clock of its host said before. */
  readonly sentAt: number
  /** Whether the receiver has it and said so, though its answer may be lost. */
  accepted: boolean
}

/** A message as its sender has it. Retries of one message repeat it. */
export interface Message {
  readonly queueId: string
  /** Of the recipient. */
  readonly address: string
  readonly subject: string
  readonly text: string
}

/** A text message as its provider has it. Retries of one repeat it. */
export interface TextMessage {
  /** The provider's id of the message. */
  readonly id: string
  readonly from: string
  /** The public number, E.164. */
  readonly to: string
  readonly text: string
  /** The code in the text, if there is one. */
  readonly code: string | undefined
}

/** An attempt to bring a message to a host. Times are milliseconds since 1970, lengths count the events in the log. */
export interface Delivered<M> {
  readonly message: M
  readonly startedAt: number
  readonly lengthBefore: number
  /** What the sender was told: `taken`, or the tag of the error. Absent while the host has not answered. */
  answer?: { readonly told: string; readonly at: number; readonly lengthAfter: number }
}

export type Mailing = Delivered<Message>

/** A proxy node, and the process that announced it. */
export interface AnnouncedNode {
  readonly node: ProxyNode
  readonly process: Process
}

/** A client that logs in to a proxy node. Times are milliseconds since 1970, lengths count the events in the log. */
export interface Admission {
  readonly sessionId: string
  readonly password: string
  /** The host of the node. */
  readonly process: Process
  readonly startedAt: number
  readonly lengthBefore: number
  /** `told`: `admitted`, `refused`, or the tag of the error. `clock`: what the host's clock said before and after. */
  answer?: { readonly told: string; readonly clock?: readonly [number, number]; readonly at: number; readonly lengthAfter: number }
}

/** A count of all that a node carried for a session so far. */
export interface Counting {
  readonly sessionId: string
  readonly node: string
  readonly traffic: ProxySession.Traffic
  readonly startedAt: number
  readonly lengthBefore: number
  /** `told`: the status of the session, or the tag of the error. */
  answer?: { readonly told: string; readonly at: number; readonly lengthAfter: number }
}

/** What a node had carried for a session when the log was so long. */
export interface Carried {
  readonly length: number
  readonly traffic: ProxySession.Traffic
}

/** A checkpoint that an attempt at a job asked to record. */
export interface CheckpointRecord {
  readonly percent: number
  readonly text: string | undefined
  /** Whether the attempt was answered that it is recorded. */
  confirmed: boolean
}

/** One attempt at a job, as its upstream and its operation saw it. */
export interface AttemptRecord {
  readonly jobId: string
  readonly accountId: string
  readonly attempt: number
  readonly operation: string
  readonly input: string
  /** The checkpoint it resumed from, as JSON text. */
  readonly checkpoint: string | undefined
  /** Events in the log when it began. */
  readonly lengthBefore: number
  readonly checkpoints: Array<CheckpointRecord>
  /** The work that was delivered: its data as JSON text. */
  delivered?: { readonly data: string; readonly quantity: number | undefined; readonly artifacts: ReadonlyArray<string> }
  /** What the operation ended with: `done`, the tag of its error, `Defect`, or `interrupted`. */
  outcome?: string
  /** When it ended, and since when its host had been able to end it: milliseconds since 1970. */
  stopped?: { readonly at: number; readonly unhinderedSince: number }
  /** The upstream ignores interruption. */
  readonly isUninterruptible: boolean
  readonly process: Process
  /** The runner must reject the result: its schema refuses the data, or the counted quantity is impossible. */
  rejectedAs?: "Defect"
}

/** The tag of the error; undefined for a success, a defect, or an interruption. */
export const tagOf = (answer: Exit.Exit<unknown, { readonly _tag: string }>): string | undefined =>
  Exit.isSuccess(answer) ? undefined : Option.getOrUndefined(Option.map(Exit.findErrorOption(answer), ({ _tag }) => _tag))

/** The data that a caller was answered; undefined without a success. */
export const dataOf = ({ response }: Call): Input | undefined =>
  response === undefined || Exit.isFailure(response.answer) ? undefined : JSON.parse(response.answer.value.data)

/** The answer in a few words, for traces and statistics. */
export const summaryOf = (answer: Answer): string => {
  if (Exit.isSuccess(answer)) {
    const { billed, data, replayed } = answer.value
    const cost = billed === undefined ? "free" : `charged ${billed.charged}, ${billed.balance} left`
    return `${replayed ? "replayed" : "done"} ${hash("sha256", data, "base64url").slice(0, 8)}, ${cost}`
  }
  return tagOf(answer) ?? (Cause.hasInterruptsOnly(answer.cause) ? "interrupted" : `died: ${Cause.squash(answer.cause)}`)
}

/** Writes a schema's values as JSON text. */
export const encoderOf = (schema: Schema.Codec<unknown, unknown>): ((value: unknown) => string) => {
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(schema))
  return (value) => JSON.stringify(encode(value))
}
