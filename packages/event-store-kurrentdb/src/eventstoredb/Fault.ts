/** Classifies the errors of the library: by type, by code, or by their words, because some have neither type nor code. */
import { convertToCommandError, MaxAppendSizeExceededError, NotLeaderError, WrongExpectedVersionError } from "@eventstore/db-client"
import type { Address } from "../ConnectionString.ts"
import { Fault, type Kind } from "../Driver.ts"

export const faultOf = (error: unknown): Fault => {
  if (error instanceof Fault) return error
  const told = typed(error)
  const message = told instanceof Error ? told.message : String(told)
  if (told instanceof WrongExpectedVersionError) {
    const { actualVersion } = told
    return new Fault({ kind: "wrongRevision", message, actual: typeof actualVersion === "bigint" ? Number(actualVersion) : "noStream" })
  }
  return new Fault({ kind: kindOf(told, message), message })
}

/** The address of the leader, from the error of a node that does not lead. */
export const leaderOf = (error: unknown): Address | undefined => {
  const told = typed(error)
  return told instanceof NotLeaderError ? told.leader : undefined
}

/** The library throws on some errors that have a code and nothing else. */
const typed = (error: unknown): unknown => {
  if (!(error instanceof Error)) return error
  try {
    return convertToCommandError(error)
  } catch {
    return error
  }
}

/** The words of gRPC for a connection that was never made, and of the server for a node that is starting. */
const NEVER_SENT = /No connection established|ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|Name resolution failed|Failed to discover|Not ?Ready/i

/** The codes of gRPC for a call that fails however often it is repeated: a bad argument, a missing permission, and the like. */
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

const kindOf = (error: unknown, message: string): Kind => {
  if (error instanceof MaxAppendSizeExceededError) return "tooLarge"
  if (error instanceof NotLeaderError) return "notLeader"
  if (NEVER_SENT.test(message)) return "unreachable"
  const { type, code } = Object.assign({ type: undefined, code: undefined }, error)
  return REFUSED_TYPES.has(type) || REFUSED.has(code) ? "refused" : "noAnswer"
}
