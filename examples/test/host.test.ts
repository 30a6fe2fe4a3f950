/** Hosts without Effect, over real sockets: the host of `express.js`, and the one mount in each framework. */
import { createServer } from "node:http"
import { serve } from "@hono/node-server"
import express from "express"
import fastify from "fastify"
import { Hono } from "hono"
import { createMillrace, type Host, operation } from "millrace"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { z } from "zod"
import { linkIn, visitorOf } from "../../packages/millrace/test/host/Visitor.ts"
import { start } from "../express.js"
import { urlOf } from "../host.ts"
import { start as startSignIn } from "../sign-in.js"

it("the host of sign-in.js lets people in by a link that is mailed, and has the web tool", async () => {
  const mails: Array<{ readonly to: string; readonly text: string }> = []
  const host = await startSignIn({ port: 0, send: (mail) => void mails.push(mail) })
  try {
    const visitor = visitorOf(host.url)
    await visitor.askForLink("ada@example.com")
    expect(mails).toMatchObject([{ to: "ada@example.com" }])
    const link = linkIn(mails[0]?.text)
    expect(link).toContain(`${host.url}/sign-in#`)
    expect((await visitor.follow(link)).data).toMatchObject({ verified: true })
    expect((await visitor.ask("/api/v1/bin/457173")).headers.get("x-credits-balance")).toBe("199.5")
    expect(await (await fetch(`${host.url}/console`)).text()).toContain('<div id="tool">')
  } finally {
    await host.stop()
  }
})

describe("the host of express.js", () => {
  let host: Awaited<ReturnType<typeof start>>
  let key: string
  let account: string
  beforeAll(async () => {
    host = await start({ port: 0 })
    const signedUp = await fetch(`${host.url}/sign-up/ada@example.com`, { method: "POST" })
    ;({ account, key } = (await signedUp.json()) as { account: string; key: string })
  })
  afterAll(() => host.stop())

  const call = async (path: string, body?: object) => {
    const response = await fetch(`${host.url}/api/v1${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", prefer: "wait=10" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    return { status: response.status, charged: response.headers.get("x-credits-charged"), text }
  }

  it("charges what its operations cost, and nothing for a call that fails", async () => {
    expect(await call("/greeting/Ada")).toMatchObject({ status: 200, charged: "1.5" })
    expect(await call("/divide", { dividend: 1, divisor: 4 })).toMatchObject({
      status: 200,
      charged: "0.1",
      text: expect.stringContaining("0.25")
    })
    expect(await call("/divide", { dividend: 1, divisor: 0 })).toMatchObject({ status: 422, charged: null })
    expect((await host.millrace.balance(account)).available).toBe(198.4)
  })

  it("runs its job, whose file can be downloaded", async () => {
    const created = await call("/reports", { pages: 2 })
    expect(created).toMatchObject({ status: 200, charged: "1" })
    const { id } = JSON.parse(created.text).data
    expect((await call(`/reports/${id}/artifact`)).text).toBe("A mill is a thousandth of a dollar.\n".repeat(2))
  })

  it("documents its operations with their prices' unit, and leaves other paths to the host", async () => {
    expect((await fetch(`${host.url}/docs`)).status).toBe(200)
    const { paths } = (await (await fetch(`${host.url}/api/v1/openapi.json`)).json()) as { paths: object }
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(["/api/v1/greeting/{name}", "/api/v1/divide", "/api/v1/reports/{job}"]))
    expect((await fetch(`${host.url}/other`)).headers.get("content-type")).toContain("text/html")
  })
})

const MOUNTS: Readonly<Record<string, (millrace: Host) => Promise<{ readonly url: string; readonly stop: () => Promise<unknown> }>>> = {
  "node:http": async ({ handler }) => {
    const server = createServer((request, response) => handler(request, response, () => response.end("mine"))).listen(0, "127.0.0.1")
    await new Promise((resolve) => server.once("listening", resolve))
    return { url: urlOf(server), stop: () => new Promise((resolve) => server.close(resolve)) }
  },
  Express: async ({ handler }) => {
    const app = express().use(express.json(), handler)
    app.get("/mine", (_, response) => void response.send("mine"))
    const server = app.listen(0, "127.0.0.1")
    await new Promise((resolve) => server.once("listening", resolve))
    return { url: urlOf(server), stop: () => new Promise((resolve) => server.close(resolve)) }
  },
  Fastify: async ({ handler }) => {
    const app = fastify()
    app.addHook("onRequest", (request, reply, done) => handler(request.raw, reply.raw, done))
    app.get("/mine", async () => "mine")
    await app.listen({ port: 0, host: "127.0.0.1" })
    return { url: urlOf(app.server), stop: () => app.close() }
  },
  Hono: async (millrace) => {
    const app = new Hono().get("/mine", (context) => context.text("mine")).mount("/", millrace.fetch)
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" })
    await new Promise((resolve) => server.once("listening", resolve))
    return { url: urlOf(server), stop: () => new Promise((resolve) => server.close(resolve)) }
  }
}

describe.each(Object.entries(MOUNTS))("mounted in %s", (_, mount) => {
  const echo = operation("text.echo", {
    summary: "Echo a text",
    price: 1,
    route: { method: "POST", path: "/echo", body: z.object({ text: z.string() }) },
    success: z.object({ text: z.string() }),
    run: ({ text }) => ({ text })
  })
  let millrace: Host
  let mounted: Awaited<ReturnType<(typeof MOUNTS)[string]>>
  let key: string
  beforeAll(async () => {
    millrace = await createMillrace({ store: "memory:", log: {}, operations: [echo] })
    mounted = await mount(millrace)
    const account = await millrace.accounts.open({ email: "ada@example.com", verified: true })
    ;({ key } = await millrace.keys.issue(account))
  })
  afterAll(async () => {
    await mounted.stop()
    await millrace.close()
  })

  it("serves calls, the document, the page and readiness, and leaves other paths to the host", async () => {
    const response = await fetch(`${mounted.url}/api/v1/echo`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ text: "hello" })
    })
    expect([response.status, response.headers.get("x-credits-charged")]).toEqual([200, "1"])
    expect(await response.json()).toMatchObject({ data: { text: "hello" } })
    for (const path of ["/docs", "/health", "/ready", "/api/v1/openapi.json"]) expect((await fetch(mounted.url + path)).status).toBe(200)
    expect(await (await fetch(`${mounted.url}/mine`)).text()).toBe("mine")
    expect(await (await fetch(`${mounted.url}/api/v1/nothing`)).json()).toMatchObject({ error: { code: "route_not_found" } })
  })
})
