/** What a stranger sees first: `npm start`, its key, its three calls to paste, and its end. */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { promisify } from "node:util"
import { Schema } from "effect"
import { expect, test } from "vitest"
import { auditOf, bin, call, header, newStore, serve } from "./Server.ts"

const run = promisify(execFile)

const Manifest = Schema.fromJsonString(Schema.Struct({ scripts: Schema.Struct({ start: Schema.String }) }))

/** `npm start`, as far as this process is not its own. */
const [, , ...START] = Schema.decodeUnknownSync(Manifest)(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8")
).scripts.start.split(" ")

const KEY = /mr_live_\w+/u

const invitation = (stdout: string) => ({
  key: KEY.exec(stdout)?.[0] ?? "",
  curls: stdout.split("\n").filter((line) => line.startsWith("curl "))
})

interface Pasted {
  readonly status: string
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

const hasCurl = await run("curl", ["--version"]).then(
  () => true,
  () => false
)

/** What a shell makes of a line; where there is no curl, the same call made here. */
const paste = async (line: string): Promise<Pasted> => {
  const text = hasCurl ? (await run("sh", ["-c", line])).stdout : await fetched(line)
  const [head = "", body = ""] = text.split(/\r?\n\r?\n/u)
  const [status = "", ...headers] = head.split(/\r?\n/u)
  const pairs = headers.map((header) => header.split(/: ?/u, 2)).map(([name = "", value = ""]) => [name.toLowerCase(), value] as const)
  return { status, headers: new Map(pairs), body }
}

const fetched = async (line: string): Promise<string> => {
  const [, url = "", rest = ""] = /^curl -i (?<url>\S+)(?<rest>.*)$/u.exec(line) ?? []
  const headers = [...rest.matchAll(/-H '(?<name>[^:]+): (?<value>[^']+)'/gu)].map(({ groups }) => [groups?.["name"], groups?.["value"]])
  const body = /-d '(?<body>[^']+)'/u.exec(rest)?.groups?.["body"]
  const response = await fetch(url, { headers: Object.fromEntries(headers), ...(body === undefined ? {} : { method: "POST", body }) })
  const head = [...response.headers].map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${response.status} ${response.statusText}`, ...head, "", await response.text()].join("\r\n")
}

test("npm start prints a key and three calls to paste, which work and report their cost and balance", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  expect(START.slice(0, 4)).toEqual(["serve", "--demo", "--speech", "espeak"])
  const server = await serve([...START.slice(1), "--store", store], { script: bin })
  await server.until(() => invitation(server.stdout).curls.length === 3)
  const first = invitation(server.stdout)

  const pasted = []
  for (const line of first.curls) pasted.push(await paste(line))

  expect(pasted.map(({ status }) => status.slice(0, "HTTP/1.1 200".length))).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 200"])
  expect(pasted.map(({ headers }) => [headers.get("x-credits-charged"), headers.get("x-credits-balance")])).toEqual([
    ["1", "199"],
    ["0.5", "198.5"],
    ["0", "198.5"]
  ])
  expect(JSON.parse(pasted[0]?.body ?? "")).toMatchObject({
    data: { matches: [{ rule: expect.any(String) }, { rule: expect.any(String) }] }
  })
  expect(JSON.parse(pasted[1]?.body ?? "")).toMatchObject({ data: { scheme: "visa" } })
  expect(JSON.parse(pasted[2]?.body ?? "")).toMatchObject({ data: { balance: 198.5, held: 0, debt: 0 } })

  // It ends when it is told to, with the calls that run, and leaves its port and its store to the next
  const running = call(`${server.url}/api/v1/bin/45717360`, { key: first.key })
  const answered = header(await running, "x-credits-balance")
  const { code, stderr } = await server.stop()
  expect([answered, code]).toEqual(["198", 0])
  expect(stderr).not.toMatch(/error|warn|mr_live/iu)
  const again = await serve([...START.slice(1), "--store", store, "--port", String(server.port)], { script: bin })
  await again.until(() => invitation(again.stdout).curls.length === 3)
  const second = invitation(again.stdout)
  expect(again.port).toBe(server.port)
  expect(again.stdout).toContain("with 198 credits")

  // A new key for the same account, the former revoked
  expect(second.key).not.toBe(first.key)
  const billing = `${again.url}/api/v1/account/billing`
  expect((await call(billing, { key: first.key })).status).toBe(401)
  expect((await call(billing, { key: second.key })).status).toBe(200)
  expect((await again.stop()).code).toBe(0)
  await auditOf(store)
})

test("a call that runs when the server is stopped is answered, and the server exits with 0", { timeout: 60_000 }, async () => {
  const server = await serve(["--store", "memory:", "--demo"])
  await server.until(() => invitation(server.stdout).curls.length === 3)
  const { key } = invitation(server.stdout)
  // Its checker has yet to be loaded: it runs for long enough
  const slow = call(`${server.url}/api/v1/grammar/check`, { method: "POST", key, body: JSON.stringify({ text: "I has a apple." }) })
  const billing = async () => JSON.parse((await call(`${server.url}/api/v1/account/billing`, { key })).body)
  let isOver = false
  slow.finally(() => {
    isOver = true
  })
  while (!isOver && (await billing()).data.held === 0);
  expect(isOver).toBe(false)
  const { code } = await server.stop()
  const answer = await slow
  expect([answer.status, header(answer, "x-credits-charged"), code]).toEqual([200, "1", 0])
})
