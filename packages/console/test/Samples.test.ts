/** The samples of code, run as they stand: each sends the very request that the page would send. */
import { execFile } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import * as fc from "fast-check"
import { afterAll, beforeAll, expect, test } from "vitest"
import { answerName } from "../web/FileName.ts"
import { type Call, curl, KEY, python, typescript } from "../web/Samples.ts"

/** The path of an answer that is a file, of such that no text has, and of one that is not there. */
const FILE = "/api/v1/audio/tts/job_1/artifact"
const NO_FILE = "/api/v1/audio/tts/job_2/artifact"
const BYTES = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256))

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
    if (path === FILE) {
      response.end(BYTES)
      return
    }
    const isMissing = path === NO_FILE
    response.writeHead(isMissing ? 404 : 200, { "Content-Type": "application/json" })
    response.end(JSON.stringify(isMissing ? { error: { code: "not_found", message: "There is none." } } : { data: { ok: true } }))
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
/** Where they run, and leave their files. */
const within = { env, cwd: folder }

/** How each is run, and the program that it needs. */
const LANGUAGES = {
  curl: { make: curl, run: (text: string) => run("sh", ["-c", text], within), program: ["curl", "--version"] },
  typescript: {
    make: typescript,
    run: (text: string) => {
      const file = join(folder, "sample.mts")
      writeFileSync(file, text)
      return run(process.execPath, [file], within)
    },
    program: [process.execPath, "--version"]
  },
  python: { make: python, run: (text: string) => run("python3", ["-c", text], within), program: ["python3", "--version"] }
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

  test.skipIf(!isThere)(`${language}: an answer that is a file is saved, and a refusal is not`, { timeout: 30_000 }, async () => {
    const saveAs = answerName(["audio/mpeg"])
    expect(saveAs).toBe("answer.mp3")
    const asked = { method: "GET", body: undefined, saveAs: String(saveAs) }
    const saved = join(folder, "answer.mp3")
    rmSync(saved, { force: true })
    await expect(run(make(origin, { ...asked, path: NO_FILE }))).rejects.toThrow(/404|not_found/u)
    expect(existsSync(saved)).toBe(false)
    await run(make(origin, { ...asked, path: FILE }))
    expect(readFileSync(saved).equals(BYTES)).toBe(true)
  })
}

test("an answer is a file where the contract says so", () => {
  expect(answerName(["application/json"])).toBeUndefined()
  expect(answerName([])).toBeUndefined()
  expect(answerName(["image/png", "image/jpeg"])).toBe("answer")
  expect(answerName(["text/html; charset=utf-8"])).toBe("answer.html")
})

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
