/** The served document as others use it: `openapi-typescript` makes types of it, and a program against them is checked and runs. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import openapiTypescript, { astToString } from "openapi-typescript"
import ts from "typescript"
import { expect } from "vitest"
import { OPENAPI } from "../src/SystemEndpoints.ts"
import { host, testing } from "./Host.ts"

const modules = fileURLToPath(new URL("../../../node_modules", import.meta.url))

const PROGRAM = `import createClient from "openapi-fetch"
import type { paths } from "./schema.ts"

declare const process: { readonly argv: ReadonlyArray<string> }
const [, , baseUrl = "", key = ""] = process.argv

const client = createClient<paths>({ baseUrl, headers: { Authorization: \`Bearer \${key}\` } })

const found = await client.GET("/api/v1/bin/{bin}", { params: { path: { bin: "457173" } } })
if (found.error) throw new Error(found.error.error.code)
const scheme: string = found.data.data.scheme
const country: string | undefined = found.data.data.country?.code

const header = { "Idempotency-Key": "order-1", "X-Max-Credits": 5 }
const call = () => client.POST("/api/v1/test/{room}/work", { params: { path: { room: "a" }, query: { times: 2 }, header }, body: { how: "at once" } })
const [first, again] = [await call(), await call()]
const times: number | undefined = first.data?.data.times
const replayed: string | null = again.response.headers.get("Idempotent-Replayed")

const missing = await client.GET("/api/v1/bin/{bin}", { params: { path: { bin: "000000" } } })
const code: "not_found" | (string & {}) | undefined = missing.error?.error.code

const billing = await client.GET("/api/v1/account/billing")
const balance: number | undefined = billing.data?.data.balance

console.log(JSON.stringify({ scheme, country, times, replayed, code, balance }))
`

/** Each line after the first four is wrong in its own way. */
const WRONG = `import createClient from "openapi-fetch"
import type { paths } from "./schema.ts"
const client = createClient<paths>({ baseUrl: "" })
declare const found: Awaited<ReturnType<typeof client.GET<"/api/v1/bin/{bin}", { params: { path: { bin: string } } }>>>
client.GET("/api/v1/bins/{bin}", { params: { path: { bin: "457173" } } })
client.GET("/api/v1/bin/{bin}", { params: { path: {} } })
client.GET("/api/v1/bin/{bin}", { params: { path: { bin: 457173 } } })
client.POST("/api/v1/bin/{bin}", { params: { path: { bin: "457173" } } })
client.POST("/api/v1/grammar/check", { body: { language: "en" } })
client.POST("/api/v1/grammar/check", { body: { text: 1 } })
client.POST("/api/v1/test/{room}/work", { params: { path: { room: "a" } }, body: { how: "somehow" } })
client.POST("/api/v1/test/{room}/work", { params: { path: { room: "a" }, query: { times: "2" } }, body: { how: "at once" } })
if (found.data) found.data.data.schema
if (found.error) found.error.error.code = "nonsense"
`

/** A folder of its own, with the packages of this one. */
const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = mkdtempSync(join(tmpdir(), "millrace-openapi-"))
    symlinkSync(modules, join(path, "node_modules"), "dir")
    writeFileSync(join(path, "package.json"), `{ "type": "module" }`)
    return path
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** What is wrong with a file, by line. */
const complaints = (file: string): ReadonlyArray<string> => {
  const program = ts.createProgram([file], {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    strict: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
    types: []
  })
  return ts.getPreEmitDiagnostics(program).map(({ file, start = 0, messageText }) => {
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1
    return `${line}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`
  })
}

testing(
  "types generated from the served document accept and refuse what the server does",
  Effect.gen(function* () {
    const { call, url, account, balance } = yield* host()
    const { accountId, key } = yield* account()
    const path = yield* folder
    const [program, wrong] = [join(path, "program.ts"), join(path, "wrong.ts")]
    const { status, body } = yield* call(OPENAPI)
    expect(status).toBe(200)
    const types = yield* Effect.promise(() => openapiTypescript(body))
    writeFileSync(join(path, "schema.ts"), astToString(types))
    writeFileSync(program, PROGRAM)
    writeFileSync(wrong, WRONG)

    expect(complaints(program)).toEqual([])
    const found = new Set(complaints(wrong).map((complaint) => Number.parseInt(complaint, 10)))
    expect([...found].sort((a, b) => a - b)).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14])

    const { stdout } = yield* Effect.promise(() => promisify(execFile)(process.execPath, [program, url, key]))
    expect(JSON.parse(stdout)).toEqual({ scheme: "visa", times: 2, replayed: "true", code: "not_found", balance: 195.5 })
    expect(yield* balance(accountId)).toMatchObject({ available: 195_500, held: 0 })
  })
)
