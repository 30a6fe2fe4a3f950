/** Compiles every package for publishing: `dist/` from `src/`, with types. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { bundle } from "../../packages/console/bundle/Bundle.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
// `create-millrace` has nothing to compile
const packages = readdirSync(`${root}/packages`).filter((name) => existsSync(`${root}/packages/${name}/tsconfig.json`))

for (const name of packages) rmSync(`${root}/packages/${name}/dist`, { recursive: true, force: true })
execFileSync("tsc", ["-b", "--force", ...packages.map((name) => `packages/${name}`)], { cwd: root, stdio: "inherit" })
// The command line has no types to publish; the library beside it has
execFileSync("tsc", ["-p", "packages/millrace/tsconfig.types.json"], { cwd: root, stdio: "inherit" })
// The web tool, as the package serves it
for (const { bytes, path } of await bundle()) {
  const file = join(root, "packages/console/dist/web", path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, bytes)
}
