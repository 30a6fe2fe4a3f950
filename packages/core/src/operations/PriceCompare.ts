/** Offers of related products, and how far their prices are from the caller's. */
import { BigDecimal, Effect, Schema } from "effect"
import { type Found, Offers } from "../prices/Offers.ts"
import * as PriceSeries from "../prices/PriceSeries.ts"
import { wordsIn } from "../prices/TitleSimilarity.ts"
import { Timestamp } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, UpstreamUnavailable } from "../work/OperationError.ts"

/** The highest price that a caller may name. */
const MAX_PRICE = 1_000_000_000_000
/** Offers, for calls that do not say. */
const LIMIT = 10

/** ISO 4217; null where the shop does not tell. */
const Currency = Schema.NullOr(Schema.String)

const Offer = Schema.Struct({
  /** What the shop calls the product, with its variant where the price is that of one variant alone. */
  title: Schema.String,
  /** The domain of the shop. */
  shop: Schema.String,
  /** The page of the product. */
  url: Schema.String,
  /** The newest that was read, in `currency`. */
  price: Schema.Finite,
  currency: Currency,
  observed_at: Timestamp,
  /**
   * From 0 to 1, rounded to four decimals: twice the number of words that the title and the asked name share, by the sum of their words (the
   * Sørensen–Dice coefficient). Each word counts once, without case and accents, in any order.
   */
  similarity: Schema.Finite,
  /** This price less the given one, as if that were in the currency of this offer; null where no price was given. */
  difference: Schema.NullOr(Schema.Finite)
})

const Comparison = Schema.Struct({
  /** The name that was given. */
  query: Schema.String,
  /** As it was given; null where none was. */
  price: Schema.NullOr(Schema.Finite),
  /** Those of the offers, each once, the unknown one as null. */
  currencies: Schema.Array(Currency),
  /** Whether all offers are known to be in one currency. Where it is false, their amounts cannot be compared with each other. */
  same_currency: Schema.Boolean,
  /** Of the items. */
  total_matches: Schema.Int,
  /** The most similar first; of equally similar ones, that which was read last. */
  items: Schema.Array(Offer)
})

const differenceOf = (price: string, given: string | undefined): number | null =>
  given === undefined
    ? null
    : Number(BigDecimal.format(BigDecimal.subtract(BigDecimal.fromStringUnsafe(price), BigDecimal.fromStringUnsafe(given))))

const shown =
  (given: string | undefined) =>
  ({ currency, observedAt, price, shop, similarity, title, url }: Found): typeof Offer.Type => ({
    ...{ title, shop, url, price: Number(price), currency, observed_at: observedAt },
    similarity: Math.round(similarity * 10_000) / 10_000,
    difference: differenceOf(price, given)
  })

const unavailable = ({ _tag: reason }: { readonly _tag: string }) => new UpstreamUnavailable({ upstream: "prices", reason, isolated: true })

export const compare = Operation.make("prices.compare", {
  summary: "Compare the prices of a product at several shops",
  description:
    "Offers whose titles have words of `name`: related products, not necessarily the same one. The prices are those that this service read in " +
    "catalogs of shops in the last 120 days, the newest of each product. `difference` is the price of an offer less the `price` that you give, as if " +
    "yours were in the currency of that offer; amounts are never converted. `currency` is null where the shop does not tell its currency. Nothing of " +
    "the call is noted.",
  price: 1,
  local: true,
  route: {
    method: "POST",
    path: "/products/price-compare",
    body: {
      /** Of the product, as a shop calls it. */
      name: Schema.String.check(Schema.isMinCodePoints(3), Schema.isMaxCodePoints(500)),
      /** What the caller knows it to cost: at most six decimals. */
      price: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: MAX_PRICE }))),
      /** Offers at most: 10 by default. */
      limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })))
    }
  },
  success: Comparison,
  check: ({ name, price }) => {
    const refused = (field: string, message: string) => Effect.fail(new InvalidInput({ field, message }))
    if (wordsIn(name).size === 0) return refused("name", "must have a letter or a digit")
    return price !== undefined && PriceSeries.priceOf(price) === undefined
      ? refused("price", "must have at most six decimals")
      : Effect.void
  },
  run: Effect.fnUntraced(function* ({ limit = LIMIT, name, price }) {
    const found = yield* Effect.mapError(
      Offers.use(({ search }) => search(name, limit)),
      unavailable
    )
    const currencies = [...new Set(found.map(({ currency }) => currency))]
    return {
      data: {
        ...{ query: name, price: price ?? null, currencies },
        same_currency: currencies.length === 1 && currencies[0] !== null,
        total_matches: found.length,
        items: found.map(shown(price === undefined ? undefined : PriceSeries.priceOf(price)))
      }
    }
  }),
  example: {
    input: { name: "Stoneware mug blue", price: 21.5, limit: 10 },
    data: {
      ...{ query: "Stoneware mug blue", price: 21.5, currencies: [null], same_currency: false, total_matches: 1 },
      items: [
        {
          ...{ title: "Mug - Blue", shop: "shop.example.com", url: "https://shop.example.com/products/mug", price: 19.9, currency: null },
          ...{ observed_at: Date.UTC(2026, 0, 22, 12), similarity: 0.8, difference: -1.6 }
        }
      ]
    }
  }
})
