/**
 * The memory that a charge and a billed request leave behind, in kilobytes. Unlike a rate, it is nearly the same on a busy machine and on a
 * quiet one, so a change of a tenth is a change of the code.
 */
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { intervalOf } from "./figures.ts"
import { median, type Options } from "./measure.ts"

const child = fileURLToPath(new URL("./garbage-child.ts", import.meta.url))

/** A young generation that no measurement fills: then the heap grows by exactly what was allocated. */
const FLAGS = ["--conditions=@millrace/source", "--expose-gc", "--min-semi-space-size=512", "--max-semi-space-size=512"]

/** Kilobytes of each round. */
const measured = (what: string): Promise<ReadonlyArray<number>> =>
  new Promise((resolve, reject) => {
    const process = fork(child, [what], { execArgv: FLAGS, stdio: ["ignore", "ignore", "inherit", "ipc"] })
    process.once("message", (kilobytes) => resolve(kilobytes as ReadonlyArray<number>))
    process.once("error", reject)
    process.once("exit", (code) => reject(new Error(`The measurement of ${what} ended with ${code}`)))
  })

const WHATS = { charge: "a charge, of 64 clients and 1,000 accounts", request: "a billed BIN lookup over HTTP, of 64 connections" }

export const run = async ({ seen }: Options) => {
  const rows = []
  for (const [name, what] of Object.entries(WHATS)) {
    const rounds = await measured(name)
    // A figure is better the greater it is
    seen?.(`${name}s in a megabyte`, intervalOf(rounds.map((kilobytes) => 1_000 / kilobytes)))
    rows.push({ what, kB: Number(median(rounds).toFixed(1)) })
  }
  return rows
}
