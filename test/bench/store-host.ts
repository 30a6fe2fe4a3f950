/** One host of the stores' benchmark, as a process of its own: opens accounts and charges them when it is told to, and answers with the rate. */
import "effect/schema/SchemaJITCompiler/enable"
import { randomUUID } from "node:crypto"
import type { Charge, Ledger, PricePlan } from "@millrace/core"
import { type Layer, ManagedRuntime, Schema } from "effect"
import * as ByHand from "./by-hand.ts"
import { chargesASecond, host, kurrentDbHost, leadingHost, openAccounts, postgresHost } from "./host.ts"

/** Where it keeps its accounts, and how. */
export const Place = Schema.Union([
  Schema.TaggedStruct("SQLite", { folder: Schema.String }),
  Schema.TaggedStruct("PostgreSQL", { url: Schema.String }),
  Schema.TaggedStruct("Leaders", { url: Schema.String }),
  Schema.TaggedStruct("KurrentDB", { connection: Schema.String, stateUrl: Schema.String }),
  Schema.TaggedStruct("ByHand", { url: Schema.String })
])
export type Place = typeof Place.Type

export const Told = Schema.Union([
  Schema.TaggedStruct("Open", { count: Schema.Int }),
  Schema.TaggedStruct("Charge", { ids: Schema.Array(Schema.String), clients: Schema.Int, millis: Schema.Number })
])
export type Told = typeof Told.Type

export const Answer = Schema.Union([
  Schema.TaggedStruct("Ready", {}),
  Schema.TaggedStruct("Opened", { ids: Schema.Array(Schema.String) }),
  Schema.TaggedStruct("Charged", { rate: Schema.Number })
])
export type Answer = typeof Answer.Type

interface Host {
  readonly open: (count: number) => Promise<ReadonlyArray<string>>
  /** Charges a second. */
  readonly charge: (ids: ReadonlyArray<string>, clients: number, millis: number) => Promise<number>
  readonly close: () => Promise<void>
}

const byHand = (url: string): Host => {
  const accounts = ByHand.open(url)
  return {
    open: async (count) => {
      const ids = Array.from({ length: count }, () => randomUUID())
      await ByHand.create(url, ids)
      return ids
    },
    charge: async (ids, clients, millis) => {
      let done = 0
      const began = performance.now()
      const client = async () => {
        while (performance.now() - began < millis) {
          await accounts.charge(ids[(Math.random() * ids.length) | 0] ?? "", "bench.noop", 500)
          done++
        }
      }
      await Promise.all(Array.from({ length: clients }, client))
      return (done / (performance.now() - began)) * 1000
    },
    close: accounts.close
  }
}

const millrace = (layer: Layer.Layer<Charge.Charge | Ledger | PricePlan.PriceBook, unknown>): Host => {
  const runtime = ManagedRuntime.make(layer)
  return {
    open: (count) => runtime.runPromise(openAccounts(count)),
    charge: (ids, clients, millis) => runtime.runPromise(chargesASecond(ids, clients, millis)),
    close: () => runtime.dispose()
  }
}

const hostAt = (place: Place): Host => {
  switch (place._tag) {
    case "SQLite":
      return millrace(host(place.folder))
    case "PostgreSQL":
      return millrace(postgresHost(place.url))
    case "Leaders":
      return millrace(leadingHost(place.url))
    case "KurrentDB":
      return millrace(kurrentDbHost(place.connection, place.stateUrl))
    case "ByHand":
      return byHand(place.url)
  }
}

const answer = (message: Answer) => void process.send?.(message)

if (process.send !== undefined) {
  const here = hostAt(Schema.decodeUnknownSync(Schema.fromJsonString(Place))(process.argv[2]))
  const heed = async (told: Told): Promise<Answer> =>
    told._tag === "Open"
      ? { _tag: "Opened", ids: await here.open(told.count) }
      : { _tag: "Charged", rate: await here.charge(told.ids, told.clients, told.millis) }
  // What fails ends the process, and with it the benchmark
  process.on("message", async (message) => answer(await heed(Schema.decodeUnknownSync(Told)(message))))
  // Let go, or left alone
  process.once("disconnect", () => void here.close().finally(() => process.exit()))
  answer({ _tag: "Ready" })
}
