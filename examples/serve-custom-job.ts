/** The job operation of `custom-job.ts` over HTTP, until Ctrl-C: `npm run custom-job -w examples`. */
import { NodeRuntime } from "@effect/platform-node"
import { AuthThrottle, MasterKey, Millrace } from "@millrace/core"
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Http, Readiness, Server, WebHandler } from "@millrace/http"
import { Effect, Layer } from "effect"
import { api } from "./custom-job.ts"
import { signUp } from "./host.ts"

export const layer = (port: number) =>
  Server.Server.layer(WebHandler.make(Http.layer(api)), { port }).pipe(
    Layer.provideMerge(Layer.merge(Readiness.Readiness.layer(), AuthThrottle.layer())),
    Layer.provideMerge(Millrace.layer({ operations: api.operations })),
    Layer.provideMerge(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, MasterKey.layer("0".repeat(64))))
  )

export const prepare = Effect.gen(function* () {
  return { url: (yield* Server.Server).url, key: yield* signUp("ada@example.com") }
})

const main = Effect.gen(function* () {
  const { key, url } = yield* prepare
  const headers = `-H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -H 'Prefer: wait=10'`
  console.log(`curl -i ${url}/api/v1/counts ${headers} -d '{"chapters":["It was the best of times,","it was the worst of times."]}'`)
  return yield* Effect.never
})

if (import.meta.main) NodeRuntime.runMain(Effect.provide(main, layer(8787)))
