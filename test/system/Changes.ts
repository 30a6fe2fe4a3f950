/**
 * Loaded before a server (`--import`), it changes sources as `TEST_CHANGES` says: a test then need not wait for an hour, may reach loopback
 * through a proxy, or ends the process exactly where it wants. `changed` makes the options of such a server.
 */
import { registerHooks } from "node:module"
import { fileURLToPath } from "node:url"
import type { Options } from "./Server.ts"

/** `to` stands in place of `from` in each file whose path ends with `file`. */
export type Change = readonly [file: string, from: string, to: string]

const changes: ReadonlyArray<Change> = JSON.parse(process.env["TEST_CHANGES"] ?? "[]")

if (changes.length > 0)
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context)
      const here = changes.filter(([file]) => url.endsWith(`/src/${file}`))
      if (here.length === 0 || loaded.source == null) return loaded
      let source = typeof loaded.source === "string" ? loaded.source : new TextDecoder().decode(loaded.source)
      for (const [file, from, to] of here) {
        if (!source.includes(from)) throw new Error(`${file} has no ${from}`)
        source = source.replace(from, () => to)
      }
      return { ...loaded, source }
    }
  })

const bin = fileURLToPath(new URL("../../packages/millrace/bin/millrace.js", import.meta.url))

/** The options of a server that runs the sources, changed so. */
export const changed = (changes: ReadonlyArray<Change>, { env = {}, nodeArgs = [], ...options }: Options = {}): Options => ({
  script: bin,
  ...options,
  env: { ...env, TEST_CHANGES: JSON.stringify(changes) },
  nodeArgs: [...nodeArgs, "--import", fileURLToPath(import.meta.url)]
})
