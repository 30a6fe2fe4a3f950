/**
 * What a catalog that was read tells of prices. It is recorded behind the answer, so that the caller does not wait for it: a price is written
 * once a day at most, and a catalog that is not recorded now is with its next reading.
 */
import { Context, Effect, Layer, Queue } from "effect"
import { getDomain } from "tldts"
import { type Observation, PriceObservations } from "./PriceObservations.ts"
import * as PriceSeries from "./PriceSeries.ts"

/** Of a product, what its prices need. */
export interface CatalogProduct {
  /** The product is at `/products/{handle}`. */
  readonly handle: string
  readonly title: string
  readonly variants: ReadonlyArray<{
    readonly id: number
    readonly title: string
    /** An exact decimal. */
    readonly price: string
    readonly sku: string | null
  }>
}

/** Catalogs that wait to be recorded, at most. Further ones are left out. */
const CATALOGS = 100

/** What the platform calls the only variant of a product that has no variants. */
const NO_VARIANT = "Default Title"

/**
 * Each variant under its id, its page and its SKU, and the product under its address at the price of its cheapest variant. The store is the registrable
 * domain, as it is for a caller who names a product by its URL. A variant without a name of its own is offered as the product alone.
 */
export const observationsOf = (domain: string, products: ReadonlyArray<CatalogProduct>): ReadonlyArray<Observation> => {
  const store_id = getDomain(domain, { allowPrivateDomains: true }) ?? domain
  return products.flatMap(({ handle, title, variants }) => {
    const url = `https://${domain}/products/${handle}`
    const each = variants.map(({ id, price, sku, title: variant }) => ({
      names: [
        { variant_id: String(id), store_id },
        // The page as a visitor who chose the variant has it
        { url: `${url}?variant=${id}` },
        ...(sku === null || sku === "" ? [] : [{ sku, store_id }])
      ],
      price,
      currency: null,
      ...(variant === NO_VARIANT ? {} : { offer: { title, url, variant } })
    }))
    if (variants.length === 0) return each
    const cheapest = variants.map(({ price }) => price).reduce((least, price) => (PriceSeries.compare(price, least) < 0 ? price : least))
    return [...each, { names: [{ url }], price: cheapest, currency: null, offer: { title, url } }]
  })
}

/** A catalog as it was read. */
type Catalog = Parameters<typeof observationsOf>

const make = Effect.gen(function* () {
  const prices = yield* PriceObservations
  const queue = yield* Effect.acquireRelease(Queue.dropping<Catalog>(CATALOGS), Queue.shutdown)
  const recorded = (catalog: Catalog) =>
    Effect.catchCause(prices.record(observationsOf(...catalog)), (cause) =>
      Effect.logWarning("The prices of a catalog were not recorded", cause)
    )
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Queue.take(queue), recorded)))
  return {
    /** Records the prices of a catalog that was read just now, soon. */
    read: (...catalog: Catalog): Effect.Effect<void> => Effect.sync(() => void Queue.offerUnsafe(queue, catalog))
  }
})

export class CatalogPrices extends Context.Service<CatalogPrices, Effect.Success<typeof make>>()("@millrace/core/prices/CatalogPrices") {
  static readonly layer: Layer.Layer<CatalogPrices, never, PriceObservations> = Layer.effect(this, make)
}
