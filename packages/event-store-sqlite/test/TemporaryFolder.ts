/** A temporary folder for a test's files, removed with the scope. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"

export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-sqlite-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A layer on a file in a temporary folder. */
export const inTemporaryFolder = <S, E>(layer: (filename: string) => Layer.Layer<S, E>): Layer.Layer<S, E> =>
  Layer.unwrap(Effect.map(temporaryFolder, (folder) => layer(join(folder, "test.db"))))
