/**
 * The migrations of the tables, which have their own schema. Migrations only go forward; the tables of a newer release are refused.
 * Several processes may start at once: the first migrates under a lock, and the others find nothing left to do.
 */
import { Effect } from "effect"
import type { Connections, Run } from "./Connections.ts"
import { Fault } from "./Fault.ts"

export interface Tables {
  /** `events` or `state`; each has its own versions. */
  readonly name: string
  /** The SQL of each version, given the schema's name; the first makes version 1. Never changed once released. */
  readonly migrations: ReadonlyArray<(schema: string) => string>
}

export const DEFAULT_SCHEMA = "millrace"

/** Schema names that need no quotes in SQL. */
const isPlain = (schema: string) => /^[a-z_][a-z0-9_]{0,50}$/.test(schema) && !schema.startsWith("pg_")

const versionOf = async (run: Run, schema: string, { name, migrations }: Tables, where: string): Promise<number> => {
  // Not `to_regclass`, which may answer from before this backend waited for the lock
  const there = await run("SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'migrations'", schema)
  if (there.length === 0) return 0
  const [row] = await run(`SELECT coalesce(max(version), 0) AS version FROM ${schema}.migrations WHERE name = $1`, name)
  const version = Number(row?.["version"])
  if (version > migrations.length)
    throw new Fault(
      `${where}: ${schema} was migrated by a newer release: its ${name} are version ${version}, this release knows up to ${migrations.length}`
    )
  return version
}

/** Creates or migrates the tables. At the newest version it only reads, and needs no permission to create anything. */
export const migrate = (connections: Connections, schema: string, tables: Tables, mayMigrate: boolean): Effect.Effect<void, Fault> => {
  const { where } = connections
  if (!isPlain(schema)) return Effect.fail(new Fault(`Not the name of a schema: ${JSON.stringify(schema)}`))
  const newest = tables.migrations.length
  return connections.transact(async (run) => {
    if ((await versionOf(run, schema, tables, where)) === newest) return
    if (!mayMigrate) throw new Fault(`${where}: ${schema} does not exist or is older: open it once without readOnly to migrate it`)
    await run("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", `millrace migrations ${schema}`)
    const version = await versionOf(run, schema, tables, where)
    if ((await run("SELECT FROM pg_namespace WHERE nspname = $1", schema)).length === 0) await run(`CREATE SCHEMA ${schema}`)
    await run(
      `CREATE TABLE IF NOT EXISTS ${schema}.migrations(
        name text NOT NULL, version integer NOT NULL, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (name, version))`
    )
    for (const [i, sql] of tables.migrations.entries()) {
      if (i < version) continue
      await run(sql(schema))
      await run(`INSERT INTO ${schema}.migrations(name, version) VALUES ($1, $2)`, tables.name, i + 1)
    }
  })
}
