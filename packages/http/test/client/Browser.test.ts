/** The client in a web page: one small file, of nothing but itself, that runs with what a browser has. */

import { fileURLToPath } from "node:url"
import { createContext, runInContext } from "node:vm"
import { gzipSync } from "node:zlib"
import { Effect } from "effect"
import { rolldown } from "rolldown"
import { describe, expect } from "vitest"
import { createClient, STANDARD_ROUTES } from "../../src/client/index.ts"
import { host, testing } from "../Host.ts"
import { rejection } from "./Surroundings.ts"

const folder = fileURLToPath(new URL("../../src/client/", import.meta.url))

const bundled = Effect.promise(async () => {
  const build = await rolldown({ input: `${folder}index.ts`, platform: "browser" })
  const { output } = await build.generate({ format: "iife", name: "Millrace", minify: true })
  await build.close()
  return output
})

/** What a page has that the client may use. */
const globals = () => ({
  AbortController,
  AbortSignal,
  clearTimeout,
  crypto,
  fetch,
  Headers,
  Request,
  Response,
  setTimeout,
  URL,
  TextDecoder,
  URLSearchParams
})

describe("the bundle for a browser", () => {
  testing(
    "is one file below 7 kB beside the routes, 5 kB compressed with them, without code of the server or a library",
    Effect.gen(function* () {
      const [chunk, ...others] = yield* bundled
      expect(others).toEqual([])
      expect(chunk.imports).toEqual([])
      expect(chunk.moduleIds.filter((id) => !id.startsWith(folder))).toEqual([])
      expect(chunk.code).not.toMatch(/node:|require\(/u)
      // There are more routes with each release; the code does not grow with them
      expect(chunk.code.length - JSON.stringify(STANDARD_ROUTES).length).toBeLessThan(7_000)
      expect(gzipSync(chunk.code).length).toBeLessThan(5_000)
    })
  )

  testing(
    "calls a server over a socket, with web globals alone",
    Effect.gen(function* () {
      const { url, account, balance } = yield* host()
      const { accountId, key } = yield* account()
      const [{ code }] = yield* bundled
      const page = createContext({ ...globals(), page: { url, key } })
      const run = (script: string): Effect.Effect<unknown> => Effect.promise(() => runInContext(`(async () => { ${script} })()`, page))
      runInContext(code, page)
      yield* run("page.millrace = Millrace.createClient({ baseUrl: page.url, apiKey: page.key })")
      expect(yield* run(`return page.millrace.bin.lookup({ bin: "457173" })`)).toMatchObject({ data: { scheme: "visa" }, charged: 0.5 })
      const posted = `page.millrace.grammar.check({ text: "Añb" }, { idempotencyKey: "k" })`
      expect(yield* run(`return [await ${posted}, await ${posted}].map(({ replayed }) => replayed)`)).toEqual([false, true])
      const caught = `try { await page.millrace.bin.lookup({ bin: "000000" }) } catch (error) { return [error instanceof Millrace.NotFound, error.code] }`
      expect(yield* run(caught)).toEqual([true, "not_found"])
      expect(yield* balance(accountId)).toMatchObject({ available: 198_500, held: 0 })
    })
  )
})

describe("a page of another origin", () => {
  testing(
    "may send every header that the client sends, and read every header that it reads",
    Effect.gen(function* () {
      const { url, call, account } = yield* host({ cors: { origins: ["https://app.example"] } })
      const { key } = yield* account(1)
      const [sent, read] = [new Set<string>(), new Set<string>()]
      const watched = async (request: Request) => {
        for (const name of request.headers.keys()) sent.add(name)
        const response = await fetch(request)
        const get = response.headers.get.bind(response.headers)
        const value = (name: string) => {
          read.add(name)
          return get(name)
        }
        Object.defineProperty(response.headers, "get", { value })
        return response
      }
      const millrace = createClient({ baseUrl: url, apiKey: key, surroundings: { fetch: watched } })
      const check = () => millrace.grammar.check({ text: "a" }, { maxCredits: 1 })
      yield* Effect.promise(check)
      expect(yield* rejection(check())).toMatchObject({ _tag: "InsufficientCredits", shortfall: 1 })

      const origin = { origin: "https://app.example" }
      const names = (list: unknown) => String(list).toLowerCase().split(/, ?/u)
      const asked = { ...origin, "access-control-request-method": "POST", "access-control-request-headers": [...sent].join(",") }
      const preflight = yield* call("/api/v1/grammar/check", { method: "OPTIONS", headers: asked })
      // Accept is always allowed: https://fetch.spec.whatwg.org/#cors-safelisted-request-header
      expect(sent.delete("accept")).toBe(true)
      expect(names(preflight.headers["access-control-allow-headers"])).toEqual(expect.arrayContaining([...sent]))
      const answer = yield* call("/api/v1/bin/457173", { headers: origin })
      expect(names(answer.headers["access-control-expose-headers"])).toEqual(expect.arrayContaining([...read]))
      expect([sent.size, read.size]).toEqual([4, 8])
    })
  )
})
