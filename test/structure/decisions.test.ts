/** The list of decisions names each of them, by its title and in its order. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"

const folder = fileURLToPath(new URL("../../docs/adr/", import.meta.url))
const LIST = "README.md"

test("docs/adr/README.md lists every decision", () => {
  const pages = readdirSync(folder)
    .filter((name) => name !== LIST)
    .sort()
  const entries = pages.map((name) => {
    const [, number, title] = /^# (\d+)\. (.+)/u.exec(readFileSync(folder + name, "utf8")) ?? []
    expect(Number(name.slice(0, 4))).toBe(Number(number))
    return `${number}. [${title}](${name})`
  })
  const listed = readFileSync(folder + LIST, "utf8")
    .split("\n")
    .filter((line) => /^\d/u.test(line))
  expect(listed).toEqual(entries)
})
