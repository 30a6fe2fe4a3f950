/**
 * The first hour of docs/property-testing.md: its code is that of `examples/property-testing`, its output is what that code prints, the test
 * that the failure prints fails in the same way when it is pasted, and the repaired operation passes.
 */
import { execFile } from "node:child_process"
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const examples = join(root, "examples/property-testing")
const page = await readFile(join(root, "docs/property-testing.md"), "utf8")

const CONFIG = `
export default {
  ssr: { resolve: { conditions: ["@millrace/source"], externalConditions: ["@millrace/source"] } },
  resolve: { conditions: ["@millrace/source"] },
  test: { pool: "forks", maxWorkers: 1, execArgv: ["--conditions=@millrace/source"], testTimeout: 60_000 }
}
`

interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly assertionResults: ReadonlyArray<{ readonly status: string; readonly failureMessages: ReadonlyArray<string> }>
  }>
}

/** The output block of the page: the message of the failure. */
const printed = /```text\n(?<message>Simulation of seed[\s\S]*?)```/u.exec(page)?.groups?.["message"] ?? ""
/** The test within it. */
const pasted = printed.slice(printed.indexOf("import { Simulator }"))
const MISTAKE = "return { data: { sent } }"
const REPAIRED = "return { data: { sent }, quantity: sent }"

/** A text without ids and times, which differ with every change that draws from the seed. */
const shapeOf = (text: string): string => text.replaceAll(/acc_\w+|[\w-]{20,}|\b\d{2,}\b/gu, "#")

let folder = ""
/** The messages of the failed tests of each file. */
const failures = new Map<string, ReadonlyArray<string>>()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-property-testing-"))
  await symlink(join(root, "node_modules"), join(folder, "node_modules"))
  await cp(examples, folder, { recursive: true })
  await writeFile(join(folder, "package.json"), `{ "type": "module" }`)
  await writeFile(join(folder, "vitest.config.js"), CONFIG)
  await writeFile(join(folder, "pasted.test.ts"), pasted)
  await mkdir(join(folder, "repaired"))
  await writeFile(join(folder, "repaired/letters.ts"), (await readFile(join(examples, "letters.ts"), "utf8")).replace(MISTAKE, REPAIRED))
  await writeFile(join(folder, "repaired/letters.test.ts"), await readFile(join(examples, "letters.test.ts"), "utf8"))
  const cli = join(root, "node_modules/vitest/vitest.mjs")
  const report = join(folder, "report.json")
  const run = promisify(execFile)(process.execPath, [cli, "run", "--reporter=json", `--outputFile=${report}`], { cwd: folder })
  // It ends with 1, as a test fails
  await expect(run).rejects.toMatchObject({ code: 1 })
  const { testResults } = JSON.parse(await readFile(report, "utf8")) as Report
  for (const { assertionResults, name } of testResults)
    failures.set(
      name.slice(name.indexOf("millrace-property-testing-")).split("/").slice(1).join("/"),
      assertionResults.flatMap(({ failureMessages }) => failureMessages)
    )
}, 300_000)

afterAll(() => rm(folder, { recursive: true, force: true }))

test("the page shows every file of examples/property-testing", async () => {
  const files = await readdir(examples)
  expect(files.length).toBeGreaterThan(3)
  for (const file of files) expect(page).toContain(`\`\`\`ts\n${await readFile(join(examples, file), "utf8")}\`\`\``)
})

test("the operation with the mistake fails as the page shows", () => {
  expect(printed).toContain("letters were charged, but")
  expect(shapeOf(failures.get("letters.test.ts")?.[0] ?? "")).toContain(shapeOf(printed.trimEnd()))
})

test("the printed test, pasted into a file, fails with the same violation", () => {
  const [, violation = ""] = printed.split("\n")
  expect(violation).toContain("letters.send")
  expect(pasted).toContain("Simulator.run(")
  expect(failures.get("pasted.test.ts")).toHaveLength(1)
  expect(failures.get("pasted.test.ts")?.[0]).toContain(violation)
})

test("the repaired operation passes, and so do the other examples", () => {
  expect(page).toContain(REPAIRED)
  for (const file of ["repaired/letters.test.ts", "greeting.test.ts", "generators.test.ts", "store.test.ts"])
    expect([file, failures.get(file)]).toEqual([file, []])
})
