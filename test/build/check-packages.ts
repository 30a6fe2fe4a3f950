/** Packs every package as it would be published, and has publint and attw look at the tarballs. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import "./build.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "millrace-pack-"))

try {
  for (const name of readdirSync(join(root, "packages"))) {
    const cwd = join(root, "packages", name)
    const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], {
      cwd,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"]
    })
    const [{ filename }] = Object.values(JSON.parse(packed)) as [{ filename: string }]
    const tarball = join(folder, filename)
    console.log(`\n${name}: ${filename}`)
    execFileSync("publint", ["run", "--strict", tarball], { cwd, stdio: "inherit" })
    // A package that is only a command has nothing to import, and so no types that could be wrong
    const { exports } = JSON.parse(readFileSync(join(cwd, "package.json"), "utf8"))
    if ("." in exports) execFileSync("attw", [tarball, "--profile", "esm-only"], { cwd, stdio: "inherit" })
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
