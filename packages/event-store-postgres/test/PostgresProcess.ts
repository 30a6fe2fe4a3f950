/** A program: a PostgreSQL server whose address is the line on stdout. It is removed when stdin ends. */
import { startServer } from "./PostgresServer.ts"

const server = await startServer()
process.stdout.write(`${server.url}\n`)
process.stdin.resume().once("end", async () => {
  await server.remove()
  process.exit()
})
