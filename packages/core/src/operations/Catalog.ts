/** The operations of this host, one by one: whatever there is to know about all of them derives from this list. */

import type { Aggregate } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema } from "effect"
import { type NotPriced, PriceBook } from "../billing/PricePlan.ts"
import * as Credits from "../Credits.ts"
import type * as Operation from "./Operation.ts"

/** One operation as a caller may want to know it. */
export const CatalogEntry = Schema.Struct({
  key: Schema.String,
  summary: Schema.String,
  method: Schema.String,
  path: Schema.String,
  /** Credits for each unit, in force now. */
  price: Credits.CreditsFromDecimal,
  priceVersion: Schema.Int,
  /** JSON Schema of what it takes, by the place where it is given. */
  input: Schema.Struct({ params: Schema.Unknown, query: Schema.Unknown, body: Schema.Unknown })
})
export type CatalogEntry = typeof CatalogEntry.Type

export class Catalog extends Context.Service<
  Catalog,
  {
    readonly operations: ReadonlyArray<Operation.Any>
    readonly find: (key: string) => Operation.Any | undefined
    /** Every operation with the price in force. */
    readonly entries: Effect.Effect<ReadonlyArray<CatalogEntry>, NotPriced | Aggregate.Failure>
  }
>()("@millrace/core/operations/Catalog") {
  /** Two operations of one key are a defect. */
  static readonly layer = (operations: ReadonlyArray<Operation.Any>): Layer.Layer<Catalog, never, PriceBook> =>
    Layer.effect(
      Catalog,
      Effect.gen(function* () {
        const prices = yield* PriceBook
        const byKey = new Map(operations.map((operation) => [operation.key, operation]))
        if (byKey.size < operations.length) throw new Error("Two operations have the same key")
        return Catalog.of({
          operations,
          find: (key) => byKey.get(key),
          entries: Effect.forEach(operations, (operation) =>
            Effect.map(prices.quote(operation.key), ({ version, unitPrice }) => describe(operation, version, unitPrice))
          )
        })
      })
    )
}

const describe = ({ key, summary, route }: Operation.Any, priceVersion: number, price: Credits.Credits): CatalogEntry => ({
  key,
  summary,
  method: route.method,
  path: route.path,
  price,
  priceVersion,
  input: { params: bounds(route.params), query: bounds(route.query), body: bounds(route.body) }
})

/** By itself: what it refers to is among its own `$defs`. */
const bounds = (fields: Schema.Struct.Fields): unknown => {
  // Effect's schema of no fields is that of anything at all
  if (Object.keys(fields).length === 0) return { type: "object", properties: {} }
  const { schema, definitions } = Schema.toJsonSchemaDocument(Schema.toType(Schema.Struct(fields)))
  return Object.keys(definitions).length === 0 ? schema : { ...schema, $defs: definitions }
}
