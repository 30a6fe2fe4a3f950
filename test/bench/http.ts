/**
 * Requests a second: a billed BIN lookup, durable, beside a bare `node:http` hello, HttpApi without a ledger, and Fastify with a balance in
 * PostgreSQL.
 */
import { createServer, type Server as NodeServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Worker } from "node:worker_threads"
import { AuthThrottle, Bin, Credits, Decisions, KeyRing, Ledger, Millrace, newLotId, Registration } from "@millrace/core"
import { Api, Http, Readiness, Server, toNodeHandler, WebHandler } from "@millrace/http"
import { CardTypeBinDirectory } from "@millrace/upstreams"
import { Effect, Layer, Redacted, References, Schema } from "effect"
import { HttpServer } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import * as ByHand from "./by-hand.ts"
import { stores } from "./host.ts"
import { compare, type Options, withFolder } from "./measure.ts"
import { withPostgres } from "./postgres.ts"

const api = Api.make({ lookups: Api.group([Bin.lookup]) })

const CLIENTS = 64
const BODY = JSON.stringify({ bin: "45717360", scheme: "visa", type: null, brand: "Visa", country: null, bank: null })

/** Sends requests over `CLIENTS` connections, from a thread of their own: for a time, or a number of them. Answers how many a second, or how many. */
export const load = (
  port: number,
  path: string,
  key: string,
  until: { readonly millis: number } | { readonly requests: number }
): Promise<number> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./http-load.ts", import.meta.url), { workerData: { port, path, key, clients: CLIENTS, ...until } })
    worker.once("message", resolve)
    worker.once("error", reject)
  })

const listen = async (server: NodeServer): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return (server.address() as AddressInfo).port
}

const bare = () => createServer((_, response) => response.writeHead(200, { "content-type": "application/json" }).end(BODY))

/** The same endpoint, answered at once. */
const withoutLedger = () => {
  const api = HttpApi.make("bare").add(
    HttpApiGroup.make("lookups").add(
      HttpApiEndpoint.get("lookup", "/api/v1/bin/:bin", { params: { bin: Schema.String }, success: Bin.BinRecord })
    )
  )
  const record = { bin: "45717360", scheme: "visa", type: null, brand: "Visa", country: null, bank: null }
  const lookups = HttpApiBuilder.group(api, "lookups", (handlers) => handlers.handle("lookup", () => Effect.succeed(record)))
  const routes = HttpApiBuilder.layer(api).pipe(Layer.provide(lookups), Layer.provide(HttpServer.layerServices))
  return createServer(toNodeHandler(WebHandler.fromLayer(routes).handle))
}

/** Serves billed lookups for as long as `use` runs. */
export const billed = <A>(
  folder: string,
  use: (served: { readonly port: number; readonly path: string; readonly key: string }) => Promise<A>
): Effect.Effect<A, unknown> =>
  Effect.gen(function* () {
    const { port } = yield* Server.Server
    const account = yield* (yield* Registration).open("bench@example.com")
    const key = Redacted.value((yield* (yield* KeyRing).issue(account)).key)
    const ledger = yield* Ledger
    yield* ledger.execute(account, Decisions.grant({ lotId: yield* newLotId, amount: Credits.of(1e12), source: "promotion" }))
    return yield* Effect.promise(() => use({ port, path: "/api/v1/bin/45717360", key }))
  }).pipe(
    Effect.provide(
      Server.Server.layer(WebHandler.make(Http.layer(api)), { port: 0 }).pipe(
        Layer.provide(Layer.mergeAll(Readiness.Readiness.layer(), AuthThrottle.layer())),
        Layer.provideMerge(Millrace.layer({ operations: api.operations, groups: api.groups, rateLimit: { limit: 1e9, window: 60 } })),
        Layer.provideMerge(CardTypeBinDirectory.layer),
        Layer.provideMerge(stores(folder))
      )
    ),
    // A line for each request is the host's choice; here it would measure the terminal
    Effect.provideService(References.MinimumLogLevel, "Warn")
  )

export const run = (options: Options) =>
  withFolder((folder) =>
    Effect.runPromise(
      billed(folder, async ({ key, path, port }) => {
        const [hello, httpApi] = [bare(), withoutLedger()]
        const [helloPort, httpApiPort] = await Promise.all([listen(hello), listen(httpApi)])
        const loaded = (port: number) => (millis: number) => load(port, path, key, { millis })
        const measured = async (url: string) => {
          const byHand = await ByHand.serve(url, key, BODY)
          try {
            return await compare(
              {
                "node:http hello": loaded(helloPort),
                "HttpApi, no ledger": loaded(httpApiPort),
                "Fastify and PostgreSQL": loaded(byHand.port),
                "billed BIN lookup": loaded(port)
              },
              options
            )
          } finally {
            await byHand.close()
          }
        }
        const result = await withPostgres(measured)
        hello.close()
        httpApi.close()
        return Object.entries(result).map(([name, { rate, ratio }]) => ({ name, "requests/s": rate, ratio }))
      })
    )
  )
