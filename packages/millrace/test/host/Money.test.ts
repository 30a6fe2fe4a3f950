/** A host's own money: everything that people read has its names and its value. */
import { Effect, Schema } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { millrace } from "../../../../test/system/InProcess.ts"
import { serve } from "../../../../test/system/Server.ts"
import { createMillrace, type Host, operation } from "../../src/index.ts"

const work = operation("test.work", {
  summary: "Work",
  price: 1.5,
  route: { method: "GET", path: "/work" },
  success: Schema.Struct({}),
  run: () => Effect.succeed({})
})

let host: Host
let account: string
let key: string
beforeAll(async () => {
  const money = { credit: "token", credits: "tokens", value: "0.002 EUR" }
  host = await createMillrace({ store: "memory:", log: {}, operations: [work], standard: ["catalog"], money, signUpCredits: 1 })
  account = await host.accounts.open({ email: "ada@example.com", verified: true })
  ;({ key } = await host.keys.issue(account))
})
afterAll(() => host.close())

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  host.fetch(new Request(`http://host${path}`, { headers: { authorization: `Bearer ${key}`, ...headers } }))

it("is in the sentences of failures, in code and over HTTP", async () => {
  await expect(host.run(work, {}, { account })).rejects.toMatchObject({
    code: "insufficient_credits",
    message: "The call needs 1.5 tokens; 1 token available, 0.5 tokens short"
  })
  await expect(host.run(work, {}, { account, maxCredits: 1 })).rejects.toThrow("costs 1.5 tokens, more than the 1 token that")
  await expect(host.prices.publish({ "test.work": 1_000_001 })).rejects.toThrow("at most 1000000 tokens for each unit")
  const refused = async (headers?: Readonly<Record<string, string>>) => {
    const response = await get("/api/v1/work", headers)
    return [response.status, ((await response.json()) as { error: { message: string } }).error.message]
  }
  expect(await refused()).toEqual([402, "This call needs 1.5 tokens; 1 token available, 0.5 tokens short."])
  expect(await refused({ "x-max-credits": "1" })).toEqual([
    422,
    expect.stringContaining("would cost 1.5 tokens, more than the 1 token that")
  ])
})

it("is in the document, on its page and in the catalog", async () => {
  interface Document {
    readonly info: { readonly description: string }
    readonly paths: Readonly<Record<string, { readonly get: object }>>
  }
  const document = (await (await get("/api/v1/openapi.json")).json()) as Document
  expect(document.info.description).toContain("billed in tokens: 1 token is worth 0.002 EUR.")
  expect(document.paths["/api/v1/work"]?.get).toMatchObject({
    description: expect.stringContaining("**Price:** 1.5 tokens for each call."),
    "x-price": { credits: 1.5, unit: "call", value: "0.003", currency: "EUR" }
  })
  expect(await (await get("/docs")).text()).toContain("1 token is worth 0.002 EUR.")
  const { data } = (await (await get("/api/v1/catalog/config")).json()) as { data: object }
  expect(data).toMatchObject({ credit: { usd: null, value: "0.002", currency: "EUR", one: "token", several: "tokens", decimals: 3 } })
})

it("is a setting of the command line, by flags and by the environment", async () => {
  const command = async (args: string, env: Readonly<Record<string, string>> = {}) => {
    const { code, stderr } = await millrace(args.split(" "), { env })
    return { code, message: (JSON.parse(stderr) as { error: { message: string } }).error.message }
  }
  const bad = { MILLRACE_CREDIT_VALUE: "two euros" }
  expect(await command("balance --account a --store sqlite:/nowhere/none.db", bad)).toEqual({
    code: 1,
    message: 'MILLRACE_CREDIT_VALUE is "two euros": give a decimal above 0 and a currency, such as "0.002 EUR"'
  })
  expect((await command("serve --port 0 --store memory: --credit-name token")).message).toContain("such as token/tokens, by --credit-name")
})

it("is that of a served process", { timeout: 60_000 }, async () => {
  const server = await serve(["--store", "memory:", "--credit-name", "token/tokens", "--credit-value", "0.002 EUR"])
  try {
    const config = (await (await fetch(`${server.url}/api/v1/catalog/config`)).json()) as { data: object }
    expect(config.data).toMatchObject({ credit: { usd: null, value: "0.002", currency: "EUR", one: "token", several: "tokens" } })
  } finally {
    await server.stop()
  }
})
