/** Classifies the errors of the library by type, code or message. Some errors have neither a type nor a code. */
import { convertToCommandError, MaxAppendSizeExceededError, NotLeaderError, WrongExpectedVersionError } from "@eventstore/db-client"
import type { Address } from "../ConnectionString.ts"
import { Fault, type Kind } from "../Driver.ts"
import { CallEnded } from "./AppendStream.ts"
import type { BatchError } from "./Messages.ts"

export const faultOf = (error: unknown): Fault => {
  if (error instanceof Fault) return error
  if (error instanceof CallEnded)
    return new Fault({ kind: NEVER_SENT.test(error.message) ? "unreachable" : "noAnswer", message: error.message })
  const told = typed(error)
  const message = told instanceof Error ? told.message : String(told)
  if (told instanceof WrongExpectedVersionError) {
    const { actualVersion } = told
    return new Fault({ kind: "wrongRevision", message, actual: typeof actualVersion === "bigint" ? Number(actualVersion) : "noStream" })
  }
  return new Fault({ kind: kindOf(told, message), message })
}

/** The address of the leader, from the error of a follower. */
export const leaderOf = (error: unknown): Address | undefined => {
  const told = typed(error instanceof CallEnded ? error.cause : error)
  return told instanceof NotLeaderError ? told.leader : undefined
}

/** Converts an error to the library's type. The conversion throws for some errors that have only a code. */
const typed = (error: unknown): unknown => {
  if (!(error instanceof Error)) return error
  try {
    return convertToCommandError(error)
  } catch {
    return error
  }
}

/** Messages of gRPC for a connection that was never made, and of the server for a node that is starting. */
const NEVER_SENT = /No connection established|ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|Name resolution failed|Failed to discover|Not ?Ready/i

/** The gRPC codes of permanent errors, such as a bad argument or a missing permission. */
const REFUSED: ReadonlySet<unknown> = new Set([3, 5, 6, 7, 9, 11, 12, 16])

/** The types of the library for errors that the server names. */
const REFUSED_TYPES: ReadonlySet<unknown> = new Set([
  "access-denied",
  "invalid-argument",
  "missing-required-metadata-property",
  "not-found",
  "stream-deleted",
  "unsupported"
])

/** The answers of the batch call after which surely nothing was done, by the message that describes them. */
const BATCH_KINDS: ReadonlyMap<string, Kind> = new Map([
  ["event_store.client.MaximumAppendSizeExceeded", "tooLarge"],
  ["event_store.client.StreamDeleted", "refused"],
  ["event_store.client.AccessDenied", "refused"],
  ["event_store.client.BadRequest", "refused"]
])

/** The fault of an append that the batch call answered with an error. */
export const batchFaultOf = ({ message, type }: BatchError): Fault =>
  new Fault({ kind: NEVER_SENT.test(message) ? "unreachable" : (BATCH_KINDS.get(type) ?? "noAnswer"), message })

const kindOf = (error: unknown, message: string): Kind => {
  if (error instanceof MaxAppendSizeExceededError) return "tooLarge"
  if (error instanceof NotLeaderError) return "notLeader"
  if (NEVER_SENT.test(message)) return "unreachable"
  const { type, code } = Object.assign({ type: undefined, code: undefined }, error)
  return REFUSED_TYPES.has(type) || REFUSED.has(code) ? "refused" : "noAnswer"
}
