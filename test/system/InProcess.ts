/** The command line inside this process: for many commands, where starting a process for each would take most of the time. */
import { ConfigProvider, Effect } from "effect"
import { vi } from "vitest"
import * as Cli from "../../packages/millrace/src/Cli.ts"
import type { Ended, Environment } from "./Server.ts"

interface Options {
  readonly env?: Environment
}

let last: Promise<unknown> = Promise.resolve()

/** Runs a command to its end: one after another, for output and exit code are the process's, and only borrowed. */
export const millrace = (args: ReadonlyArray<string>, options: Options = {}): Promise<Ended> => {
  const ended = last.then(() => run(args, options))
  last = ended.catch(() => {})
  return ended
}

const run = async (args: ReadonlyArray<string>, { env = {} }: Options): Promise<Ended> => {
  const written = { stdout: "", stderr: "" }
  const borrow = (name: "stdout" | "stderr") =>
    vi.spyOn(process[name], "write").mockImplementation((text, encoding, callback) => {
      written[name] += text
      const done = typeof encoding === "function" ? encoding : callback
      done?.()
      return true
    })
  const before = process.exitCode
  process.exitCode = undefined
  const borrowed = [borrow("stdout"), borrow("stderr")]
  try {
    await Effect.runPromise(Effect.provide(Cli.main(args), ConfigProvider.layer(ConfigProvider.fromEnv({ env }))))
    return { code: Number(process.exitCode ?? 0), ...written }
  } finally {
    for (const spy of borrowed) spy.mockRestore()
    process.exitCode = before
  }
}
