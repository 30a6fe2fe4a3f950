/** The samples of code, run as they stand: each sends the very request that the page would send. */
import { execFile } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import * as fc from "fast-check"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Call, curl, KEY, python, typescript } from "../web/Samples.ts"

interface Received {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly authorization: string | undefined
  readonly prefer: string | undefined
  readonly type: string | undefined
  readonly body: string
}

const requests: Array<Received> = []
const server = createServer((request, response) => {
  const { headers, method, url: path } = request
  let body = ""
  request.setEncoding("utf8").on("data", (text: string) => {
    body += text
  })
  request.once("end", () => {
    requests.push({
      method,
      path,
      authorization: headers.authorization,
      prefer: String(headers["prefer"]),
      type: headers["content-type"],
      body
    })
    response.setHeader("X-Credits-Charged", "0.5")
    response.setHeader("Content-Type", "application/json")
    response.end(JSON.stringify({ data: { ok: true } }))
  })
})
const folder = mkdtempSync(join(tmpdir(), "millrace-samples-"))
let origin = ""

beforeAll(async () => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

const run = promisify(execFile)
const env = { ...process.env, [KEY]: "mr_live_secret", NODE_OPTIONS: "", PYTHONDONTWRITEBYTECODE: "1" }

/** How each is run, and the program that it needs. */
const LANGUAGES = {
  curl: { make: curl, run: (text: string) => run("sh", ["-c", text], { env }), program: ["curl", "--version"] },
  typescript: {
    make: typescript,
    run: (text: string) => {
      const file = join(folder, "sample.mts")
      writeFileSync(file, text)
      return run(process.execPath, [file], { env })
    },
    program: [process.execPath, "--version"]
  },
  python: { make: python, run: (text: string) => run("python3", ["-c", text], { env }), program: ["python3", "--version"] }
} as const

const CALLS: ReadonlyArray<Call> = [
  { method: "GET", path: "/api/v1/dns/example.com?type=MX", body: undefined },
  {
    method: "POST",
    path: "/api/v1/audio/tts",
    body: { text: `It's "quoted", $HOME, \`tick\`,\n\\ and ü 🙂`, deep: { list: [1, 2.5, true, false, null, []], none: {} } },
    wait: 20
  },
  { method: "DELETE", path: "/api/v1/audio/tts/job_1", body: undefined }
]

for (const [language, { make, program, run }] of Object.entries(LANGUAGES)) {
  const isThere = await promisify(execFile)(program[0] ?? "", program.slice(1)).then(
    () => true,
    () => false
  )
  test.skipIf(!isThere).each(CALLS)(`${language}: $method $path`, { timeout: 30_000 }, async (call) => {
    const text = make(origin, call)
    expect(text).not.toContain("mr_live_secret")
    const { stdout } = await run(text)
    expect(stdout).toMatch(/ok/u)
    const received = requests.pop()
    expect(received).toMatchObject({
      method: call.method,
      path: call.path,
      authorization: "Bearer mr_live_secret",
      prefer: call.wait === undefined ? "undefined" : `wait=${call.wait}`
    })
    expect(received?.body === "" ? undefined : JSON.parse(received?.body ?? "")).toEqual(call.body)
    if (call.body !== undefined) expect(received?.type).toBe("application/json")
  })
}

test("the shell reads every text of a body as it is", { timeout: 60_000 }, () =>
  fc.assert(
    fc.asyncProperty(fc.string({ unit: "grapheme", maxLength: 40 }), async (text) => {
      fc.pre(!text.includes("\0"))
      const { stdout } = await run("sh", [
        "-c",
        `printf %s ${/-d (?<body>'[\s\S]*')$/u.exec(curl("http://x", { method: "POST", path: "/", body: { text } }))?.groups?.["body"]}`
      ])
      expect(JSON.parse(stdout)).toEqual({ text })
    }),
    { numRuns: 30 }
  )
)
