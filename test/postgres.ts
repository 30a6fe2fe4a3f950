/**
 * One PostgreSQL server for a run of the tests: it starts when a test first asks for its address, and is removed after the run. It has a
 * process of its own, for its library ends the process that it is loaded in with code 0, also where tests have failed.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import type { TestProject } from "vitest/node"
import { onRequest } from "./OnRequest.ts"

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
  const { close, url } = await onRequest(() => {
    server = spawn(process.execPath, [PROGRAM], { stdio: ["pipe", "pipe", "inherit"] })
    return addressOf(server)
  })
  provide("postgres", url)
  return async () => {
    close()
    if (server === undefined || server.exitCode !== null) return
    const ended = once(server, "exit")
    server.stdin?.end()
    await ended
  }
}
