/** Appends to KurrentDB whose request or answer is lost on the way, over real sockets: see `Script.ts`. */
import { KurrentDb, KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { FaultProxy } from "@millrace/testing"
import { Effect } from "effect"
import { it } from "vitest"
import { KurrentDbStandIn } from "../../packages/event-store-kurrentdb/test/standin/index.ts"
import { DEADLINE, LOSSES, surviveAll } from "./Script.ts"

const storeAt = (port: number, options: { readonly deadline?: number } = {}) =>
  Effect.flatMap(KurrentDb.make({ connection: `kurrentdb://127.0.0.1:${port}?tls=false`, ...options }), (db) =>
    Effect.provideService(KurrentDbEventStore.make, KurrentDb.KurrentDb, db)
  )

const open = Effect.gen(function* () {
  const node = yield* KurrentDbStandIn.serve()
  const proxy = yield* FaultProxy.make(node.port)
  return { proxy, store: yield* storeAt(proxy.port, { deadline: DEADLINE }), direct: yield* storeAt(node.port) }
})

it.each(Object.entries(LOSSES))("%s, of each append in turn: all is decided once", (_, loss) => surviveAll(open, loss), 120_000)
