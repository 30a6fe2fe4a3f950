/** The documentation: valid, complete, without a warning of the two linters that people use, and the same as what is served. */
import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Credits, type Operation, PricePlan } from "@millrace/core"
import Ajv2020 from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { Effect, type Scope } from "effect"
import { beforeAll, describe, expect, test } from "vitest"
import { Api, type Hook, PaymentHooks, SmsHooks } from "../src/index.ts"
import { api, type Host, host, testing } from "./Host.ts"

/** JSON of the document. */
// biome-ignore lint/suspicious/noExplicitAny: it is walked, not known
type Json = any

const PATH = "/api/v1/openapi.json"

const served = Effect.fnUntraced(function* (hooks: ReadonlyArray<Hook>, sessions = false): Effect.fn.Return<Json, unknown, Scope.Scope> {
  const { call } = yield* host({ hooks, sessions })
  const { status, headers, json } = yield* call(PATH)
  expect(status).toBe(200)
  expect(headers["content-type"]).toBe("application/json")
  return json
})

let document: Json
/** That of a host with hooks. */
let withHooks: Json
/** That of a host with everything, for the linters. */
let whole: Json
beforeAll(async () => {
  document = await Effect.runPromise(Effect.scoped(served([])))
  whole = await Effect.runPromise(Effect.scoped(served(["twilio", "plivo", "vonage", "messagebird", "stripe", "paypal"], true)))
  withHooks = await Effect.runPromise(Effect.scoped(served(["twilio", "plivo", "vonage", "messagebird", "stripe", "paypal"])))
})

interface Described {
  readonly path: string
  readonly method: string
  readonly operation: Json
}

const operationsOf = (document: Json): ReadonlyArray<Described> =>
  Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([method, operation]) => ({ path, method, operation }))
  )

const at = (pointer: string): Json =>
  pointer
    .slice(2)
    .split("/")
    .reduce((value, part) => value[part.replaceAll("~1", "/").replaceAll("~0", "~")], document)

const resolved = (value: Json): Json => (value?.$ref === undefined ? value : at(value.$ref))

describe("the price of an operation", () => {
  testing(
    "stands in the document and on the page, and follows the price plan",
    Effect.gen(function* () {
      const { call, run } = yield* host()
      const priced = (json: Json) => json.paths["/api/v1/bin/{bin}"].get
      const before = priced((yield* call(PATH)).json)
      expect(before["x-price"]).toEqual({ credits: 0.5, unit: "call", value: "0.0005", currency: "USD" })
      expect(before.description).toContain("**Price:** 0.5 credits for each call.")
      yield* run(PricePlan.PriceBook.use((prices) => prices.publish({ "bin.lookup": Credits.of(1_000) })))
      expect(priced((yield* call(PATH)).json).description).toContain("**Price:** 1 credit for each call.")
      expect(String((yield* call("/docs")).body)).toContain("1 credit for each call.")
    })
  )
})

describe("the linters", () => {
  const run = promisify(execFile)
  const require = createRequire(import.meta.url)

  const lint = async (tool: string, bin: string, config: string, content: string, args: (config: string, document: string) => string[]) => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-openapi-"))
    try {
      const file = join(folder, "openapi.json")
      await writeFile(file, JSON.stringify(whole))
      await writeFile(join(folder, config), content)
      const script = join(dirname(require.resolve(`${tool}/package.json`)), bin)
      const { stdout, stderr } = await run(process.execPath, [script, ...args(join(folder, config), file)], {
        cwd: folder,
        env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true", NO_COLOR: "1" }
      })
      return stdout + stderr
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  test("Redocly reports nothing", { timeout: 60_000 }, async () => {
    const said = await lint("@redocly/cli", "bin/cli.js", "redocly.yaml", "extends: [recommended-strict]\n", (config, file) => [
      "lint",
      "--config",
      config,
      file
    ])
    expect(said).toContain("Your API description is valid")
    expect(said).not.toMatch(/warning/iu)
  })

  test("Spectral reports nothing", { timeout: 60_000 }, async () => {
    const said = await lint("@stoplight/spectral-cli", "dist/index.js", ".spectral.yaml", 'extends: ["spectral:oas"]\n', (config, file) => [
      "lint",
      "--ruleset",
      config,
      "--fail-severity",
      "hint",
      file
    ])
    expect(said).toContain("No results with a severity of 'hint' or higher found!")
  })
})

describe("the document", () => {
  test("is OpenAPI 3.1, version 1.0.0", () => {
    expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "Millrace", version: "1.0.0" } })
  })

  test("names each operation of the API, and whether it needs a key", () => {
    const described = new Map(operationsOf(document).map(({ operation }) => [operation.operationId, operation]))
    for (const { operations, scope } of Object.values<Api.Group<Json>>(api.groups))
      for (const { key } of operations) expect(described.get(key).security).toEqual(scope === undefined ? [] : [{ apiKey: [] }])
    expect(described.size).toBe(api.operations.length + 4)
  })

  test("has the endpoints of sessions where a host serves them, and a session as another way than a key", () => {
    const added = Object.keys(whole.paths).filter((path) => !(path in withHooks.paths))
    const sessions = ["/signup", "/sessions", "/sessions/link", "/sessions/current", "/sessions/{session_id}"]
    const passkeys = ["/sessions/passkey/options", "/sessions/passkey", "/passkeys/options", "/passkeys", "/passkeys/{passkey_id}"]
    expect(added).toEqual([...sessions, ...passkeys].map((path) => `/api/v1${path}`))
    const { get } = whole.paths["/api/v1/bin/{bin}"]
    const { post } = whole.paths["/api/v1/grammar/check"]
    expect(get.security).toEqual([{ apiKey: [] }, { session: [] }])
    expect(post.security).toEqual([{ apiKey: [] }, { session: [], csrfToken: [] }])
    expect(whole.paths["/api/v1/signup"].post.security).toEqual([])
    expect(whole.paths["/api/v1/sessions"].delete.security).toEqual([{ session: [], csrfToken: [] }])
    expect(whole.components.securitySchemes.session).toMatchObject({ in: "cookie", name: "__Host-millrace" })
  })

  test("has the hooks that a host serves, each with its signature for a key, and no others", () => {
    const paths = Object.keys(withHooks.paths).filter((path) => path.startsWith("/hooks/"))
    expect(paths).toEqual([
      ...["twilio", "plivo", "vonage", "messagebird"].map((name) => `${SmsHooks.PATH}/${name}`),
      ...["stripe", "paypal"].map((name) => `${PaymentHooks.PATH}/${name}`)
    ])
    expect(Object.keys(withHooks.paths).filter((path) => !paths.includes(path))).toEqual(Object.keys(document.paths))
    const schemes = withHooks.components.securitySchemes
    const hooks = paths.map((path) => withHooks.paths[path].post)
    expect(hooks.map(({ security: [scheme] }) => schemes[Object.keys(scheme)[0] ?? ""].name ?? "Authorization")).toEqual([
      "X-Twilio-Signature",
      "X-Plivo-Signature-V3",
      "Authorization",
      "MessageBird-Signature-JWT",
      "Stripe-Signature",
      "PAYPAL-TRANSMISSION-SIG"
    ])
    expect(hooks.map(({ requestBody }) => Object.keys(requestBody.content))).toEqual([
      ["application/x-www-form-urlencoded"],
      ["application/x-www-form-urlencoded"],
      ["application/json"],
      ["application/json"],
      ["application/json"],
      ["application/json"]
    ])
    for (const { requestBody, responses, tags, "x-price": price } of hooks) {
      expect(tags).toEqual(["hooks"])
      // Providers send more than is read
      expect(JSON.stringify(requestBody)).not.toContain("additionalProperties")
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(["401", "404", "413", "503"]))
      expect("200" in responses !== "204" in responses).toBe(true)
      expect(price).toBeUndefined()
    }
    expect([document.tags, document.components.securitySchemes]).toEqual([
      withHooks.tags.filter(({ name }: Json) => name !== "hooks"),
      { apiKey: schemes.apiKey }
    ])
  })

  test("describes every status and its headers", () => {
    for (const { operation } of operationsOf(document))
      for (const [status, response] of Object.entries<Json>(operation.responses)) {
        const { description, headers } = resolved(response)
        expect(description).not.toBe("")
        expect(Object.keys(headers)).toContain("X-Request-Id")
        if (status === "429") expect(Object.keys(headers)).toContain("Retry-After")
      }
  })

  test("has parameters with their types, bounds and lists", () => {
    const { parameters } = document.paths["/api/v1/test/{room}/work"].post
    const named = (name: string) => parameters.find((parameter: Json) => parameter.name === name)
    expect(named("room")).toMatchObject({ in: "path", required: true, schema: { type: "string", maxLength: 300 } })
    expect(named("times")).toMatchObject({ in: "query", required: false, schema: { type: "integer", minimum: 1, maximum: 9 } })
    expect(named("tag")).toMatchObject({ schema: { type: "array", items: { type: "string" } }, style: "form", explode: true })
    const bin = document.paths["/api/v1/bin/{bin}"].get.parameters[0]
    expect(bin).toMatchObject({ name: "bin", schema: { type: "string", pattern: "^[0-9]{6,8}$" }, example: expect.any(String) })
  })

  test("allows unknown fields in answers, and none in requests", () => {
    const { requestBody, responses } = document.paths["/api/v1/grammar/check"].post
    expect(requestBody.content["application/json"].schema.additionalProperties).toBe(false)
    expect(JSON.stringify(resolved(responses[200].content["application/json"].schema))).not.toContain("additionalProperties")
  })

  test("links an answer to the next call", () => {
    const { links } = document.paths["/api/v1/open/{word}"].get.responses[200]
    expect(links).toEqual({
      "test.open": { operationId: "test.open", description: "Say the same again", parameters: { word: "$response.body#/data/word" } }
    })
  })

  test("has a valid example of every request, answer and parameter of ours", () => {
    const ajv = addFormats.default(new Ajv2020.default({ strict: false, allErrors: true }))
    ajv.addSchema({ ...document, $id: "https://example.org/openapi" })
    const valid = (pointer: string, example: unknown) => {
      const check = ajv.getSchema(`https://example.org/openapi#${pointer}`)
      if (check === undefined) throw new Error(`There is no schema at ${pointer}`)
      expect({ pointer, valid: check(example), errors: check.errors }).toEqual({ pointer, valid: true, errors: null })
    }
    const escape = (part: string) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))
    let shown = 0
    const walk = (value: Json, pointer: string): void => {
      if (typeof value !== "object" || value === null) return
      if ("schema" in value) {
        const named = Object.values<Json>(value.examples ?? {}).map((example) => example.value)
        for (const example of [...("example" in value ? [value.example] : []), ...named]) {
          shown++
          valid(`${pointer}/schema`, example)
        }
      }
      for (const [name, inner] of Object.entries(value)) if (name !== "schema") walk(inner, `${pointer}/${escape(name)}`)
    }
    walk(document.paths, "/paths")
    walk(document.components, "/components")
    for (const [name, schema] of Object.entries<Json>(document.components.schemas))
      for (const example of schema.examples ?? []) valid(`/components/schemas/${escape(name)}`, example)
    expect(shown).toBeGreaterThan(40)

    const ours = new Set(Object.values(Api.standard).flatMap(({ operations }) => operations.map(({ key }): string => key)))
    for (const { operation } of operationsOf(document)) {
      if (!ours.has(operation.operationId)) continue
      const success = Object.entries<Json>(operation.responses).find(([status]) => status.startsWith("2"))
      const found: Operation.Any | undefined = api.operations.find(({ key }) => key === operation.operationId)
      const file = found?._tag === "File" ? found.contentTypes : undefined
      if (file === undefined) expect(success?.[1].content["application/json"], operation.operationId).toHaveProperty("example")
      else expect(Object.keys(success?.[1].content)).toEqual(file)
      if (operation.requestBody !== undefined) expect(operation.requestBody.content["application/json"]).toHaveProperty("example")
      for (const parameter of operation.parameters)
        if (parameter.required) expect(parameter, operation.operationId).toHaveProperty("example")
    }
  })
})

describe("the documentation page", () => {
  testing(
    "contains all that it needs, and may load nothing else",
    Effect.gen(function* () {
      const { call } = yield* host()
      const { status, headers, body } = yield* call("/docs")
      expect(status).toBe(200)
      expect(headers["content-type"]).toContain("text/html")
      expect(headers["content-security-policy"]).toContain("default-src 'none'")
      expect(headers["x-request-id"]).toBeDefined()
      expect(body).toContain('id="swagger-ui"')
      expect(body).toContain('"operationId":"bin.lookup"')
      expect(body).not.toMatch(/<(?:script|link|img)[^>]+(?:src|href)=["']?https?:/iu)
    })
  )

  testing(
    "is served at the path of the host's choice, or not at all",
    Effect.gen(function* () {
      const moved = yield* host({ docs: "/reference" })
      expect((yield* moved.call("/reference")).status).toBe(200)
      expect((yield* moved.call("/docs")).status).toBe(404)
      const hidden = yield* host({ docs: false })
      expect((yield* hidden.call("/docs")).status).toBe(404)
    })
  )
})

describe("a request without a key", () => {
  const addressed = (hosts: Host, path: string, from: string) => hosts.call(path, { headers: { "x-forwarded-for": from } })

  testing(
    "is answered where no key is needed, and limited by its address",
    Effect.gen(function* () {
      const hosts = yield* host({
        rateLimit: { limit: 3, window: 60 },
        server: { address: ({ headers }) => String(headers["x-forwarded-for"]) }
      })
      const first = yield* addressed(hosts, "/api/v1/open/hello?loud=true", "203.0.113.1")
      expect(first.status).toBe(200)
      expect(first.json).toMatchObject({ status: "success", data: { word: "HELLO" }, request: { input: { word: "hello", loud: true } } })
      expect(first.headers).toMatchObject({ ratelimit: '"burst";r=2;t=60', "cache-control": "private, no-store" })
      expect(first.headers).not.toHaveProperty("x-credits-charged")
      expect((yield* addressed(hosts, PATH, "203.0.113.1")).status).toBe(200)
      expect((yield* addressed(hosts, "/docs", "203.0.113.1")).status).toBe(200)
      for (const path of ["/api/v1/open/hello", PATH, "/docs"]) {
        const { status, headers, json } = yield* addressed(hosts, path, "203.0.113.1")
        expect([status, json]).toMatchObject([429, { error: { code: "rate_limited" } }])
        expect(headers).toMatchObject({ "retry-after": "60", "x-should-retry": "true", ratelimit: '"burst";r=0;t=60' })
      }
      // Others, and those with a key, are not
      expect((yield* addressed(hosts, PATH, "203.0.113.2")).status).toBe(200)
      const { bearer } = yield* hosts.account()
      const keyed = yield* hosts.call("/api/v1/account/billing", { headers: { ...bearer, "x-forwarded-for": "203.0.113.1" } })
      expect(keyed.status).toBe(200)
    })
  )

  testing(
    "never runs a priced operation",
    Effect.gen(function* () {
      const { call, lines } = yield* host()
      const { status, json } = yield* call("/api/v1/mispriced")
      expect([status, json]).toMatchObject([500, { error: { code: "internal_error" } }])
      expect(lines.join()).toContain("test.mispriced has a price: it needs an account")
    })
  )

  testing(
    "has its input validated like any other",
    Effect.gen(function* () {
      const { call } = yield* host()
      const { status, json } = yield* call("/api/v1/open/hello?loud=perhaps")
      expect([status, json]).toMatchObject([422, { error: { code: "invalid_request", message: expect.stringContaining("loud") } }])
    })
  )
})
