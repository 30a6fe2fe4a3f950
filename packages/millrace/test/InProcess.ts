/** The command line inside this process: for many commands, where starting a process for each would take most of the time. */
import { ConfigProvider, Effect } from "effect"
import { vi } from "vitest"
import type { Ended, Environment } from "../../../test/system/Server.ts"
import * as Cli from "../src/Cli.ts"

interface Options {
  readonly env?: Environment
}

/** One command after another: output and exit code are the process's, so they are borrowed for the time. */
export const millrace = async (args: ReadonlyArray<string>, { env = {} }: Options = {}): Promise<Ended> => {
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
