/** What the README shows is what runs. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))

test("the README's code is examples/hello.ts, and prints the documented output", () => {
  const shown = /```ts\n(?<code>[\s\S]*?)```/u.exec(readFileSync(path("README.md"), "utf8"))?.groups?.["code"]
  expect(shown).toBe(readFileSync(path("examples/hello.ts"), "utf8"))
  const printed = execFileSync(process.execPath, ["--conditions=@millrace/source", path("examples/hello.ts")], { encoding: "utf8" })
  expect(printed.trim()).toBe(`{"greeting":"Hello, Ada!"} { charged: 1500, balance: 198500 } replayed: true`)
})
