import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Catalog } from "@millrace/core"
import { createClient, InvalidRequest, NotFound } from "@millrace/http/client"
import { Effect, Layer, Logger, ManagedRuntime } from "effect"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { api, count } from "../custom-job.ts"
import { layer, prepare } from "../serve-custom-job.ts"

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url))

const runtime = ManagedRuntime.make(Layer.provideMerge(layer(0), Logger.layer([])))
let host: { readonly url: string; readonly key: string }
const client = () => createClient({ api, baseUrl: host.url, apiKey: host.key, retry: { attempts: 1 } })

beforeAll(async () => {
  host = await runtime.runPromise(prepare)
})
afterAll(() => runtime.dispose())

const book = { chapters: ["It was the best of times,", "it was the worst of times.", "Chapter the third, and last"] }

test("a job of the host is called, read and charged like the standard jobs", async () => {
  const millrace = client()
  const made = await millrace.text.count(book, { wait: 20 })
  expect(made.data).toMatchObject({ status: "succeeded" })
  const found = await millrace.text.readCount({ job: made.data.id })
  expect(found.data).toEqual({ status: "succeeded", percent: 100, words: 17 })
  await expect.poll(async () => (await millrace.text.readCount({ job: made.data.id })).balance).toBe(198.5)
  // It has ended, so there is nothing to cancel but what is kept of it
  expect((await millrace.text.cancelCount({ job: made.data.id })).data).toEqual({ cancelled: false, job_id: made.data.id })
  await expect(millrace.text.readCount({ job: made.data.id })).rejects.toBeInstanceOf(NotFound)
  await expect(millrace.text.count({ chapters: [] })).rejects.toBeInstanceOf(InvalidRequest)
})

test("the job's routes are in the OpenAPI document, and it is in the catalog with its price", async () => {
  const document: unknown = await (await fetch(`${host.url}/api/v1/openapi.json`)).json()
  expect(document).toMatchObject({
    paths: {
      "/api/v1/counts": { post: { operationId: "text.count", summary: count.summary } },
      "/api/v1/counts/{job}": { get: { operationId: "text.readCount" }, delete: { operationId: "text.cancelCount" } }
    }
  })
  const entries = await runtime.runPromise(Effect.flatMap(Catalog.Catalog, ({ entries }) => entries))
  expect(entries).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ key: "text.count", method: "POST", path: "/counts", price: expect.objectContaining({ credits: 500 }) })
    ])
  )
})

test.each([
  ["jobs.ts", ["accepted: { charged: 0, balance: 199000 }", `{"status":"succeeded","percent":100,"words":12} charged: 1 left: 199`]],
  ["jobs-promises.ts", ["accepted: 0 199", "succeeded 100 12"]]
])("the same job runs without HTTP in %s, and reports its charge", (name, lines) => {
  // It keeps its log in a folder of its own
  const folder = mkdtempSync(join(tmpdir(), "millrace-example-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const env = { ...process.env, TMPDIR: folder }
  const printed = execFileSync(process.execPath, ["--conditions=@millrace/source", path(name)], { encoding: "utf8", env })
  expect(printed.trim().split("\n")).toEqual(lines)
})

test.each(["custom-job.ts", "jobs.ts", "jobs-promises.ts"])("%s has forty lines at the most", (name) => {
  expect(readFileSync(path(name), "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(40)
})
