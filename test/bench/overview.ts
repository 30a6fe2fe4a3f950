/** What the overview of the web tool reads, for an account of a million events, each time after another call. */
import { join } from "node:path"
import {
  AccountActivity,
  AccountBilling,
  AccountCalls,
  Credits,
  Decisions,
  Ledger,
  MasterKey,
  Millrace,
  newReservationId
} from "@millrace/core"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer, Redacted } from "effect"
import * as ledgers from "./ledgers.ts"
import { median, withFolder } from "./measure.ts"

const EVENTS = 1_000_000
const READS = 200
/** The aim for all three together, milliseconds. */
const AIM = 50

const operations = [AccountBilling.read, AccountActivity.read, AccountCalls.list]

const measured = Effect.fnUntraced(function* (account: string) {
  const ledger = yield* Ledger
  const caller = { accountId: account, requestId: "bench", reservationId: "res_bench" }
  const reads = {
    balance: Effect.suspend(() => AccountBilling.read.run({}, caller)),
    days: Effect.suspend(() => AccountActivity.read.run({}, caller)),
    calls: Effect.suspend(() => AccountCalls.list.run({ limit: 8 }, caller))
  }
  const times: Record<string, Array<number>> = { balance: [], days: [], calls: [], all: [] }
  // The first fold of the month is bounded in time and goes on with the next request
  const first = performance.now()
  for (let reads = 0; reads < 20; reads++) {
    const { data } = yield* AccountActivity.read.run({}, caller)
    if (data.days.length > 1) break
  }
  const folded = performance.now() - first
  for (let read = 0; read < READS; read++) {
    const reservationId = yield* newReservationId
    const call = { reservationId, requestId: "bench", operation: "bin.lookup", quantity: 1, priceVersion: 1, unitPrice: Credits.of(500) }
    yield* ledger.execute(account, Decisions.reserve({ ...call, lifetime: 60_000 }))
    yield* ledger.execute(account, Decisions.settle({ reservationId, replyHash: "0".repeat(43) }))
    let all = 0
    for (const [name, effect] of Object.entries(reads)) {
      const began = performance.now()
      yield* effect as Effect.Effect<unknown>
      const took = performance.now() - began
      times[name]?.push(took)
      all += took
    }
    times["all"]?.push(all)
  }
  const rounded = (value: number) => Number(value.toFixed(2))
  return [
    { read: "the first fold of the month, once", "median ms": rounded(folded), "p99 ms": Number.NaN, aim: "" },
    ...Object.entries(times).map(([read, values]) => ({
      read,
      "median ms": rounded(median(values)),
      "p99 ms": rounded(values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Number.NaN),
      aim: read === "all" ? `${AIM} ms` : ""
    }))
  ]
})

export const run = () =>
  withFolder(async (folder) => {
    const stores = Layer.mergeAll(
      SqliteEventStore.layer({ filename: join(folder, "log.db") }),
      SqliteStateStore.layer({ filename: join(folder, "state.db") }),
      Layer.succeed(MasterKey, Redacted.make(new Uint8Array(32)))
    )
    const [account = ""] = await Effect.runPromise(Effect.provide(ledgers.write(EVENTS, 1), stores))
    return Effect.runPromise(
      measured(account).pipe(Effect.provide(Layer.provideMerge(Millrace.layer({ operations }), Layer.fresh(stores))), Effect.orDie)
    )
  })
