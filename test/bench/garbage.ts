/**
 * The memory that a charge and a billed request leave behind, in kilobytes. Unlike a rate, it is nearly the same on a busy machine and on a
 * quiet one, so a change of a tenth is a change of the code.
 */
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"

const child = fileURLToPath(new URL("./garbage-child.ts", import.meta.url))

/** A young generation that no measurement fills: then the heap grows by exactly what was allocated. */
const FLAGS = ["--conditions=@millrace/source", "--expose-gc", "--min-semi-space-size=512", "--max-semi-space-size=512"]

const measured = (what: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const process = fork(child, [what], { execArgv: FLAGS, stdio: ["ignore", "ignore", "inherit", "ipc"] })
    process.once("message", (kilobytes) => resolve(Number(kilobytes)))
    process.once("error", reject)
    process.once("exit", (code) => reject(new Error(`The measurement of ${what} ended with ${code}`)))
  })

export const run = async () => [
  { what: "a charge, of 64 clients and 1,000 accounts", kB: await measured("charge") },
  { what: "a billed BIN lookup over HTTP, of 64 connections", kB: await measured("request") }
]
