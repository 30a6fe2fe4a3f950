import { createServer } from "node:http"
import { AuthThrottle, Catalog, MasterKey, Millrace } from "@millrace/core"
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Http, Readiness, Server, WebHandler } from "@millrace/http"
import { createClient, InvalidRequest, Unavailable } from "@millrace/http/client"
import { Effect, Layer, Logger, ManagedRuntime } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { api, convert, Rates } from "../custom-operation.ts"
import { signUp, urlOf } from "../host.ts"

const asked: Array<string | undefined> = []
const upstream = createServer(({ url }, response) => {
  asked.push(url)
  response.end(url === "/EUR" ? "0.9" : "come back later")
})

const runtimeOf = (rates: string) =>
  ManagedRuntime.make(
    Server.Server.layer(WebHandler.make(Http.layer(api))).pipe(
      Layer.provideMerge(Layer.merge(Readiness.Readiness.layer(), AuthThrottle.layer())),
      Layer.provideMerge(Millrace.layer({ operations: api.operations })),
      Layer.provideMerge(
        Layer.mergeAll(
          MemoryEventStore.layer,
          MemoryStateStore.layer,
          MasterKey.layer("0".repeat(64)),
          Rates.layer(rates),
          Logger.layer([])
        )
      )
    )
  )

let runtime: ReturnType<typeof runtimeOf>
let url: string
let key: string
const client = () => createClient({ api, baseUrl: url, apiKey: key, retry: { attempts: 1 } })

beforeAll(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve))
  runtime = runtimeOf(urlOf(upstream))
  url = (await runtime.runPromise(Server.Server)).url
  key = await runtime.runPromise(signUp("ada@example.com"))
})
afterAll(async () => {
  await runtime.dispose()
  upstream.closeAllConnections()
  await new Promise((resolve) => upstream.close(resolve))
})

test("a custom operation is billed at the price that stands in it", async () => {
  const reply = await client().currency.convert({ to: "EUR", amount: 10 })
  expect(reply).toMatchObject({ data: { amount: 9, currency: "EUR" }, charged: 1.5, balance: 198.5 })
  expect(asked).toEqual(["/EUR"])
})

test("a custom operation is free when its upstream fails or its check refuses the input", async () => {
  const millrace = client()
  await expect(millrace.currency.convert({ to: "CHF", amount: 10 })).rejects.toBeInstanceOf(Unavailable)
  expect(asked.at(-1)).toBe("/CHF")
  const { length } = asked
  // @ts-expect-error there is no such currency
  await expect(millrace.currency.convert({ to: "XXX", amount: 10 })).rejects.toBeInstanceOf(InvalidRequest)
  expect(asked).toHaveLength(length)
  expect(await millrace.currency.convert({ to: "EUR", amount: 0 })).toMatchObject({ data: { amount: 0 }, balance: 197 })
})

test("a custom operation is in the OpenAPI document and the catalog, with its types and its price", async () => {
  const document: unknown = await (await fetch(`${url}/api/v1/openapi.json`)).json()
  expect(document).toMatchObject({
    paths: {
      "/api/v1/currency/{to}": {
        get: {
          operationId: "currency.convert",
          summary: convert.summary,
          parameters: expect.arrayContaining([
            expect.objectContaining({ name: "to", in: "path", schema: expect.objectContaining({ enum: ["CHF", "EUR"] }) }),
            expect.objectContaining({ name: "amount", in: "query", schema: expect.objectContaining({ type: "number" }) })
          ])
        }
      }
    }
  })
  const entries = await runtime.runPromise(Effect.flatMap(Catalog.Catalog, ({ entries }) => entries))
  expect(entries).toMatchObject([{ key: "currency.convert", method: "GET", path: "/currency/{to}", price: { credits: 1_500 } }])
})
