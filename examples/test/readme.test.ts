/** What the README shows is what runs. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))

const run = (file: string) =>
  execFileSync(process.execPath, ["--conditions=@millrace/source", path(`examples/${file}`)], { encoding: "utf8" }).trim()

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

test("the job of docs/hosts.md is that of examples/express.js", () => {
  const shown = /```js\n(?<code>const print[\s\S]*?)```/u.exec(readFileSync(path("docs/hosts.md"), "utf8"))?.groups?.["code"]
  expect(readFileSync(path("examples/express.js"), "utf8")).toContain(shown)
})
