/**
 * Schemas on the PostgreSQL server that all tests of a run share: the one in `MILLRACE_TEST_POSTGRES_URL`, if set, whose user must be a
 * superuser; else one that `test/postgres.ts` starts.
 */
import { Effect } from "effect"
import pg from "pg"
import { afterAll, inject } from "vitest"
import { obtain } from "../../../test/OnRequest.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** Where the address of the PostgreSQL server of this run is asked for. */
    readonly postgres: string
  }
}

/** The server that the tests share. */
export const url = async (): Promise<string> => process.env["MILLRACE_TEST_POSTGRES_URL"] ?? obtain(inject("postgres"))

let schemas = 0

/** The name of a schema that no other test uses. */
export const freshSchema = (): string => `suite_${process.pid}_${Date.now().toString(36)}_${schemas++}`

/** Statements of another program, on a connection of its own. */
export const client = (address: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const opened = new pg.Client({ connectionString: address })
      opened.on("error", () => {})
      await opened.connect()
      return opened
    }),
    (opened) => Effect.promise(() => opened.end().catch(() => {}))
  )

const drop = (address: string, name: string) =>
  Effect.scoped(Effect.flatMap(client(address), (db) => Effect.promise(() => db.query(`DROP SCHEMA IF EXISTS ${name} CASCADE`))))

/** A schema for one test, dropped with its scope. */
export const schema = Effect.acquireRelease(
  Effect.promise(async () => ({ url: await url(), schema: freshSchema() })),
  (made) => drop(made.url, made.schema)
)

/** The name of a schema for all tests of a file, dropped after them. */
export const schemaOfFile = (): string => {
  const name = freshSchema()
  afterAll(async () => Effect.runPromise(drop(await url(), name)))
  return name
}
