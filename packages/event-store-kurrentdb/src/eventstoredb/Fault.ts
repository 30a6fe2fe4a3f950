/** What an error of the library means: some have a type, some a code, some neither, and the words tell the rest. */
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

/** Where the leader is, as a node tells that is none. */
export const leaderOf = (error: unknown): Address | undefined => {
  const told = typed(error)
  return told instanceof NotLeaderError ? told.leader : undefined
}

/** The library chokes on some errors that carry a code and nothing else. */
const typed = (error: unknown): unknown => {
  if (!(error instanceof Error)) return error
  try {
    return convertToCommandError(error)
  } catch {
    return error
  }
}

/** gRPC's own words for a connection that was never made, and the server's for a node that only starts. */
const NEVER_SENT = /No connection established|ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|Name resolution failed|Failed to discover|Not ?Ready/i

/** gRPC's numbers for an answer that no repetition changes: a bad argument, a missing permission, a state that forbids it, ... */
const REFUSED: ReadonlySet<unknown> = new Set([3, 5, 6, 7, 9, 11, 12, 16])

/** Of errors that the server told by name, as the library has them. */
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
