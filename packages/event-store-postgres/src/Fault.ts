/** The failures of a PostgreSQL server, with messages that an operator can act on. */
import pg from "pg"

interface Details {
  /** A statement was sent and not answered, so it may or may not have been carried out. */
  readonly inDoubt?: boolean
  /** The server refused the data of a statement. */
  readonly isRefusedData?: boolean
  readonly cause?: unknown
}

export class Fault extends Error {
  readonly inDoubt: boolean
  readonly isRefusedData: boolean

  constructor(message: string, { inDoubt = false, isRefusedData = false, cause }: Details = {}) {
    super(message, { cause })
    this.inDoubt = inDoubt
    this.isRefusedData = isRefusedData
  }
}

/** The faults of requests that share a transaction. */
export const failing = {
  closed: (inDoubt: boolean) => new Fault("The store was closed", { inDoubt }),
  isOfOne: (fault: Fault) => fault.isRefusedData
}

/** The fault of a failed connection attempt. Nothing was sent, so nothing is in doubt. `where`: the server's name. */
export const faultOfConnecting = (error: unknown, where: string): Fault => new Fault(explain(error, where), { cause: error })

/**
 * The fault of a statement that was sent. An error of the server rolls its transaction back. After any other failure (the connection broke,
 * the server stopped or crashed, a pooler lost the statement) the statement is in doubt, and also if the severity is not in English.
 */
export const faultOfStatement = (error: unknown, where: string): Fault =>
  new Fault(explain(error, where), {
    inDoubt: !(error instanceof pg.DatabaseError && error.severity === "ERROR"),
    isRefusedData: REFUSED_DATA.test(codeOf(error)),
    cause: error
  })

/**
 * Whether the server refused a prepared statement because this backend does not know it, or knows it from another client: so a pooler is in
 * between. Nothing was carried out.
 */
export const isOfPooler = (error: unknown): boolean => error instanceof pg.DatabaseError && /^(26000|42P05)$/.test(codeOf(error))

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "string" ? error.code : ""

const messageOf = (error: unknown): string => {
  // A host name with several addresses, all of which failed
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ")
  return error instanceof Error && error.message !== "" ? error.message : String(error)
}

const REFUSED_DATA = /^(21|22|23|54)/

/** The message for each error code of PostgreSQL or Node. `@` is the server's name. */
const BY_CODE: ReadonlyArray<readonly [codes: RegExp, meaning: string]> = [
  [/^(28000|28P01)$/, "@ does not let this user in: look at its name, its password and pg_hba.conf"],
  [/^42501$/, "@ does not allow this user to do that: see the roles in the guide"],
  [/^3D000$/, "@: there is no such database"],
  [/^(3F000|42P01|42883)$/, "@: tables or functions of Millrace are missing: was the schema dropped, or not all of it restored?"],
  [/^25006$/, "@ is read-only: a standby, or set so"],
  [/^53100$/, "@ has no space left on its disk"],
  [/^53300$/, "@ has no connection left: lower maxConnections or raise max_connections"],
  [/^53200$/, "@ is out of memory"],
  [/^55P03$/, "@: another writer has kept the log locked for too long"],
  [/^57014$/, "@ gave up: a timeout such as statement_timeout, or somebody cancelled it"],
  [/^57P03$/, "@ is starting up, shutting down or recovering"],
  [/^(ECONNREFUSED|ENOENT)$/, "@ refuses connections: is it running, and is that its port?"],
  [/^(ENOTFOUND|EAI_AGAIN)$/, "@: no such host"],
  [/^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/, "@ cannot be reached"],
  [/CERT|^ERR_TLS|^UNABLE_TO/, "The certificate of @ is not trusted: name its authority by sslrootcert"],
  [/^(57P|08)|^(ECONNRESET|EPIPE)$/, "The connection to @ was lost"],
  [REFUSED_DATA, "@ refused what was sent"]
]

/** The message for errors without a code, by their text. */
const BY_MESSAGE: typeof BY_CODE = [
  [/^timeout (expired|exceeded when trying)|due to connection timeout$/, "@ gave no connection in time"],
  [/^(Connection terminated|Client has encountered)/, "The connection to @ was lost"]
]

const explain = (error: unknown, where: string): string => {
  if (error instanceof Fault) return error.message
  const code = codeOf(error)
  const message = messageOf(error)
  if (code === "MR001") return `${where}: ${message}`
  if (code === "MR002") return `${where} is a standby: it may be behind`
  const [, meaning] = BY_CODE.find(([codes]) => codes.test(code)) ?? BY_MESSAGE.find(([words]) => words.test(message)) ?? ["", "@ failed"]
  return `${meaning.replace("@", () => where)} (${code === "" ? "" : `${code}: `}${message})`
}
