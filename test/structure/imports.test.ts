/**
 * The import rules. A package's `src` imports only packages before it in this list, declares what it imports, and has no circle of imports,
 * imports of types included. Only `http` imports Effect's HTTP API, and only stores import databases. The browser client imports nothing
 * but its own files. Within `core` the folders are floors: each imports only from itself and from the floors below it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Each package may import those before it. */
const ORDER = [
  "@millrace/event-sourcing",
  "@millrace/event-store-sqlite",
  "@millrace/event-store-postgres",
  "@millrace/event-store-kurrentdb",
  "@millrace/core",
  "@millrace/audit",
  "@millrace/upstreams",
  "@millrace/upstream-espeak",
  "@millrace/upstream-youtubei",
  "@millrace/http",
  "@millrace/console",
  "@millrace/testing",
  "millrace"
]
const STORES = ORDER.filter((name) => name.includes("event-store"))
const DATABASES = ["better-sqlite3", "pg", "postgres", "@eventstore/db-client", "effect/sql", "node:sqlite"]

interface Package {
  readonly name: string
  readonly folder: string
  readonly declared: ReadonlySet<string>
  readonly files: ReadonlyArray<string>
}

const sources = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))

/** `create-millrace` has no sources: it copies a template. */
const named = readdirSync(join(root, "packages")).filter((name) => existsSync(join(root, "packages", name, "src")))

const packages: ReadonlyArray<Package> = named.map((name) => {
  const folder = join(root, "packages", name)
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const declared = new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }))
  return { name: manifest.name, folder, declared, files: sources(join(folder, "src")) }
})

const FROM = /(?:^|[\s;}])(?:import|export)\s(?:[^"'`;]*?\sfrom\s)?\s*["']([^"']+)["']|import\(\s*["']([^"']+)["']\s*\)/gu

/** What a file imports: types and values alike, or only what is left at run time. */
const imports = (file: string, mode: "all" | "runtime"): ReadonlyArray<string> => {
  const text = readFileSync(file, "utf8")
  const code = mode === "all" ? text : stripTypeScriptTypes(text)
  return [...code.matchAll(FROM)].flatMap((match) => match[1] ?? match[2] ?? [])
}

const packageOf = (specifier: string): string =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/")

describe.each(packages)("$name", ({ name, declared, files }) => {
  const all = files.flatMap((file) => imports(file, "all").map((specifier) => ({ file: relative(root, file), specifier })))
  const outside = all.filter(({ specifier }) => !specifier.startsWith(".") && !specifier.startsWith("node:"))

  test("is in the order of packages, and has sources", () => {
    expect(ORDER).toContain(name)
    expect(files.length).toBeGreaterThan(0)
    expect(outside.length).toBeGreaterThan(0)
  })

  test("imports only packages above it", () => {
    const own = ORDER.slice(0, ORDER.indexOf(name))
    const wrong = outside.filter(({ specifier }) => ORDER.includes(packageOf(specifier)) && !own.includes(packageOf(specifier)))
    expect(wrong).toEqual([])
  })

  test("declares every package it imports", () => {
    expect(outside.filter(({ specifier }) => !declared.has(packageOf(specifier)))).toEqual([])
  })

  test("uses HTTP only in http, databases only in the stores, and only its own files", () => {
    const http = outside.filter(({ specifier }) => specifier.startsWith("effect/http-api"))
    if (name !== "@millrace/http") expect(http).toEqual([])
    const databases = all.filter(({ specifier }) =>
      DATABASES.some((database) => specifier === database || specifier.startsWith(`${database}/`))
    )
    if (!STORES.includes(name)) expect(databases).toEqual([])
    expect(all.filter(({ specifier }) => specifier.includes("/src/") || specifier.includes("/dist/"))).toEqual([])
  })

  test("has no circular imports of types or values", () => {
    const graph = new Map(
      files.map((file) => [
        file,
        imports(file, "all")
          .filter((specifier) => specifier.startsWith("."))
          .map((specifier) => resolve(dirname(file), specifier))
      ])
    )
    expect(circlesIn(graph).map((circle) => circle.map((file) => relative(root, file)).join(" -> "))).toEqual([])
  })
})

/** Each circle of the graph that a depth-first search meets, as a path. */
const circlesIn = (graph: ReadonlyMap<string, ReadonlyArray<string>>): ReadonlyArray<ReadonlyArray<string>> => {
  const circles: Array<ReadonlyArray<string>> = []
  const done = new Set<string>()
  const visit = (file: string, path: ReadonlyArray<string>): void => {
    if (path.includes(file)) return void circles.push([...path.slice(path.indexOf(file)), file])
    if (done.has(file)) return
    for (const next of graph.get(file) ?? []) visit(next, [...path, file])
    done.add(file)
  }
  for (const file of graph.keys()) visit(file, [])
  return circles
}

describe("the floors of core", () => {
  /** From the ground up. */
  const FLOORS = [
    "observability",
    "vault",
    "ledger",
    "accounts",
    "payments",
    "work",
    "jobs",
    "billing",
    "leading",
    "notices",
    "webhooks",
    "inboxes",
    "verification",
    "proxies",
    "coupons",
    "prices",
    "alerts",
    "live",
    "operations"
  ]
  /** Files at the root that every floor may import, and those that may import every floor. */
  const GROUND = ["Credits.ts", "Ids.ts", "Memoised.ts", "Money.ts", "Running.ts", "Timestamp.ts"]
  const ROOF = ["Millrace.ts", "Operation.ts", "index.ts"]

  const source = join(root, "packages/core/src")
  /** The height of a file: the ground is 0, the roof is the highest. Undefined if the file is on no floor. */
  const heightOf = (file: string): number | undefined => {
    const [first = ""] = relative(source, file).split("/")
    if (GROUND.includes(first)) return 0
    if (ROOF.includes(first)) return FLOORS.length + 1
    return FLOORS.includes(first) ? FLOORS.indexOf(first) + 1 : undefined
  }
  const files = sources(source)

  test("contain every file", () => {
    expect(files.filter((file) => heightOf(file) === undefined).map((file) => relative(source, file))).toEqual([])
    const folders = readdirSync(source, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
    expect(folders.toSorted()).toEqual(FLOORS.toSorted())
  })

  test("import nothing from above", () => {
    const up = files.flatMap((file) =>
      imports(file, "all")
        .filter((specifier) => specifier.startsWith("."))
        .map((specifier) => resolve(dirname(file), specifier))
        .filter((imported) => (heightOf(imported) ?? 0) > (heightOf(file) ?? 0))
        .map((imported) => `${relative(source, file)} -> ${relative(source, imported)}`)
    )
    expect(up).toEqual([])
  })
})

test("the client for browsers imports only its own files at run time", () => {
  const client = join(root, "packages/http/src/client")
  const seen = new Set([join(client, "index.ts")])
  for (const file of seen) {
    for (const specifier of imports(file, "runtime")) {
      expect([relative(root, file), specifier]).toEqual([relative(root, file), expect.stringMatching(/^\.\/\w+\.ts$/u)])
      seen.add(resolve(client, specifier))
    }
  }
  expect(seen.size).toBeGreaterThan(3)
})
