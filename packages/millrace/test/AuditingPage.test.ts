/**
 * docs/auditing.md shows what its commands print: they are run in its order, on a store that is the same to the byte each time.
 * `MILLRACE_WRITE_PAGE=1` writes what they print into the page instead.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, expect, test } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import * as AuditedStore from "./AuditedStore.ts"

const page = fileURLToPath(new URL("../../../docs/auditing.md", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "millrace-auditing-"))
afterAll(() => rmSync(folder, { recursive: true }))
beforeAll(async () => {
  await AuditedStore.write(join(folder, "march.db"), false)
  await AuditedStore.write(join(folder, "april.db"), true)
})

const FILE = /^(?<kind>sqlite:)?(?<name>[\w-]+\.(?:db|json|jsonl|jsonl\.gz|txt|csv|journal))$/u

/** A command of the command line: in this process, on files of the folder. An auditor reads it on a terminal, as text. */
const ours = async (command: string): Promise<string> => {
  const [line = "", target] = command.split(" > ")
  const words = line.split(" ").slice(1)
  const args = words.map((word) => word.replace(FILE, (_, kind = "", name) => kind + join(folder, name)))
  const isText = words[0] === "audit" && target === undefined && !words.includes("--json")
  const { stdout, stderr } = await millrace([...args, ...(isText ? ["--text"] : [])])
  if (target === undefined) return stdout + stderr
  writeFileSync(join(folder, target), stdout)
  return stderr
}

/** Tools of the page that are not installed here. */
const MISSING = ["sed", "gzip", "grep", "sha256sum", "xxd", "base64", "jq"].filter((tool) => {
  const isThere = spawnSync("sh", ["-c", `command -v ${tool}`]).status === 0
  if (!isThere) console.warn(`SKIPPED: ${tool} is not installed, so the commands of the page that use it were not run`)
  return !isThere
})

/** What a command prints; undefined where a tool of it is not installed. */
const run = async (command: string): Promise<string | undefined> => {
  if (command.startsWith("millrace ")) return ours(command)
  const isMissing = MISSING.some((tool) => new RegExp(`\\b${tool}\\b`, "u").test(command))
  return isMissing ? undefined : execFileSync("sh", ["-c", command], { cwd: folder, encoding: "utf8" })
}

const BLOCK = /(?<=```console\n)[\s\S]*?(?=```)/gu

/** The commands of a block, each with what the page says it prints. */
const commandsOf = (block: string) =>
  block
    .split(/^\$ /mu)
    .slice(1)
    .map((text) => ({ command: text.slice(0, text.indexOf("\n")), shown: text.slice(text.indexOf("\n") + 1) }))

/** Lines `...` stand for others. */
const patternOf = (shown: string): RegExp =>
  new RegExp(`^${shown.replaceAll(/[\\^$.*+?()[\]{}|]/gu, "\\$&").replaceAll(/^\\\.\\\.\\\.\n/gmu, "(?:.*\\n)*")}$`, "u")

test("docs/auditing.md shows what its commands print", { timeout: 60_000 }, async () => {
  const text = readFileSync(page, "utf8")
  const blocks = text.match(BLOCK) ?? []
  expect(blocks.length).toBeGreaterThan(5)
  let written = text
  for (const block of blocks) {
    const printed: Array<string> = []
    for (const { command, shown } of commandsOf(block)) {
      const output = (await run(command))?.replaceAll(folder, "") ?? shown
      printed.push(`$ ${command}\n${shown.includes("...\n") ? shown : output}`)
      if (process.env["MILLRACE_WRITE_PAGE"] === undefined) expect(output, command).toMatch(patternOf(shown))
    }
    written = written.replace(block, () => printed.join(""))
  }
  if (process.env["MILLRACE_WRITE_PAGE"] !== undefined) writeFileSync(page, written)
})
