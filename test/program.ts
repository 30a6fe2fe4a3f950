/**
 * The command line in one piece, made of the sources once for a run of the tests, when a test first asks for it. A process reads some 1,400
 * files to start from the sources, a thousand of them ours and Effect's: that is half of what it costs, and the tests start hundreds.
 * The folder is laid out as the published package: its `bin` is the same file, and finds the rest where that has it.
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type Plugin, rolldown } from "rolldown"
import type { TestProject } from "vitest/node"
import { bundle as webTool } from "../packages/console/bundle/Bundle.ts"
import { onRequest } from "./OnRequest.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
/** Below the dependencies, which are not part of it, so that it finds them. */
const folder = `${root}node_modules/.cache/program-${process.pid}`

/** What is not part of it: all but our packages and Effect. */
const isForeign = (specifier: string): boolean => !/^(?:[./\0]|(?:effect|@effect|@millrace)(?:\/|$))/u.test(specifier)

/** Modules find their workers beside their sources; the web tool, which is not built anew by each server, is found beside what is made here. */
const inPlace: Plugin = {
  name: "in-place",
  transform: (code, id) =>
    code.includes("import.meta.url") && !id.endsWith("/console/src/Files.ts")
      ? code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
      : undefined
}

const makeDist = async (): Promise<void> => {
  const bundle = await rolldown({
    input: `${root}packages/millrace/src/main.ts`,
    platform: "node",
    external: isForeign,
    resolve: { conditionNames: ["@millrace/source", "node", "import"] },
    // As it is, with all of its names and effects
    treeshake: false,
    // A module may well be loaded later in one place, and at once in another
    checks: { ineffectiveDynamicImport: false },
    plugins: [inPlace]
  })
  try {
    await bundle.write({ dir: `${folder}/dist`, format: "esm", keepNames: true })
  } finally {
    await bundle.close()
  }
}

const makeWebTool = async (): Promise<void> => {
  for (const { bytes, path } of await webTool()) {
    const file = join(folder, "dist/web", path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, bytes)
  }
}

/** Returns the path of its `bin`. */
const make = async (): Promise<string> => {
  await Promise.all([makeDist(), makeWebTool()])
  mkdirSync(`${folder}/bin`)
  copyFileSync(`${root}packages/millrace/bin/millrace.js`, `${folder}/bin/millrace.js`)
  return `${folder}/bin/millrace.js`
}

export default async ({ provide }: TestProject) => {
  const { close, url } = await onRequest(make)
  provide("program", url)
  return () => {
    close()
    rmSync(folder, { recursive: true, force: true })
  }
}
