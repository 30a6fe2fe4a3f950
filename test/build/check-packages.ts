/**
 * Packs every package as it would be published. publint and attw look at the tarballs; then a fresh project installs them all, compiles
 * against their types, and runs a first call on each Node.js that they support.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import "./build.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "millrace-pack-"))

/** The oldest and the newest Node.js that the packages support. */
const NODES = ["22.19.0", "24.21.0"]

const versionOf = (name: string): string => JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8")).version

interface Packed {
  readonly name: string
  readonly tarball: string
  readonly exports: Readonly<Record<string, unknown>>
}

const pack = (folderName: string): Packed => {
  const cwd = join(root, "packages", folderName)
  const stdio = ["ignore", "pipe", "ignore"] as const
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], { cwd, encoding: "utf8", stdio: [...stdio] })
  const [{ filename }] = Object.values(JSON.parse(packed)) as [{ filename: string }]
  const { exports, name } = JSON.parse(readFileSync(join(cwd, "package.json"), "utf8"))
  const tarball = join(folder, filename)
  console.log(`\n${name}: ${filename}`)
  execFileSync("publint", ["run", "--strict", tarball], { cwd, stdio: "inherit" })
  // A package that is only a command has nothing to import, and so no types that could be wrong
  if ("." in exports) execFileSync("attw", [tarball, "--profile", "esm-only"], { cwd, stdio: "inherit" })
  return { name, tarball, exports }
}

/** Every entry of every package, imported: the compiler then reads all their types. */
const importsOf = (packages: ReadonlyArray<Packed>): string =>
  packages
    .flatMap(({ exports, name }) =>
      Object.keys(exports)
        .filter((entry) => entry !== "./package.json")
        .map((entry) => `${name}${entry.slice(1)}`)
    )
    .map((specifier, index) => `export * as entry${index} from "${specifier}"\n`)
    .join("")

const install = (packages: ReadonlyArray<Packed>): string => {
  const project = join(folder, "project")
  mkdirSync(project)
  const dependencies = Object.fromEntries([
    ...packages.map(({ name, tarball }) => [name, `file:${tarball}`]),
    ...["effect", "fast-check", "zod"].map((name) => [name, versionOf(name)]),
    ["typescript", versionOf("typescript")]
  ])
  const manifest = { name: "fresh", private: true, type: "module", dependencies, overrides: overridesOf(packages) }
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest))
  writeFileSync(join(project, "all.ts"), importsOf(packages))
  copyFileSync(join(root, "test/build/first-call.ts"), join(project, "first-call.ts"))
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline"], { cwd: project, stdio: "inherit" })
  return project
}

/** The packages depend on each other by version; none of them is published yet. */
const overridesOf = (packages: ReadonlyArray<Packed>) => Object.fromEntries(packages.map(({ name }) => [name, `$${name}`]))

/**
 * `lib` is the default, with the types of browsers: the types of Effect need them. `exactOptionalPropertyTypes` goes with `skipLibCheck`,
 * because the types of Node.js do not hold without it.
 */
const compile = (project: string, skipLibCheck: boolean): void => {
  const options = { module: "NodeNext", target: "ES2024", strict: true, noUncheckedIndexedAccess: true, types: ["node"], outDir: "out" }
  const compilerOptions = { ...options, skipLibCheck, exactOptionalPropertyTypes: skipLibCheck }
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["all.ts", "first-call.ts"] }))
  console.log(`\ntsc with skipLibCheck ${skipLibCheck}`)
  execFileSync(join(project, "node_modules/.bin/tsc"), ["-p", "."], { cwd: project, stdio: "inherit" })
}

/**
 * What checks passkeys reads ECDSA signatures with a parser that keeps its grammars in the module. With two copies of it, every signature
 * is wrong.
 */
const expectOneParser = (project: string): void => {
  const from = createRequire(join(project, "node_modules/@simplewebauthn/server/package.json"))
  const other = createRequire(from.resolve("@peculiar/asn1-ecc"))
  const [parser, theirs] = [from, other].map((require) => require.resolve("@peculiar/asn1-schema"))
  if (parser !== theirs) throw new Error(`Passkeys do not work with two copies of a parser: ${parser} and ${theirs}`)
}

const run = (project: string, version: string): void => {
  const bin = join(folder, `node-${version}`)
  mkdirSync(bin)
  writeFileSync(join(bin, "package.json"), "{}")
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", `node@${version}`], { cwd: bin, stdio: "inherit" })
  console.log(`\nThe first call on Node.js ${version}`)
  execFileSync(join(bin, "node_modules/.bin/node"), ["out/first-call.js"], { cwd: project, stdio: "inherit" })
}

try {
  const packages = readdirSync(join(root, "packages")).map(pack)
  const project = install(packages)
  expectOneParser(project)
  for (const skipLibCheck of [true, false]) compile(project, skipLibCheck)
  for (const version of NODES) run(project, version)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
