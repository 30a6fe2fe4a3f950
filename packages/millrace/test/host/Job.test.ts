/** Jobs of a host without Effect, over HTTP: accepted, run, read, downloaded, cancelled. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, expect, it } from "vitest"
import { z } from "zod"
import { createMillrace, type Host, job, UpstreamUnavailable } from "../../src/index.ts"

const attempts: Array<{ readonly attempt: number; readonly from: number }> = []

const write = job("report.write", {
  summary: "Write a report",
  price: 0.5,
  unit: "page",
  quantity: ({ pages }) => pages,
  route: { method: "POST", path: "/reports", body: z.object({ pages: z.int().min(1).max(9), title: z.string().default("untitled") }) },
  result: z.object({ title: z.string(), pages: z.int() }),
  checkpoint: z.object({ page: z.int() }),
  files: ["text/plain"],
  run: async ({ pages, title }, { attempt, checkpoint, progress, signal, store }) => {
    attempts.push({ attempt, from: checkpoint?.page ?? 0 })
    for (let page = checkpoint?.page ?? 0; page < pages; page++) {
      await progress((100 * page) / pages, { page })
      if (title === "flaky" && attempt === 1 && page === 2) throw new UpstreamUnavailable("the printer is out of paper")
    }
    if (title === "endless") await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
    async function* lines() {
      for (let page = 0; page < pages; page++) yield new TextEncoder().encode(`page ${page}\n`)
    }
    await store(lines(), { contentType: "text/plain" })
    return { title, pages }
  }
})

let millrace: Host
let account: string
let call: (method: string, path: string, body?: object) => Promise<{ status: number; data: Record<string, unknown>; text: string }>
const server = createServer((request, response) => millrace.handler(request, response))

beforeAll(async () => {
  millrace = await createMillrace({ store: "memory:", log: {}, operations: [write] })
  account = await millrace.accounts.open({ email: "ada@example.com", verified: true })
  const { key } = await millrace.keys.issue(account)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`
  call = async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", prefer: "wait=10" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    return { status: response.status, data: text.startsWith("{") ? JSON.parse(text).data : undefined, text }
  }
})
afterAll(async () => {
  server.close()
  await millrace.close()
  server.closeAllConnections()
})

it("is charged once it has succeeded, and its result and file can be read", async () => {
  const before = (await millrace.balance(account)).available
  const created = await call("POST", "/reports", { pages: 3 })
  expect(created).toMatchObject({ status: 200, data: { status: "succeeded" } })
  expect((await millrace.balance(account)).available).toBe(before - 1.5)
  expect(await call("GET", `/reports/${created.data.id}`)).toMatchObject({
    data: { status: "succeeded", percent: 100, result: { title: "untitled", pages: 3 }, failure: null, files: [{ part: 1, size: 21 }] }
  })
  expect((await call("GET", `/reports/${created.data.id}/artifact`)).text).toBe("page 0\npage 1\npage 2\n")
})

it("goes on from its checkpoint after an attempt that failed", async () => {
  attempts.length = 0
  const created = await call("POST", "/reports", { pages: 4, title: "flaky" })
  expect(created.data.status).toBe("succeeded")
  expect(attempts).toEqual([
    { attempt: 1, from: 0 },
    { attempt: 2, from: 2 }
  ])
})

it("is awaited, read and downloaded in code by its own account alone", async () => {
  const { data } = await millrace.run(write, { pages: 2 }, { account })
  const view = await millrace.jobs.wait(write, data.id, { account })
  expect(view).toMatchObject({ status: "succeeded", result: { pages: 2 } })
  const { stream, ...file } = await millrace.jobs.file(write, data.id, { account })
  expect(file).toEqual({ contentType: "text/plain", size: 14, filename: data.id })
  expect(await new Response(stream).text()).toBe("page 0\npage 1\n")
  const other = await millrace.accounts.open({ email: "eve@example.com" })
  await expect(millrace.jobs.wait(write, data.id, { account: other })).rejects.toMatchObject({ code: "not_found" })
  await expect(millrace.jobs.cancel(write, data.id, { account: other })).rejects.toMatchObject({ code: "not_found" })
  expect(await millrace.jobs.cancel(write, data.id, { account })).toBe(false)
  await expect(millrace.jobs.read(write, data.id, { account })).rejects.toMatchObject({ code: "not_found" })
})

it("costs nothing when it is cancelled, and its work is aborted", async () => {
  const before = (await millrace.balance(account)).available
  const { data } = await millrace.run(write, { pages: 2, title: "endless" }, { account })
  expect(await call("DELETE", `/reports/${data.id}`)).toMatchObject({ status: 200, data: { cancelled: true } })
  expect((await call("GET", `/reports/${data.id}`)).status).toBe(404)
  expect((await millrace.balance(account)).available).toBe(before)
})

it("answers 422 for an input that its schema refuses, and holds nothing", async () => {
  expect(await call("POST", "/reports", { pages: 10 })).toMatchObject({ status: 422, text: expect.stringContaining("pages: ") })
})
