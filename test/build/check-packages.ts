/** Packs every package as it would be published, and has publint and attw look at the tarballs. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
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
    execFileSync("attw", [tarball, "--profile", "esm-only"], { cwd, stdio: "inherit" })
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
