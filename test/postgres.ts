/** One PostgreSQL server for a run of the tests: it starts when a test first asks for its address, and is removed after the run. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { TestProject } from "vitest/node"
import { type Server, startServer } from "../packages/event-store-postgres/test/PostgresServer.ts"

export default async ({ provide }: TestProject) => {
  let started: Promise<Server> | undefined
  const addresses = createServer((_, response) => {
    started ??= startServer()
    started.then(
      ({ url }) => response.end(url),
      (error: unknown) => response.writeHead(500).end(String(error))
    )
  })
  addresses.listen(0, "127.0.0.1")
  await once(addresses, "listening")
  const address = addresses.address()
  if (address === null || typeof address === "string") throw new Error("The server has no port")
  provide("postgres", `http://127.0.0.1:${address.port}`)
  return async () => {
    addresses.close()
    await (await started)?.remove()
  }
}
