/** `npm create millrace`: the new folder serves, and its first call is charged. */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, expect, it } from "vitest"

const BIN = fileURLToPath(new URL("../bin/create-millrace.js", import.meta.url))
const NODE_MODULES = fileURLToPath(new URL("../../../node_modules", import.meta.url))

let parent: string
beforeAll(() => {
  parent = mkdtempSync(join(tmpdir(), "create-millrace-"))
})
afterAll(() => rmSync(parent, { recursive: true, force: true }))

const create = (...args: ReadonlyArray<string>) => spawnSync(process.execPath, [BIN, ...args], { cwd: parent, encoding: "utf8" })

it("makes a host whose first call is charged", { timeout: 60_000 }, async () => {
  expect(create("my-api")).toMatchObject({ status: 0, stdout: expect.stringContaining("cd my-api") })
  const folder = join(parent, "my-api")
  expect(JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))).toMatchObject({ name: "my-api" })
  expect(readFileSync(join(folder, ".gitignore"), "utf8")).toContain("data")
  symlinkSync(NODE_MODULES, join(folder, "node_modules"))

  const server = spawn(process.execPath, ["--conditions=@millrace/source", "server.js"], {
    cwd: folder,
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"]
  })
  try {
    const [announced] = (await once(server.stdout, "data")) as [Buffer]
    const url = /http:\/\/127\.0\.0\.1:\d+/u.exec(announced.toString())?.[0]
    const { key } = (await (await fetch(`${url}/sign-up/ada@example.com`, { method: "POST" })).json()) as { key: string }
    const reply = await fetch(`${url}/api/v1/greeting/Ada`, { headers: { authorization: `Bearer ${key}` } })
    expect([reply.status, reply.headers.get("x-credits-charged"), reply.headers.get("x-credits-balance")]).toEqual([200, "1.5", "198.5"])
    expect(await reply.json()).toMatchObject({ data: { greeting: "Hello, Ada!" } })
    const again = await fetch(`${url}/sign-up/ada@example.com`, { method: "POST" })
    expect([again.status, await again.json()]).toEqual([
      400,
      { error: { code: "email_taken", message: "The address has an account already" } }
    ])
  } finally {
    server.kill("SIGTERM")
    expect(await once(server, "exit")).toEqual([0, null])
  }
  const audited = execFileSync(join(NODE_MODULES, ".bin/millrace"), ["audit"], { cwd: folder, encoding: "utf8" })
  expect(JSON.parse(audited)).toMatchObject({ ok: true, accounts: 1 })
})

it.each([
  [[], "name the new folder"],
  [["--help"], "name the new folder"],
  [["My API"], "cannot be the name of a package"],
  [["a", "b"], "name the new folder"]
])("refuses the arguments %j in a sentence", (args, sentence) => {
  expect(create(...args)).toMatchObject({ status: 1, stdout: "", stderr: expect.stringContaining(sentence) })
})

it("overwrites no file", () => {
  writeFileSync(join(parent, "file"), "mine")
  const { status, stderr } = create("file")
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^create-millrace: .*file is a file\n$/u)])
  expect(readFileSync(join(parent, "file"), "utf8")).toBe("mine")
})

it("touches no folder that has something in it", () => {
  mkdirSync(join(parent, "full"))
  writeFileSync(join(parent, "full", "mine"), "")
  expect(create("full")).toMatchObject({ status: 1, stderr: expect.stringContaining("full is not empty") })
  expect(readdirSync(join(parent, "full"))).toEqual(["mine"])
})
