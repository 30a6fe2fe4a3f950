/** The failures of a PostgreSQL server, in words that an operator can act on. */
import pg from "pg"

export type Kind =
  | "unreachable"
  | "lost"
  | "starting"
  | "access"
  | "missing"
  | "readOnly"
  | "full"
  | "busy"
  | "late"
  | "data"
  | "settings"
  | "newerSchema"
  | "closed"
  | "other"

export class Fault extends Error {
  readonly kind: Kind
  /** A statement was sent and not answered, so its writes may or may not be there. */
  readonly inDoubt: boolean

  constructor(kind: Kind, message: string, { inDoubt = false, cause }: { readonly inDoubt?: boolean; readonly cause?: unknown } = {}) {
    super(message, { cause })
    this.kind = kind
    this.inDoubt = inDoubt
  }
}

/** The fault of a connection that could not be made: nothing was sent, so nothing is in doubt. `where` names the server. */
export const faultOfConnecting = (error: unknown, where: string): Fault => {
  const [kind, message] = explain(error, where)
  return new Fault(kind, message, { cause: error })
}

/**
 * The fault of a statement that was sent. An error of the server has undone its transaction. After anything else (the connection broke,
 * the server stopped or crashed, a pooler lost the statement) the statement is in doubt; so it is if the severity is not in English.
 */
export const faultOfStatement = (error: unknown, where: string): Fault => {
  const [kind, message] = explain(error, where)
  return new Fault(kind, message, { inDoubt: !(error instanceof pg.DatabaseError && error.severity === "ERROR"), cause: error })
}

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "string" ? error.code : ""

const messageOf = (error: unknown): string => {
  // A name with several addresses, each of which refused
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ")
  return error instanceof Error && error.message !== "" ? error.message : String(error)
}

const explain = (error: unknown, where: string): readonly [Kind, string] => {
  if (error instanceof Fault) return [error.kind, error.message]
  const code = codeOf(error)
  const told = `(${code === "" ? "" : `${code}: `}${messageOf(error)})`
  switch (code) {
    case "28000":
    case "28P01":
      return ["access", `${where} does not let this user in: look at its name, its password and pg_hba.conf ${told}`]
    case "42501":
      return ["access", `${where} does not allow this user to do that: see the roles in the guide ${told}`]
    case "3D000":
      return ["missing", `${where}: there is no such database ${told}`]
    case "3F000":
    case "42P01":
    case "42883":
      return [
        "missing",
        `${where}: tables or functions of Millrace are missing: was the schema dropped, or not all of it restored? ${told}`
      ]
    case "25006":
      return ["readOnly", `${where} is read-only: a standby, or set so ${told}`]
    case "53100":
      return ["full", `${where} has no space left on its disk ${told}`]
    case "53300":
      return ["busy", `${where} has no connection left: lower maxConnections or raise max_connections ${told}`]
    case "53200":
      return ["busy", `${where} is out of memory ${told}`]
    case "55P03":
      return ["busy", `${where}: another writer has kept the log locked for too long ${told}`]
    case "57014":
      return ["late", `${where} gave up: a timeout such as statement_timeout, or somebody cancelled it ${told}`]
    case "57P03":
      return ["starting", `${where} is starting up, shutting down or recovering ${told}`]
    case "MR001":
      return ["settings", `${where}: ${messageOf(error)}`]
    case "MR002":
      return ["readOnly", `${where} is a standby: it may be behind`]
    case "ECONNREFUSED":
    case "ENOENT":
      return ["unreachable", `${where} refuses connections: is it running, and is that its port? ${told}`]
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return ["unreachable", `${where}: no such host ${told}`]
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return ["unreachable", `${where} cannot be reached ${told}`]
  }
  if (/CERT|^ERR_TLS|^UNABLE_TO/.test(code))
    return ["access", `The certificate of ${where} is not trusted: name its authority by sslrootcert ${told}`]
  if (/^timeout (expired|exceeded when trying)|due to connection timeout$/.test(messageOf(error)))
    return ["unreachable", `${where} gave no connection in time ${told}`]
  if (
    /^(57P|08)/.test(code) ||
    code === "ECONNRESET" ||
    code === "EPIPE" ||
    /^(Connection terminated|Client has encountered)/.test(messageOf(error))
  )
    return ["lost", `The connection to ${where} was lost ${told}`]
  if (/^(21|22|23|54)/.test(code)) return ["data", `${where} refused what was sent ${told}`]
  return ["other", `${where} failed ${told}`]
}
