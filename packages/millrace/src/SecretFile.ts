/** A file with a secret, which only its owner may read. */
import { readFileSync, statSync } from "node:fs"
import { Effect, Redacted } from "effect"
import { CommandFailed, textOf } from "./Failure.ts"

/** Reads the secret; fails where others than its owner may read the file. `what` begins the sentence: `the master key file`. */
export const read = (file: string, what: string): Effect.Effect<Redacted.Redacted<string>, CommandFailed> =>
  Effect.try({
    try: () => {
      if ((statSync(file).mode & 0o077) !== 0) throw new Error(`others may read it: chmod 600 ${file}`)
      return Redacted.make(readFileSync(file, "utf8").trim())
    },
    catch: (error) => new CommandFailed(`${what} cannot be used: ${textOf(error)}`)
  })
