/** A host that mounts Millrace in a `node:http` server of its own. It prints where it listens and as many API keys as it is asked for. */
import { createServer } from "node:http"
import { AccountBilling, AuthThrottle, Bin, Grammar, KeyRing, MasterKey, Millrace, Registration } from "@millrace/core"
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Api, Http, Readiness, toNodeHandler, WebHandler } from "@millrace/http"
import { CardTypeBinDirectory, HarperGrammarChecker } from "@millrace/upstreams"
import { Effect, Layer, Redacted } from "effect"

const api = Api.make({
  lookups: Api.group([Bin.lookup, Grammar.check]),
  account: Api.group([AccountBilling.read], { scope: "read" })
})

const services = Layer.mergeAll(Readiness.Readiness.layer(), AuthThrottle.layer({ failures: 1_000_000 })).pipe(
  Layer.provideMerge(Millrace.layer({ operations: api.operations, rateLimit: { limit: 1_000_000, window: 60 } })),
  Layer.provideMerge(Layer.mergeAll(CardTypeBinDirectory.layer, HarperGrammarChecker.layer())),
  Layer.provideMerge(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("5a".repeat(32)))))
)

/** A new account with its sign-up credits, and its key. */
const signUp = Effect.fnUntraced(function* (email: string) {
  const registration = yield* Registration
  const keys = yield* KeyRing
  const account = yield* registration.open(email)
  yield* registration.verify(account)
  return Redacted.value((yield* keys.issue(account)).key)
})

const serve = Effect.gen(function* () {
  const keys = yield* Effect.forEach(Array.from({ length: Number(process.argv[2]) }), (_, index) => signUp(`${index}@example.com`))
  const { handle } = yield* WebHandler.make(Http.layer(api))
  const server = createServer(toNodeHandler(handle)).listen(0, "127.0.0.1", () => {
    const address = server.address()
    console.log(JSON.stringify({ port: typeof address === "object" && address !== null ? address.port : 0, keys }))
  })
  return yield* Effect.never
})

await Effect.runPromise(Effect.scoped(Effect.provide(serve, services)))
