/** Millrace as a host runs it, with one operation that does nothing. */

import { join } from "node:path"
import {
  Charge,
  Credits,
  Decisions,
  Leading,
  Ledger,
  MasterKey,
  Millrace,
  newAccountId,
  newLotId,
  newRequestId,
  Operation,
  PricePlan
} from "@millrace/core"
import { KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { PostgresStateStore, PostgresStores } from "@millrace/event-store-postgres"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer, Logger, Redacted, Schema } from "effect"

export const noop = Operation.make("bench.noop", {
  summary: "Does nothing",
  route: { method: "POST", path: "/bench/noop" },
  success: Schema.Struct({ ok: Schema.Boolean }),
  run: () => Effect.succeed({ data: { ok: true } })
})

const masterKey = Layer.succeed(MasterKey, Redacted.make(new Uint8Array(32)))

export const stores = (folder: string) =>
  Layer.mergeAll(
    SqliteEventStore.layer({ filename: join(folder, "log.db") }),
    SqliteStateStore.layer({ filename: join(folder, "state.db") }),
    masterKey
  )

/** In a schema, by default that of hosts which name none: the hosts of a log follow all its events. */
export const postgresStores = (url: string, schema?: string) =>
  Layer.mergeAll(PostgresStores.layer({ url, ...(schema === undefined ? {} : { schema }) }), masterKey)

/** A log in KurrentDB, and the state beside it in PostgreSQL, which several hosts share. */
export const kurrentDbStores = (connection: string, stateUrl: string) =>
  Layer.mergeAll(KurrentDbEventStore.layer({ connection }), PostgresStateStore.layer({ url: stateUrl }), masterKey)

export const host = (folder: string) => Millrace.layer({ operations: [noop] }).pipe(Layer.provideMerge(stores(folder)))

export const postgresHost = (url: string) => Millrace.layer({ operations: [noop] }).pipe(Layer.provideMerge(postgresStores(url)))

/** One of several hosts on a PostgreSQL of which one leads each account. Their log is one of their own. They print nothing among the figures. */
export const leadingHost = (url: string) =>
  Leading.layer([noop], { address: { host: "127.0.0.1", port: 0 } }).pipe(
    Layer.provideMerge(Millrace.layer({ operations: [noop] })),
    Layer.provideMerge(postgresStores(url, "leaders")),
    Layer.provide(Logger.layer([]))
  )

export const kurrentDbHost = (connection: string, stateUrl: string) =>
  Millrace.layer({ operations: [noop] }).pipe(Layer.provideMerge(kurrentDbStores(connection, stateUrl)))

/** Accounts with more credits than a benchmark can spend. */
export const openAccounts = (count: number, operation: string = noop.key) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const prices = yield* PricePlan.PriceBook
    yield* prices.publish({ [operation]: Credits.of(500) })
    return yield* Effect.forEach(
      Array.from({ length: count }),
      () =>
        Effect.gen(function* () {
          const id = yield* newAccountId
          const lotId = yield* newLotId
          yield* ledger.execute(id, Decisions.open({ sealedEmail: "", emailHash: "" }))
          yield* ledger.execute(id, Decisions.grant({ lotId, amount: Credits.of(1e12), source: "promotion" }))
          return id
        }),
      { concurrency: 256 }
    )
  })

export const charge = Effect.fnUntraced(function* (accountId: string) {
  const charges = yield* Charge.Charge
  const requestId = yield* newRequestId
  yield* charges.run(noop, {}, { accountId, requestId })
})

/** Charges a second of `clients`, each at accounts at random, one after another. */
export const chargesASecond = (ids: ReadonlyArray<string>, clients: number, millis: number) =>
  Effect.gen(function* () {
    let done = 0
    const began = performance.now()
    const client = Effect.gen(function* () {
      while (performance.now() - began < millis) {
        yield* charge(ids[(Math.random() * ids.length) | 0] ?? "")
        done++
      }
    })
    yield* Effect.forEach(Array.from({ length: clients }), () => client, { concurrency: "unbounded", discard: true })
    return (done / (performance.now() - began)) * 1000
  })
