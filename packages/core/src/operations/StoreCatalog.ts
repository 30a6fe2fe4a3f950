/** The public catalog of an online shop whose platform publishes it at `/products.json`, as Shopify's does. */
import { BigDecimal, Context, Effect, Schema } from "effect"
import { CatalogPrices } from "../prices/CatalogPrices.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, type NotFound, type UpstreamUnavailable } from "../work/OperationError.ts"
import { LAST_PAGE } from "./CommonLimits.ts"
import { domainName } from "./Dns.ts"

/** A decimal such as `19.90`, as the shop wrote it. Its currency is the shop's, which the catalog does not tell. */
export const Price = Schema.String.check(Schema.isPattern(/^\d{1,15}(?:\.\d{1,6})?$/u, { expected: "a decimal price such as 19.90" }))

export const Variant = Schema.Struct({
  id: Schema.Int,
  title: Schema.String,
  price: Price,
  sku: Schema.NullOr(Schema.String),
  /** Whether it can be bought now. */
  available: Schema.Boolean
})

export const Product = Schema.Struct({
  id: Schema.Int,
  title: Schema.String,
  /** The product's name in addresses: it is at `/products/{handle}`. */
  handle: Schema.String,
  vendor: Schema.String,
  product_type: Schema.String,
  created_at: Schema.String,
  /** Null if it was not published yet. */
  published_at: Schema.NullOr(Schema.String),
  /** URLs. */
  images: Schema.Array(Schema.String),
  variants: Schema.Array(Variant)
})
export type Product = typeof Product.Type

export const Catalog = Schema.Struct({
  /** In lower case and ASCII. */
  domain: Schema.String,
  /** Products of this page; this and the next two fields are of what was read, not of the whole shop. */
  total_products: Schema.Int,
  /** Of all variants; null without any. */
  price_range: Schema.NullOr(
    Schema.Struct({
      min: Price,
      max: Price,
      /** The mean, each variant counted once, with as many decimals as the price that has most, rounded half to even. */
      avg: Price
    })
  ),
  /** What was published last, at its lowest price; null if nothing was. */
  newest_product: Schema.NullOr(
    Schema.Struct({
      id: Schema.Int,
      title: Schema.String,
      handle: Schema.String,
      published_at: Schema.String,
      price: Schema.NullOr(Price)
    })
  ),
  products: Schema.Array(Product)
})
export type Catalog = typeof Catalog.Type

export interface Page {
  /** By {@link domainName}. */
  readonly domain: string
  readonly limit: number
  readonly page: number
}

export class StoreCatalogs extends Context.Service<
  StoreCatalogs,
  {
    /** `NotFound` if there is no shop of such a platform at a public address. Isolated `UpstreamUnavailable` if it does not answer. */
    readonly products: (page: Page) => Effect.Effect<Operation.Read<ReadonlyArray<Product>>, NotFound | UpstreamUnavailable>
  }
>()("@millrace/core/operations/StoreCatalog") {}

// summaries

const decimal = BigDecimal.fromStringUnsafe

/** The prices as numbers, in their order. */
const sorted = (prices: ReadonlyArray<string>): ReadonlyArray<readonly [text: string, value: BigDecimal.BigDecimal]> =>
  prices.map((text) => [text, decimal(text)] as const).sort(([, a], [, b]) => BigDecimal.Order(a, b))

const decimalsOf = (price: string): number => price.split(".")[1]?.length ?? 0

/** The mean of at least one price, with as many decimals as the price that has most, rounded half to even. */
export const mean = (prices: ReadonlyArray<string>): string => {
  const scale = Math.max(...prices.map(decimalsOf))
  // Exact beyond any doubt about a half: the quotient has a hundred digits
  const quotient = BigDecimal.divideUnsafe(BigDecimal.sumAll(prices.map(decimal)), BigDecimal.make(BigInt(prices.length), 0))
  const { value } = BigDecimal.scale(BigDecimal.round(quotient, { scale, mode: "half-even" }), scale)
  const digits = value.toString().padStart(scale + 1, "0")
  return scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

const rangeOf = (products: ReadonlyArray<Product>): Catalog["price_range"] => {
  const prices = products.flatMap(({ variants }) => variants.map(({ price }) => price))
  const inOrder = sorted(prices)
  const [min, max] = [inOrder[0], inOrder.at(-1)]
  return min === undefined || max === undefined ? null : { min: min[0], max: max[0], avg: mean(prices) }
}

const newestOf = (products: ReadonlyArray<Product>): Catalog["newest_product"] => {
  let newest: Catalog["newest_product"] = null
  for (const { handle, id, published_at, title, variants } of products) {
    if (published_at === null || (newest !== null && !(Date.parse(published_at) > Date.parse(newest.published_at)))) continue
    newest = { id, title, handle, published_at, price: sorted(variants.map(({ price }) => price))[0]?.[0] ?? null }
  }
  return newest
}

export const catalogOf = (domain: string, products: ReadonlyArray<Product>): Catalog => ({
  domain,
  total_products: products.length,
  price_range: rangeOf(products),
  newest_product: newestOf(products),
  products
})

/** Products of a page, for calls that do not say. */
const LIMIT = 30

export const read = Operation.make("storeCatalog.read", {
  summary: "Read the catalog of an online shop",
  description:
    "Shops of the platform publish their catalog, in pages. Prices are decimals as the shop wrote them, in its own currency. Where there is no " +
    "such shop, the answer is 404. A page may be one that was read a moment ago, if the shop allows that; `X-Cache` says so.",
  price: 1.5,
  cached: true,
  route: {
    method: "GET",
    path: "/ecommerce/storeplatform/catalog",
    query: {
      domain: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(255)),
      /** 30 by default. */
      limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 250 }))),
      page: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: LAST_PAGE })))
    }
  },
  success: Catalog,
  check: ({ domain }) =>
    domainName(domain) === undefined
      ? Effect.fail(new InvalidInput({ field: "domain", message: 'must be a domain name such as "shop.example.com"' }))
      : Effect.void,
  run: Effect.fnUntraced(function* ({ domain: given, limit = LIMIT, page = 1 }) {
    const domain = domainName(given) ?? given
    const { cache, data } = yield* StoreCatalogs.use((catalogs) => catalogs.products({ domain, limit, page }))
    // What was kept is yesterday's price, perhaps
    if (cache === "miss") yield* CatalogPrices.use((prices) => prices.read(domain, data))
    return { data: catalogOf(domain, data), cache }
  }),
  example: {
    input: { domain: "shop.example.com", limit: 1 },
    data: {
      domain: "shop.example.com",
      total_products: 1,
      price_range: { min: "19.90", max: "24.95", avg: "22.42" },
      newest_product: { id: 7, title: "Mug", handle: "mug", published_at: "2026-01-22T12:00:00+01:00", price: "19.90" },
      products: [
        {
          ...{ id: 7, title: "Mug", handle: "mug", vendor: "Potter", product_type: "Kitchen" },
          ...{ created_at: "2026-01-21T12:00:00+01:00", published_at: "2026-01-22T12:00:00+01:00" },
          images: ["https://cdn.example.com/mug.jpg"],
          variants: [
            { id: 8, title: "Blue", price: "19.90", sku: "MUG-1", available: true },
            { id: 9, title: "Gold", price: "24.95", sku: null, available: false }
          ]
        }
      ]
    }
  }
})
