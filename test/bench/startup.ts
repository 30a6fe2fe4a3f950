/** From the start of the process to its listening line, on a log of a million events. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { EventStore } from "@millrace/event-sourcing"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Effect } from "effect"
import * as ledgers from "./ledgers.ts"
import { withFolder } from "./measure.ts"

const EVENTS = 1_000_000
const bin = fileURLToPath(new URL("../../packages/millrace/bin/millrace.js", import.meta.url))

/** Seconds until it listens; then it is told to end. */
const start = (filename: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    const env = { ...process.env, MILLRACE_MASTER_KEY: "0".repeat(64) }
    const server = spawn(process.execPath, [bin, "serve", "--port", "0", "--store", `sqlite:${filename}`], {
      env,
      stdio: ["ignore", "pipe", "inherit"]
    })
    let seconds = Number.NaN
    server.stdout.once("data", () => {
      seconds = (performance.now() - began) / 1000
      server.kill("SIGTERM")
    })
    server.once("error", reject)
    server.once("exit", () => resolve(Number(seconds.toFixed(2))))
  })

export const run = () =>
  withFolder(async (folder) => {
    const filename = join(folder, "log.db")
    const empty = await start(filename)
    const head = await Effect.runPromise(
      Effect.provide(
        Effect.andThen(
          ledgers.write(EVENTS, 1_000),
          EventStore.EventStore.use(({ head }) => head)
        ),
        SqliteEventStore.layer({ filename })
      )
    )
    const log = `${Number(head).toLocaleString("en")} events`
    return [
      { log: "empty", seconds: empty },
      { log: `${log}, none of them seen before`, seconds: await start(filename) },
      { log: `${log}, as on any later day`, seconds: await start(filename) }
    ]
  })
