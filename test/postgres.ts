/**
 * One PostgreSQL server for a run of the tests: it starts when a test first asks for its address, and is removed after the run. It has a
 * process of its own, for its library ends the process that it is loaded in with code 0, also where tests have failed.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import type { TestProject } from "vitest/node"

const PROGRAM = fileURLToPath(new URL("../packages/event-store-postgres/test/PostgresProcess.ts", import.meta.url))

const addressOf = (server: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ""
    server.stdout?.setEncoding("utf8").on("data", (piece: string) => {
      text += piece
      if (text.endsWith("\n")) resolve(text.trim())
    })
    server.once("exit", (code) => reject(new Error(`PostgreSQL did not start: its process ended with ${code}`)))
  })

export default async ({ provide }: TestProject) => {
  let server: ChildProcess | undefined
  let started: Promise<string> | undefined
  const start = () => {
    server = spawn(process.execPath, [PROGRAM], { stdio: ["pipe", "pipe", "inherit"] })
    return addressOf(server)
  }
  const addresses = createServer((_, response) => {
    started ??= start()
    started.then(
      (url) => response.end(url),
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
    if (server === undefined || server.exitCode !== null) return
    const ended = once(server, "exit")
    server.stdin?.end()
    await ended
  }
}
