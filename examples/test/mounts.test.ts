/** Every way to mount Millrace, over a real socket: calls, errors, the host's own routes, callers that leave, and an orderly end. */
import { Bin, Grammar, NotFound } from "@millrace/core"
import { createClient } from "@millrace/http/client"
import { Deferred, Effect, Layer, Logger, ManagedRuntime } from "effect"
import { HttpServer } from "effect/http"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { api, type Mountable, open, services, signUp } from "../host.ts"
import { layer as effectLayer } from "../mount-effect.ts"
import { mount as express } from "../mount-express.ts"
import { mount as fastify } from "../mount-fastify.ts"
import { mount as hono } from "../mount-hono.ts"
import { mount as nodeHttp } from "../mount-node-http.ts"

const SLOW = "400000"

/** Upstreams that a test holds in its hands: a lookup of `SLOW` takes until it is told to end. */
const upstreams = () => {
  const seen = { started: 0, interrupted: 0 }
  const finish = Deferred.makeUnsafe<void>()
  const record = (bin: string) => ({ bin, scheme: "visa", type: null, brand: null, country: null, bank: null })
  const bins = Layer.succeed(Bin.BinDirectory, {
    lookup: (bin) => {
      if (bin === "000000") return Effect.fail(new NotFound({ resource: "bin" }))
      if (bin !== SLOW) return Effect.succeed(record(bin))
      seen.started++
      return Deferred.await(finish).pipe(
        Effect.as(record(bin)),
        Effect.onInterrupt(() => Effect.sync(() => seen.interrupted++))
      )
    }
  })
  const grammar = Layer.succeed(Grammar.GrammarChecker, {
    supports: () => true,
    check: ({ text }) => Effect.succeed({ matches: [{ message: text, offset: 0, length: 1, replacements: [], rule: "TEXT" }] })
  })
  return { seen, finish: () => Deferred.doneUnsafe(finish, Effect.void), layer: Layer.mergeAll(bins, grammar, Logger.layer([])) }
}

type Upstreams = ReturnType<typeof upstreams>

interface Mounted {
  readonly url: string
  readonly signUp: (email: string) => Promise<string>
  readonly stop: () => Promise<void>
}

const mountedBy =
  (mount: (millrace: Mountable) => Promise<Pick<Mounted, "url" | "stop">>) =>
  async ({ layer }: Upstreams): Promise<Mounted> => {
    const millrace = await open(layer)
    return { ...(await mount(millrace)), signUp: millrace.signUp }
  }

const inEffect = async ({ layer }: Upstreams): Promise<Mounted> => {
  const runtime = ManagedRuntime.make(Layer.provideMerge(effectLayer(), services(layer)))
  const url = await runtime.runPromise(HttpServer.addressFormattedWith(Effect.succeed))
  return { url, signUp: (email) => runtime.runPromise(signUp(email)), stop: () => runtime.dispose() }
}

const mounts = {
  "node:http": mountedBy(nodeHttp),
  Express: mountedBy(express),
  Fastify: mountedBy(fastify),
  Hono: mountedBy(hono),
  Effect: inEffect
}

describe.each(Object.entries(mounts))("mounted in %s", (name, mounted) => {
  const upstream = upstreams()
  let host: Mounted
  let key: string
  const client = () => createClient({ api, baseUrl: host.url, apiKey: key, retry: { attempts: 1 } })
  beforeAll(async () => {
    host = await mounted(upstream)
    key = await host.signUp("ada@example.com")
  })
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= host.stop())
  afterAll(stop)

  test("serves calls with their bodies, also behind a body parser", async () => {
    const millrace = client()
    const found = await millrace.bin.lookup({ bin: "457173" })
    expect(found).toMatchObject({ data: { scheme: "visa" }, charged: 0.5, balance: 199.5, replayed: false })
    const check = () => millrace.grammar.check({ text: "Añb" }, { idempotencyKey: "once" })
    const [first, again] = [await check(), await check()]
    expect([first.data.matches[0]?.message, first.replayed, again]).toEqual(["Añb", false, { ...first, charged: 0, replayed: true }])
  })

  test("answers failures with Millrace's own error objects", async () => {
    const millrace = client()
    await expect(millrace.bin.lookup({ bin: "000000" })).rejects.toMatchObject({ _tag: "NotFound", code: "not_found" })
    await expect(millrace.bin.lookup({ bin: "x" })).rejects.toMatchObject({ code: "invalid_request" })
    await expect(millrace.grammar.check({ text: "" })).rejects.toMatchObject({ code: "invalid_request", message: /text/u })
    const stranger = createClient({ api, baseUrl: host.url, apiKey: "nonsense" })
    await expect(stranger.bin.lookup({ bin: "457173" })).rejects.toMatchObject({ _tag: "Unauthorized" })
    const nothing = await fetch(`${host.url}/api/v1/nothing/here`)
    expect([nothing.status, await nothing.json()]).toMatchObject([404, { error: { code: "route_not_found" } }])
    expect(nothing.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/u)
    const wrong = await fetch(`${host.url}/api/v1/bin/457173`, { method: "DELETE" })
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET"])
  })

  test("leaves the host's own routes alone", async () => {
    expect(await (await fetch(host.url)).text()).toBe("The host's own page")
    if (name === "node:http" || name === "Effect") return
    const echo = await fetch(`${host.url}/echo`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: `{"a":1}`
    })
    expect(await echo.json()).toEqual({ a: 1 })
  })

  test("cancels and refunds the call of a caller who disconnects", async () => {
    const millrace = client()
    const before = (await millrace.account.billing()).data.balance
    const abort = new AbortController()
    const left = millrace.bin.lookup({ bin: SLOW }, { signal: abort.signal }).catch((error: unknown) => error)
    await expect.poll(() => upstream.seen.started, { timeout: 10_000 }).toBe(1)
    expect((await millrace.account.billing()).data).toMatchObject({ balance: before - 0.5, held: 0.5 })
    abort.abort("left")
    expect(await left).toBe("left")
    await expect.poll(async () => (await millrace.account.billing()).data, { timeout: 10_000 }).toMatchObject({ balance: before, held: 0 })
    expect(upstream.seen.interrupted).toBe(1)
  })

  test("lets a running call end when the host stops, and takes no new calls", async () => {
    const running = client().bin.lookup({ bin: SLOW })
    await expect.poll(() => upstream.seen.started, { timeout: 10_000 }).toBe(2)
    const ended = stop()
    upstream.finish()
    expect(await running).toMatchObject({ data: { bin: SLOW }, charged: 0.5 })
    await ended
    await expect(fetch(host.url)).rejects.toThrow()
  })
})
