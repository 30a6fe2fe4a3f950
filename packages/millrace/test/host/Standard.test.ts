/** The operations that come with Millrace, at a host without Effect. */
import { execFileSync } from "node:child_process"
import { Bin, Speech } from "@millrace/core"
import { Effect, Layer, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from "vitest"
import { z } from "zod"
import type { JsonOf } from "../../src/host/Schemas.ts"
import { createMillrace, type Host, type Job, operation, type StandardOperations, standard } from "../../src/index.ts"

const greet = operation("greeting.write", {
  summary: "Write a greeting",
  price: 1.5,
  route: { method: "GET", path: "/greeting/:name", params: z.object({ name: z.string() }) },
  success: z.object({ greeting: z.string() }),
  run: ({ name }) => ({ greeting: `Hello, ${name}!` })
})

const VOICE = { id: "ada", name: "Ada", language: "en", gender: null, category: "en" } as const

/** Speaks a text as its own bytes. */
const speaker = Layer.succeed(Speech.SpeechSynthesizer, {
  voices: Effect.succeed({ default_voice: "ada", voices: [VOICE] }),
  synthesize: ({ text }) => Stream.make(new TextEncoder().encode(text))
})

describe("a host with standard operations beside its own", () => {
  let host: Host
  let account: string
  let key: string
  beforeAll(async () => {
    host = await createMillrace({
      store: "memory:",
      log: {},
      operations: [greet],
      standard: ["bin.lookup", "topics", "speech.synthesize", "image.generate", "catalog"],
      services: speaker
    })
    account = await host.accounts.open({ id: "user-7", email: "ada@example.com", verified: true })
    ;({ key } = await host.keys.issue(account))
  })
  afterAll(() => host.close())

  const get = async (path: string) => {
    const response = await host.fetch(new Request(`http://host/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } }))
    return { status: response.status, body: (await response.json()) as { data: unknown } }
  }

  it("runs them in code, typed, at the price that stands in them", async () => {
    const { charged, data } = await host.run(standard.bin.lookup, { bin: "45717360" }, { account })
    expectTypeOf(data.scheme).toBeString()
    expect([data.scheme, charged]).toEqual(["visa", 0.5])
    const topics = await host.run(standard.topics.list, {}, { account: "user-7" })
    expect(topics.charged).toBe(0.1)
    expect(topics.data.topics.length).toBeGreaterThan(0)
    // @ts-expect-error the input has no such field
    const wrong = host.run(standard.bin.lookup, { number: "45717360" }, { account })
    await expect(wrong).rejects.toMatchObject({ code: "invalid_input", field: "bin" })
    await expect(host.run(standard.bin.lookup, { bin: "x" }, { account })).rejects.toThrow("six to eight digits")
  })

  it("serves them over HTTP, with its own in one document and one catalog", async () => {
    expect(await get("/bin/45717360")).toMatchObject({ status: 200, body: { data: { scheme: "visa" } } })
    expect(await get("/dns/example.com")).toMatchObject({ status: 404, body: { error: { code: "route_not_found" } } })
    const { operations } = (await get("/catalog")).body.data as { operations: ReadonlyArray<{ key: string; price: { credits: number } }> }
    const prices = Object.fromEntries(operations.map(({ key, price }) => [key, price.credits]))
    expect(prices).toEqual({
      ...{ "greeting.write": 1.5, "bin.lookup": 0.5, "topics.list": 0.1, "image.generate": 8, "image.read": 0, "image.cancel": 0 },
      ...{ "image.download": 0, "speech.synthesize": 5, "speech.read": 0, "speech.cancel": 0, "speech.download": 0, "speech.voices": 0 },
      ...{ "catalog.read": 0, "catalog.capabilities": 0, "catalog.capability": 0, "catalog.config": 0, "catalog.groups": 0 }
    })
    expect((await host.prices.list()).at(-1)?.prices).toEqual(prices)
  })

  it("runs their jobs by the host's own service, and reads, awaits and downloads them", async () => {
    const { data, charged } = await host.run(standard.speech.synthesize, { text: "A mill." }, { account })
    expect(charged).toBe(0)
    const view = await host.jobs.wait(standard.speech.synthesize, data.id, { account, timeout: 10_000 })
    expect(view).toMatchObject({ status: "succeeded", result: { voice: "ada" }, files: [{ part: 1, size: 7, content_type: "audio/mpeg" }] })
    const { contentType, stream } = await host.jobs.file(standard.speech.synthesize, data.id, { account })
    expect([contentType, await new Response(stream).text()]).toEqual(["audio/mpeg", "A mill."])
    expect(await host.jobs.cancel(standard.speech.synthesize, data.id, { account })).toBe(false)
    await host.accounts.open({ id: "other" })
    await expect(host.jobs.read(standard.speech.synthesize, data.id, { account: "other" })).rejects.toMatchObject({ code: "not_found" })
    const { companions } = standard.email.validationJob
    expect(Object.keys(companions)).toEqual(["read"])
    await expect(host.jobs.cancel(standard.email.validationJob, "job_1", { account })).rejects.toThrow("cannot be cancelled")
  })

  it("names a provider that is missing, and what to pass", async () => {
    await expect(host.run(standard.image.generate, { prompt: "A mill" }, { account })).rejects.toMatchObject({
      code: "upstream_not_configured",
      message: expect.stringContaining('pass providers: { images: "openai:URL", imagesKey }')
    })
  })
})

/** The results of all standard jobs. They are read as JSON. */
type Results = {
  [Area in keyof StandardOperations]: {
    [Name in keyof StandardOperations[Area]]: StandardOperations[Area][Name] extends Job<infer _Input, infer Result> ? Result : never
  }[keyof StandardOperations[Area]]
}[keyof StandardOperations]

it("the results of their jobs are JSON, as their types say", () => {
  expectTypeOf<JsonOf<Results>>().toEqualTypeOf<Results>()
  expectTypeOf<Extract<Results, { readonly voice: unknown }>>().toEqualTypeOf<{ readonly voice: string }>()
})

describe("the option standard", () => {
  const create = (standard: unknown, more: object = {}) => createMillrace({ store: "memory:", log: {}, standard, ...more } as never)

  it("serves all with true, and takes a service of the host before the default", async () => {
    const directory = Layer.succeed(Bin.BinDirectory, {
      lookup: (bin) => Effect.succeed({ bin, scheme: "own", type: null, brand: null, country: null, bank: null })
    })
    const host = await create(true, { services: directory })
    const account = await host.accounts.open({ email: "ada@example.com", verified: true })
    expect((await host.run(standard.bin.lookup, { bin: "45717360" }, { account })).data.scheme).toBe("own")
    expect(Object.keys((await host.prices.list())[0]?.prices ?? {})).toHaveLength(73)
    await host.close()
  })

  it.each([
    [["bin.lokup"], {}, 'the standard operation "bin.lokup", which there is not: name a key such as "bin.lookup"'],
    ["dns", {}, 'The option standard is "dns": give true, or names'],
    [true, { providers: { speech: "shout" } }, "The option providers.speech is another text: give espeak"],
    [true, { providers: { dnsServers: ["nowhere"] } }, 'The option providers.dnsServers has "nowhere": give IP addresses']
  ])("refuses %j with %j", async (names, more, sentence) => {
    await expect(create(names, more)).rejects.toThrow(sentence)
  })
})

/** Runs a host in a process of its own, and tells which modules it loaded. */
const PROBE = `
import { registerHooks } from "node:module"
const loaded = []
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
const { createMillrace, operation, standard } = await import("millrace")
const { z } = await import("zod")
const greet = operation("greeting.write", {
  summary: "Write", price: 1, route: { method: "GET", path: "/greeting" }, success: z.object({}), run: () => ({})
})
const upstreams = () => loaded.filter((url) => /packages\\/upstreams\\/|\\/(?:sharp|harper\\.js|dns-packet|credit-card-type)\\//u.test(url))
const run = async (operation, input, options) => {
  const millrace = await createMillrace({ store: "memory:", log: {}, ...options })
  const account = await millrace.accounts.open({ email: "ada@example.com", verified: true })
  const { charged } = await millrace.run(operation, input, { account })
  await millrace.close()
  return charged
}
const own = await run(greet, {}, { operations: [greet] })
const without = upstreams().length
const theirs = await run(standard.bin.lookup, { bin: "45717360" }, { standard: true })
const heavy = upstreams().filter((url) => url.includes("/harper.js/"))
console.log(JSON.stringify({ own, without, theirs, some: upstreams().length > 0, heavy }))
`

it("a host loads the upstreams with standard operations only, and the grammar checker when it is used", () => {
  const args = ["--conditions=@millrace/source", "--input-type=module", "--eval", PROBE]
  const cwd = new URL("../../../../examples", import.meta.url)
  expect(JSON.parse(execFileSync(process.execPath, args, { cwd, encoding: "utf8" }))).toEqual({
    own: 1,
    without: 0,
    theirs: 0.5,
    some: true,
    heavy: []
  })
})
