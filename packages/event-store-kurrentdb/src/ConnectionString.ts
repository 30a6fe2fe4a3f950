/**
 * Connection strings: the addresses of the nodes and the options of the connection, with any of the schemes
 * `kurrentdb://`, `kurrentdb+discover://`, `esdb://` and `esdb+discover://`.
 */
import { readFileSync } from "node:fs"
import { Effect, Schema } from "effect"

export interface Address {
  readonly address: string
  readonly port: number
}

export interface Connection {
  /** One node, or several seeds that name the leader. */
  readonly hosts: readonly [Address, ...Array<Address>]
  /** Whether the host is a DNS name whose addresses are the seeds. */
  readonly discover: boolean
  readonly user: { readonly username: string; readonly password: string } | undefined
  readonly tls: Tls | undefined
  /** Milliseconds between two pings of an idle connection, and the milliseconds after which a ping fails. */
  readonly keepAliveInterval: number
  readonly keepAliveTimeout: number
  /** Seconds until a seed counts as silent; attempts to ask all seeds; milliseconds between two attempts. */
  readonly gossipTimeout: number
  readonly maxDiscoverAttempts: number
  readonly discoveryInterval: number
  /** The name of this client in the statistics of the node. */
  readonly connectionName: string | undefined
  /** Milliseconds that a call may take; the store's `deadline` takes precedence. */
  readonly defaultDeadline: number | undefined
}

export interface Tls {
  /** PEM of the certificate authority; the system's authorities by default. */
  readonly authority: Buffer | undefined
  /** PEM of the client's certificate and key. */
  readonly client: { readonly certificate: Buffer; readonly key: Buffer } | undefined
  /** Whether the node's certificate is verified. */
  readonly verify: boolean
}

/** The connection string is invalid. The error does not repeat the string, because it may hold a password. */
export class InvalidConnectionString extends Schema.TaggedError<InvalidConnectionString>()("InvalidConnectionString", {
  reason: Schema.String
}) {
  override get message(): string {
    return `The connection string cannot be used: ${this.reason}`
  }
}

const invalid = (reason: string): never => {
  throw new InvalidConnectionString({ reason })
}

const SHAPE = /^(?:kurrentdb|esdb)(\+discover)?:\/\/(?:([^:@/?]*):([^@/?]*)@)?([^/?@]+)\/?(?:\?(.*))?$/

const OPTIONS = [
  "tls",
  "tlsVerifyCert",
  "tlsCaFile",
  "userCertFile",
  "userKeyFile",
  "keepAliveInterval",
  "keepAliveTimeout",
  "gossipTimeout",
  "maxDiscoverAttempts",
  "discoveryInterval",
  "connectionName",
  "defaultDeadline",
  "nodePreference",
  "throwOnAppendFailure"
] as const

type Option = (typeof OPTIONS)[number]

const optionOf = (name: string): Option =>
  OPTIONS.find((option) => option.toLowerCase() === name.toLowerCase()) ?? invalid(`It has no option ${JSON.stringify(name)}`)

/** Parses a connection string, and reads the files that it names. */
export const parse = (text: string): Effect.Effect<Connection, InvalidConnectionString> =>
  Effect.try({
    try: () => read(text.trim()),
    catch: (error) => {
      if (error instanceof InvalidConnectionString) return error
      return new InvalidConnectionString({ reason: error instanceof Error ? error.message : String(error) })
    }
  })

const read = (text: string): Connection => {
  const match = SHAPE.exec(text) ?? invalid("Expected kurrentdb://[user:password@]host[:port][,host[:port]][?option=value], or esdb://")
  const [, discover, username, password, hosts = "", query = ""] = match
  const options = optionsOf(query)
  const [first, ...others] = hosts.split(",").map(addressOf)
  const preference = options.get("nodePreference") ?? "leader"
  if (preference.toLowerCase() !== "leader")
    invalid("nodePreference is always leader: an answer by any other node may be old, and a balance decided on it wrong")
  if (options.get("throwOnAppendFailure") === "false") invalid("throwOnAppendFailure=false hides where a stream ends")
  if (first === undefined) return invalid("It names no host")
  if (discover !== undefined && others.length > 0) invalid("+discover takes one host: its addresses are the seeds")
  const deadline = whole(options, "defaultDeadline", -1)
  return {
    hosts: [first, ...others],
    discover: discover !== undefined,
    user:
      username === undefined || password === undefined
        ? undefined
        : { username: decodeURIComponent(username), password: decodeURIComponent(password) },
    tls: flag(options, "tls", true) ? tlsOf(options) : undefined,
    keepAliveInterval: whole(options, "keepAliveInterval", 10_000),
    keepAliveTimeout: whole(options, "keepAliveTimeout", 10_000),
    gossipTimeout: limit(options, "gossipTimeout", 5),
    maxDiscoverAttempts: limit(options, "maxDiscoverAttempts", 10),
    discoveryInterval: Math.max(0, whole(options, "discoveryInterval", 100)),
    connectionName: options.get("connectionName"),
    defaultDeadline: deadline < 0 ? undefined : deadline
  }
}

type Options = ReadonlyMap<Option, string>

const optionsOf = (query: string): Options => {
  const options = new Map<Option, string>()
  for (const pair of query.split("&")) {
    if (pair === "") continue
    const [name = "", ...value] = pair.split("=")
    options.set(optionOf(name), decodeURIComponent(value.join("=")))
  }
  return options
}

const DEFAULT_PORT = 2_113

const addressOf = (host: string): Address => {
  const [, address = "", port] =
    /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+)(?::(\d+))?$/.exec(host.trim()) ?? invalid("A host is name:port, or [IPv6]:port")
  const number = port === undefined ? DEFAULT_PORT : Number(port)
  return number > 0 && number < 65_536 ? { address, port: number } : invalid("A port is at most 65535")
}

const flag = (options: Options, name: Option, byDefault: boolean): boolean => {
  const value = options.get(name)?.toLowerCase()
  if (value === undefined) return byDefault
  return value === "true" ? true : value === "false" ? false : invalid(`${name} is true or false`)
}

/** Parses an integer; -1 turns the option off. */
const whole = (options: Options, name: Option, byDefault: number): number => {
  const value = options.get(name)
  if (value === undefined) return byDefault
  return /^(-1|\d{1,9})$/.test(value) ? Number(value) : invalid(`${name} is a whole number`)
}

/** A limit that may be off. */
const limit = (options: Options, name: Option, byDefault: number): number => {
  const value = whole(options, name, byDefault)
  return value < 0 ? Number.POSITIVE_INFINITY : value
}

const tlsOf = (options: Options): Tls => {
  const certificate = options.get("userCertFile")
  const key = options.get("userKeyFile")
  const authority = options.get("tlsCaFile")
  if ((certificate === undefined) !== (key === undefined)) invalid("userCertFile and userKeyFile come together")
  return {
    authority: authority === undefined ? undefined : readFileSync(authority),
    client: certificate === undefined || key === undefined ? undefined : { certificate: readFileSync(certificate), key: readFileSync(key) },
    verify: flag(options, "tlsVerifyCert", true)
  }
}
