/** Connects to the server, and checks it before the stores use it. */
import { Effect } from "effect"
import * as Connections from "./Connections.ts"
import { Fault } from "./Fault.ts"

/** PostgreSQL 14: the oldest release that is still maintained. */
const OLDEST = 14

interface Settings {
  readonly version: number
  readonly fsync: string
  readonly full_page_writes: string
  readonly synchronous_commit: string
  readonly standbys: string
  readonly encoding: string
  readonly isolation: string
  readonly standby: boolean
}

export interface StoreOptions extends Connections.ConnectionsOptions {
  /** The schema of the tables: `millrace` by default. */
  readonly schema?: string
  /** Opens the store for reading only, which also works on a standby. Nothing is created or migrated, and every write fails. */
  readonly readOnly?: boolean
}

/** Opens connections to the server and checks it. The scope closes them. */
export const connect = (options: StoreOptions) =>
  Effect.tap(Connections.make(options), (connections) => check(connections, options.readOnly ?? false))

/** Refuses a server that would lose or change acknowledged writes; warns of settings under which it might lose them. */
const check = (connections: Connections.Connections, readOnly: boolean): Effect.Effect<void, Fault> =>
  Effect.gen(function* () {
    const { where } = connections
    const [settings] = yield* connections.read<Settings & Record<string, unknown>>(
      `SELECT current_setting('server_version_num')::integer / 10000 AS version, current_setting('fsync') AS fsync,
        current_setting('full_page_writes') AS full_page_writes, current_setting('synchronous_commit') AS synchronous_commit,
        current_setting('synchronous_standby_names') AS standbys, current_setting('server_encoding') AS encoding,
        current_setting('default_transaction_isolation') AS isolation, pg_is_in_recovery() AS standby`
    )
    if (settings === undefined) return yield* Effect.fail(new Fault(`${where} did not return its settings`))
    const refuse = (reason: string) => Effect.fail(new Fault(`${where}: ${reason}`))
    if (settings.version < OLDEST) return yield* refuse(`PostgreSQL ${settings.version} is too old: at least ${OLDEST}`)
    if (settings.encoding !== "UTF8") return yield* refuse(`the database is encoded in ${settings.encoding}: it has to be UTF8`)
    if (readOnly) return
    if (settings.standby) return yield* Effect.fail(new Fault(`${where} is a read-only standby: name the primary`))
    if (settings.fsync === "off") return yield* refuse("fsync is off: what was acknowledged would be lost with the power; set it on")
    if (settings.isolation !== "read committed")
      return yield* refuse(
        `default_transaction_isolation is ${settings.isolation}: ALTER ROLE … SET default_transaction_isolation = 'read committed'`
      )
    if (settings.synchronous_commit === "off")
      yield* Effect.logWarning(`${where}: synchronous_commit is off: the last acknowledged charges are lost when it crashes`)
    if (settings.synchronous_commit === "local" && settings.standbys !== "")
      yield* Effect.logWarning(
        `${where}: synchronous_commit is local: acknowledged charges may be on no standby, and are lost when one takes over`
      )
    if (settings.full_page_writes === "off")
      yield* Effect.logWarning(
        `${where}: full_page_writes is off: a crash can leave pages half written, unless the file system prevents it`
      )
  })
