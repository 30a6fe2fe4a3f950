/** What a product cost on each of the last days. */
import { Effect, Schema } from "effect"
import { PriceObservations } from "../prices/PriceObservations.ts"
import * as PriceSeries from "../prices/PriceSeries.ts"
import { identityOf, type ProductNames } from "../prices/ProductIdentity.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, UpstreamUnavailable } from "../work/OperationError.ts"
import { checkWebAddress } from "./WebAddress.ts"

/** In the currency of the shop. */
const Amount = Schema.Finite
const Identifier = Schema.optionalKey(Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(64)))

/** The highest price that a caller may name. */
const MAX_PRICE = 1_000_000_000_000

const TIMEFRAME = 30

const History = Schema.Struct({
  /** As they were given; null where they were not. */
  variant_id: Schema.NullOr(Schema.String),
  store_id: Schema.NullOr(Schema.String),
  /** In days, today (UTC) included. */
  timeframe: Schema.Int,
  /** The newest price of the timeframe; null, as are the following, if none was observed. */
  current_price: Schema.NullOr(Amount),
  lowest_price: Schema.NullOr(Amount),
  highest_price: Schema.NullOr(Amount),
  /** The highest price less the current one. */
  drop_amount: Schema.NullOr(Amount),
  /** The same in percent of the highest price, rounded half to even to two decimals. */
  drop_percent: Schema.NullOr(Schema.Finite),
  /** Days of `history` whose range is not that of the day before them in the list. */
  total_changes: Schema.Int,
  /** Days of `history`. */
  points_count: Schema.Int,
  /** The days on which a price was observed, the oldest first. */
  history: Schema.Array(
    Schema.Struct({
      /** UTC, such as `2026-01-22`. */
      date: Schema.String,
      low: Amount,
      high: Amount
    })
  )
})

interface Input extends ProductNames {
  readonly price?: number
}

const invalid = (field: string, message: string) => Effect.fail(new InvalidInput({ field, message }))

const check = Effect.fnUntraced(function* (input: Input) {
  const { price, url, variant_id } = input
  if (url !== undefined) yield* checkWebAddress("url", url)
  if (price !== undefined && PriceSeries.priceOf(price) === undefined) return yield* invalid("price", "must have at most six decimals")
  if (identityOf(input) !== undefined) return
  if (variant_id !== undefined) return yield* invalid("store_id", "is required with variant_id, or the url of the product")
  return yield* invalid("url", "is required, or one of asin, sku, and variant_id with store_id")
})

const numberOf = (price: string | null): number | null => (price === null ? null : Number(price))

const unavailable = ({ _tag }: { readonly _tag: string }) => new UpstreamUnavailable({ upstream: "prices", reason: _tag, isolated: true })

export const read = Operation.make("prices.history", {
  summary: "Read the price history of a product",
  description:
    "The product is named by `asin`, by `variant_id` with `store_id` or `url`, by `sku`, or by `url` alone, in this order. The prices are those that " +
    "this service read in catalogs of shops. A `price` that you give is noted for today, and is seen in your own history only. The list is empty for a " +
    "product whose price was never observed.",
  price: 0.5,
  local: true,
  route: {
    method: "GET",
    path: "/products/price-history",
    query: {
      url: Schema.optionalKey(Schema.String.check(Schema.isMaxCodePoints(2048))),
      asin: Identifier,
      sku: Identifier,
      variant_id: Identifier,
      store_id: Identifier,
      /** 30 by default. */
      timeframe: Schema.optionalKey(Schema.Literals(PriceSeries.TIMEFRAMES)),
      /** What the product costs now, as the caller sees it. */
      price: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: MAX_PRICE })))
    }
  },
  success: History,
  check,
  run: Effect.fnUntraced(function* (input, { accountId }) {
    const { price, store_id = null, timeframe = TIMEFRAME, variant_id = null } = input
    const identity = identityOf(input)
    if (identity === undefined) return yield* invalid("url", "names no product")
    const observations = yield* PriceObservations
    const claimed = price === undefined ? undefined : PriceSeries.priceOf(price)
    if (claimed !== undefined) yield* Effect.mapError(observations.claim(accountId, identity, claimed), unavailable)
    const summary = yield* Effect.mapError(observations.history(accountId, identity, timeframe), unavailable)
    return {
      data: {
        variant_id,
        store_id,
        timeframe,
        current_price: numberOf(summary.current),
        lowest_price: numberOf(summary.lowest),
        highest_price: numberOf(summary.highest),
        drop_amount: numberOf(summary.drop),
        drop_percent: numberOf(summary.dropPercent),
        total_changes: summary.changes,
        points_count: summary.days.length,
        history: summary.days.map(({ day, high, low }) => ({ date: PriceSeries.dateOf(day), low: Number(low), high: Number(high) }))
      }
    }
  }),
  example: {
    input: { url: "https://shop.example.com/products/mug", timeframe: 30 },
    data: {
      ...{ variant_id: null, store_id: null, timeframe: 30, current_price: 19.9, lowest_price: 19.9, highest_price: 24.95 },
      ...{ drop_amount: 5.05, drop_percent: 20.24, total_changes: 1, points_count: 2 },
      history: [
        { date: "2026-01-21", low: 24.95, high: 24.95 },
        { date: "2026-01-22", low: 19.9, high: 24.95 }
      ]
    }
  }
})
