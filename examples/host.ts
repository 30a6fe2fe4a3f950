/** Shared by all the mounts: operations, stores, an account. A real host keeps its log on disk, see `embed.ts`. */
import { randomBytes } from "node:crypto"
import type { Server } from "node:http"
import { AccountBilling, AuthThrottle, Bin, Grammar, KeyRing, MasterKey, Millrace, Registration } from "@millrace/core"
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Api, Http, Readiness, WebHandler } from "@millrace/http"
import { CardTypeBinDirectory, HarperGrammarChecker } from "@millrace/upstreams"
import { Effect, Exit, Layer, ManagedRuntime, Redacted, Scope } from "effect"

/** This host's operations: two built-in ones, and the account's billing. */
export const api = Api.make({
  lookups: Api.group([Bin.lookup, Grammar.check]),
  account: Api.group([AccountBilling.read], { scope: "read" })
})

const providers = Layer.mergeAll(CardTypeBinDirectory.layer, HarperGrammarChecker.layer())

/** The services of the routes. */
export const services = (upstreams: Layer.Layer<Bin.BinDirectory | Grammar.GrammarChecker> = providers) =>
  Layer.mergeAll(Readiness.Readiness.layer(), AuthThrottle.layer()).pipe(
    Layer.provideMerge(Millrace.layer({ operations: api.operations })),
    Layer.provideMerge(
      Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer(randomBytes(32))), upstreams)
    )
  )

/** Opens a verified account with its sign-up credits, and issues a key for it. */
export const signUp = (email: string) =>
  Effect.gen(function* () {
    const registration = yield* Registration
    const keys = yield* KeyRing
    const account = yield* registration.open(email)
    yield* registration.verify(account)
    const { key } = yield* keys.issue(account)
    return Redacted.value(key)
  })

/** Millrace for a host that does not use Effect. */
export interface Mountable {
  /** `(Request) => Promise<Response>` for everything below `/api/v1`, and for `/health` and `/ready`. */
  readonly handle: WebHandler.Handle
  readonly signUp: (email: string) => Promise<string>
  /** Answers new calls with 503, waits for the running ones, and closes the stores. */
  readonly close: () => Promise<void>
}

export const open = async (upstreams?: Parameters<typeof services>[0]): Promise<Mountable> => {
  const runtime = ManagedRuntime.make(services(upstreams))
  const scope = Scope.makeUnsafe()
  const { handle } = await runtime.runPromise(Scope.provide(WebHandler.make(Http.layer(api)), scope))
  return {
    handle,
    signUp: (email) => runtime.runPromise(signUp(email)),
    close: async () => {
      await runtime.runPromise(Scope.close(scope, Exit.void))
      await runtime.dispose()
    }
  }
}

/** The URL of a listening server. */
export const urlOf = (server: Pick<Server, "address">): string => {
  const address = server.address()
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
}

interface Closable {
  readonly close: (whenClosed: () => void) => unknown
  readonly closeIdleConnections?: () => void
  readonly closeAllConnections?: () => void
}

/** Accepts no new connections, waits for running calls, and gives the last replies a second to be sent. */
export const shutDown = async (server: Closable, close: Mountable["close"]): Promise<void> => {
  const closed = new Promise<void>((resolve) => server.close(resolve))
  await close()
  server.closeIdleConnections?.()
  const linger = setTimeout(() => server.closeAllConnections?.(), 1_000)
  await closed
  clearTimeout(linger)
}

/** Serves a mount until Ctrl-C, and prints an example call. */
export const demonstrate = async (
  mount: (millrace: Mountable, port: number) => Promise<{ readonly url: string; readonly stop: () => Promise<void> }>
) => {
  const millrace = await open()
  const { url, stop } = await mount(millrace, 8787)
  console.log(`curl -i ${url}/api/v1/bin/45717360 -H 'Authorization: Bearer ${await millrace.signUp("ada@example.com")}'`)
  process.once("SIGINT", stop)
}
