/** Starts and kills stand-ins in processes of their own. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { failsafe } from "./Store.ts"

const script = fileURLToPath(new URL("NodeProcess.ts", import.meta.url))

export interface Running {
  readonly process: ChildProcess
  readonly port: number
}

export const start = (file = "", port = 0): Effect.Effect<Running> =>
  failsafe(
    Effect.promise(async () => {
      const child = spawn(process.execPath, ["--conditions=@millrace/source", script, file, `${port}`], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const [line] = await once(createInterface(child.stdout), "line")
      return { process: child, port: Number(line) }
    })
  )

export const kill = ({ process }: Running): Effect.Effect<void> =>
  Effect.promise(async () => {
    if (process.exitCode !== null || process.signalCode !== null) return
    const exited = once(process, "exit")
    process.kill("SIGKILL")
    await exited
  })
