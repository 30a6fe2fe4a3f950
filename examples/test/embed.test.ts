import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { visit } from "../auditor.ts"
import { start } from "../embed.ts"
import { start as startOfPromises } from "../embed-promises.ts"

const parent = mkdtempSync(join(tmpdir(), "millrace-examples-"))
afterAll(() => rmSync(parent, { recursive: true, force: true }))

test.each([
  ["Effect", start],
  ["promises", startOfPromises]
] as const)("a plain server with %s bills its own work, and an auditor confirms it", async (style, start) => {
  const folder = join(parent, style)
  mkdirSync(folder)
  const host = await start(folder, "0".repeat(64))
  const { account, key } = await host.signUp("ada@example.com")
  const call = (authorization: string, text: string) =>
    fetch(host.url, { method: "POST", headers: { authorization }, body: JSON.stringify({ text }) })

  const reply = await call(`Bearer ${key}`, "hello")
  expect([reply.status, await reply.json(), reply.headers.get("x-balance")]).toEqual([200, { text: "HELLO" }, "198"])
  expect((await call("Bearer nonsense", "hello")).status).toBe(401)
  expect((await call(`Bearer ${key}`, "")).status).toBe(422)
  const rest = await Promise.all(Array.from({ length: 120 }, () => call(`Bearer ${key}`, "again")))
  expect(rest.filter(({ status }) => status === 200)).toHaveLength(99)
  expect(rest.filter(({ status }) => status === 402)).toHaveLength(21)

  const head = join(folder, "head.json")
  const first = await visit(join(folder, "log.db"), head)
  expect(first.report.problems).toEqual([])
  expect(first.balances.get(account)).toBe(0)
  await host.stop()

  // The next visit finds the log as it was noted
  expect((await visit(join(folder, "log.db"), head)).report.ok).toBe(true)
})
