/**
 * The search over offers: a document for each product page, derived from the prices that hosts read. What callers claim is in streams of
 * another category, and is not part of it.
 */
import { EventHandlers, type TextIndex, type TextProjection, wordsOf } from "@millrace/event-sourcing"
import { Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import * as Offer from "./Offer.ts"
import * as PriceSeries from "./PriceSeries.ts"
import * as Product from "./Product.ts"

/** The newest price of the product, or of one of its variants. */
const VariantPrice = Schema.Struct({
  /** Null for the product as a whole. */
  variant: Schema.NullOr(Schema.String),
  price: PriceSeries.Price,
  currency: Schema.NullOr(Schema.String),
  at: Schema.Int
})
export type VariantPrice = typeof VariantPrice.Type

/** A product page. */
const Page = Schema.Struct({
  title: Schema.String,
  url: Schema.String,
  /** Each variant once, those that were observed last at the end. */
  prices: Schema.Array(VariantPrice)
})
export type Page = typeof Page.Type

/** The variants of a page that are kept. */
const MOST_VARIANTS = 100

const decodePage = Schema.decodeUnknownSync(Page)

export const pageOf = ({ value }: TextIndex.Document): Page => decodePage(JSON.parse(value))

const documentOf = (id: string, page: Page): TextIndex.Document => {
  const { prices, title } = page
  const variants = prices.flatMap(({ variant }) => (variant === null ? [] : wordsOf(variant)))
  return {
    id,
    // Each word of a variant once: a product of many variants is not more of each of them
    text: [title, ...new Set(variants)].join(" "),
    keys: [],
    weight: Math.max(...prices.map(({ at }) => at)),
    value: JSON.stringify(page)
  }
}

type Offered = typeof Product.ProductEvent.Type & { readonly offer?: Offer.Offer }

/** The page after an observation. The newest price of each variant stands; what no history would show any more is left out. */
const observed = (before: Page | undefined, { currency, price }: Offered, offer: Offer.Offer, at: Timestamp): Page => {
  const variant = offer.variant ?? null
  const known = before?.prices.find((each) => each.variant === variant)
  // Streams are apart, and so are the clocks of their hosts
  if (before !== undefined && known !== undefined && known.at > at) return before
  const others = before?.prices.filter((each) => each.variant !== variant && PriceSeries.isKept(each.at, at)) ?? []
  return { title: offer.title, url: offer.url, prices: [...others, { variant, price, currency, at }].slice(-MOST_VARIANTS) }
}

const idOf = (offer: Offer.Offer): string => Product.idOf(Offer.productOf(offer))

const onlyWith = { onlyWith: { PriceObserved: "offer" } } as const

const touches = EventHandlers.of<Product.ProductEvent, [], ReadonlyArray<string>>(
  Product.Product,
  { PriceObserved: ({ offer }) => (offer === undefined ? [] : [idOf(offer)]) },
  onlyWith
)

const evolves = EventHandlers.of<Product.ProductEvent, [documents: TextProjection.Documents], void>(
  Product.Product,
  {
    PriceObserved: (event, { at }, documents) => {
      if (event.offer === undefined) return
      const id = idOf(event.offer)
      const before = documents.get(id)
      documents.set(id, documentOf(id, observed(before && pageOf(before), event, event.offer, at)))
    }
  },
  onlyWith
)

export const definition: TextProjection.Definition = {
  name: "offers",
  version: 1,
  categories: touches.categories,
  types: touches.types,
  touches: (event) => touches.dispatch(event) ?? [],
  evolve: (event, documents) => evolves.dispatch(event, documents)
}
