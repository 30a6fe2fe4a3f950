/** Compiles every package for publishing: `dist/` from `src/`, with types. */
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, rmSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))
// `create-millrace` has nothing to compile
const packages = readdirSync(`${root}/packages`).filter((name) => existsSync(`${root}/packages/${name}/tsconfig.json`))

for (const name of packages) rmSync(`${root}/packages/${name}/dist`, { recursive: true, force: true })
execFileSync("tsc", ["-b", "--force", ...packages.map((name) => `packages/${name}`)], { cwd: root, stdio: "inherit" })
// The command line has no types to publish; the library beside it has
execFileSync("tsc", ["-p", "packages/millrace/tsconfig.types.json"], { cwd: root, stdio: "inherit" })
