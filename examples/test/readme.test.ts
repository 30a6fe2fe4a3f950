/** What the README shows is what runs. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, onTestFinished, test } from "vitest"

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))

const run = (file: string, ...args: ReadonlyArray<string>) =>
  execFileSync(process.execPath, ["--conditions=@millrace/source", path(`examples/${file}`), ...args], { encoding: "utf8" }).trim()

test.each(["README.md", "docs/hosts.md"])("the first lines of %s are examples/hello.ts", (page) => {
  const shown = /```ts\n(?<code>[\s\S]*?)```/u.exec(readFileSync(path(page), "utf8"))?.groups?.["code"]
  expect(shown).toBe(readFileSync(path("examples/hello.ts"), "utf8"))
})

test("examples/hello.ts prints what the page says, and hello-effect.ts does the same with layers", () => {
  const printed = run("hello.ts")
  expect(printed).toBe("Hello, Ada! 1.5 198.5 replayed: true 0")
  expect(readFileSync(path("docs/hosts.md"), "utf8")).toContain(`It prints \`${printed}\`.`)
  expect(run("hello-effect.ts")).toBe(`{"greeting":"Hello, Ada!"} { charged: 1500, balance: 198500 } replayed: true`)
})

test("examples/standard.ts prints what it looked up, and what that cost", () => {
  expect(run("standard.ts")).toBe("visa 0.5")
})

test("examples/mail.ts receives a message while a caller waits for it, and prints what it says and what reading it cost", () => {
  expect(run("mail.ts")).toBe("Your link https://example.com/?token=1 0.1")
})

test("docs/files.md begins with examples/files.ts, which stores a file and downloads it", () => {
  const shown = /```ts\n(?<code>[\s\S]*?)```/u.exec(readFileSync(path("docs/files.md"), "utf8"))?.groups?.["code"]
  expect(shown).toBe(readFileSync(path("examples/files.ts"), "utf8"))
  const folder = mkdtempSync(join(tmpdir(), "millrace-files-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  expect(run("files.ts", folder)).toBe("succeeded [ { part: 1, size: 10436, content_type: 'text/csv' } ]")
  const [file = ""] = readdirSync(folder).filter((name) => name.startsWith("job_"))
  const lines = readFileSync(join(folder, file), "utf8").trim().split("\n")
  expect([lines.length, lines[0], lines.at(-1)]).toEqual([1_000, "1,1", "1000,1000000"])
  // What is kept is sealed
  const [blob = ""] = readdirSync(join(folder, "blobs"), { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(folder, "blobs", name)).isFile()
  )
  expect(readFileSync(join(folder, "blobs", blob)).includes("999,998001")).toBe(false)
})

test("the job of docs/hosts.md is that of examples/express.js", () => {
  const shown = /```js\n(?<code>const print[\s\S]*?)```/u.exec(readFileSync(path("docs/hosts.md"), "utf8"))?.groups?.["code"]
  expect(readFileSync(path("examples/express.js"), "utf8")).toContain(shown)
})

test("the code of docs/topping-up.md is examples/topping-up.ts, and prints what the page says", () => {
  const page = readFileSync(path("docs/topping-up.md"), "utf8")
  expect(/```ts\n(?<code>[\s\S]*?)```/u.exec(page)?.groups?.["code"]).toBe(readFileSync(path("examples/topping-up.ts"), "utf8"))
  const [first, second, third] = run("topping-up.ts").split("\n")
  expect(page).toContain(`It prints \`${first}\`, \`${second}\` and \`${third}\`.`)
})
