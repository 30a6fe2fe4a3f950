/** Compiles every package for publishing: `dist/` from `src/`, with types. */
import { execFileSync } from "node:child_process"
import { readdirSync, rmSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))
const packages = readdirSync(`${root}/packages`)

for (const name of packages) rmSync(`${root}/packages/${name}/dist`, { recursive: true, force: true })
execFileSync("tsc", ["-b", "--force", ...packages.map((name) => `packages/${name}`)], { cwd: root, stdio: "inherit" })
