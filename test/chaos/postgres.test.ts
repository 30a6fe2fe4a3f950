/** Appends to PostgreSQL whose request or answer is lost on the way, over real sockets: see `Script.ts`. */
import { PostgresEventStore } from "@millrace/event-store-postgres"
import { FaultProxy } from "@millrace/testing"
import { Effect } from "effect"
import { it } from "vitest"
import { schema } from "../../packages/event-store-postgres/test/Postgres.ts"
import { DEADLINE, LOSSES, surviveAll } from "./Script.ts"

const open = Effect.gen(function* () {
  const options = { ...(yield* schema), listenUrl: false as const }
  const direct = yield* PostgresEventStore.make(options)
  const url = new URL(options.url)
  const proxy = yield* FaultProxy.make(Number(url.port))
  url.port = `${proxy.port}`
  return { proxy, direct, store: yield* PostgresEventStore.make({ ...options, url: url.href, deadline: DEADLINE }) }
})

it.each(Object.entries(LOSSES))("%s, of each append in turn: all is decided once", (_, loss) => surviveAll(open, loss), 120_000)
