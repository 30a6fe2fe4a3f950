/** The offers of products by their names: prices that hosts on this log read in the last 120 days. */
import { type EventStore, MemoryTextIndex, TextIndex, TextProjection } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import { shopOf, titleOf } from "./Offer.ts"
import { definition, type Page, pageOf, type VariantPrice } from "./OfferSearch.ts"
import * as PriceSeries from "./PriceSeries.ts"
import { ofWords, type Words, wordsIn } from "./TitleSimilarity.ts"

/** A product at the newest price that was read. */
export interface Found {
  /** With the variant, where the price is that of one variant alone. */
  readonly title: string
  /** The domain of the shop. */
  readonly shop: string
  /** The page of the product. */
  readonly url: string
  /** An exact decimal, see `PriceSeries.Price`. */
  readonly price: string
  /** ISO 4217; null where the shop did not tell. */
  readonly currency: string | null
  readonly observedAt: Timestamp
  /** Of the title to the asked name: `TitleSimilarity.similarity`. */
  readonly similarity: number
}

type Failure = TextIndex.TextIndexUnavailable | TextProjection.TextProjectionStopped
type CatchUpFailure = Effect.Error<ReturnType<TextProjection.TextProjection["caughtUp"]>>

export class Offers extends Context.Service<
  Offers,
  {
    /**
     * Offers whose title has words of the name, the most similar first, and of equally similar ones that which was read last; one of each
     * product. The name must have a word: without one, any offers are found.
     */
    readonly search: (name: string, limit: number) => Effect.Effect<ReadonlyArray<Found>, Failure>
    /** Waits until the search has every price that was recorded before. */
    readonly caughtUp: Effect.Effect<void, CatchUpFailure>
    /** The status of the search: for `/ready`. */
    readonly searchStatus: Effect.Effect<TextProjection.Status>
  }
>()("@millrace/core/prices/Offers") {
  static readonly layer: Layer.Layer<Offers, never, EventStore.EventStore> = Layer.effect(
    Offers,
    Effect.suspend(() => make)
  )
}

/**
 * Products that the index finds and that are compared exactly. More are looked at where too few of the first ones have a price that is not
 * too old.
 */
const CANDIDATES = [100, 1_000] as const

/**
 * The variant whose title is most similar; of several, that which was read last. Undefined if no price that is new enough has a word of the
 * name: the index found the product by a variant whose price is too old.
 */
const bestOf = ({ prices, title, url }: Page, words: Words, now: Timestamp): Found | undefined => {
  let best: (VariantPrice & { readonly similarity: number }) | undefined
  for (const each of prices) {
    if (!PriceSeries.isKept(each.at, now)) continue
    const similarity = ofWords(words, wordsIn(titleOf(title, each.variant)))
    if (similarity === 0) continue
    if (best === undefined || similarity > best.similarity || (similarity === best.similarity && each.at >= best.at))
      best = { ...each, similarity }
  }
  if (best === undefined) return undefined
  const { at, currency, price, similarity, variant } = best
  return { title: titleOf(title, variant), shop: shopOf(url), url, price, currency, observedAt: at, similarity }
}

const mostSimilar = (a: Found, b: Found): number =>
  b.similarity - a.similarity || b.observedAt - a.observedAt || (a.url < b.url ? -1 : a.url > b.url ? 1 : 0)

const make = Effect.gen(function* () {
  const index = Option.getOrUndefined(yield* Effect.serviceOption(TextIndex.TextIndex)) ?? (yield* MemoryTextIndex.make)
  const texts = yield* Effect.provideService(TextProjection.make(definition), TextIndex.TextIndex, index)
  return Offers.of({
    search: Effect.fn("Offers.search")(function* (name, limit) {
      const now = yield* Clock.currentTimeMillis
      const words = wordsIn(name)
      let offers: ReadonlyArray<Found> = []
      for (const candidates of CANDIDATES) {
        const found = yield* texts.search({ text: name, match: "any", limit: candidates })
        offers = found.flatMap((document) => bestOf(pageOf(document), words, now) ?? [])
        if (offers.length >= limit || found.length < candidates) break
      }
      return offers.toSorted(mostSimilar).slice(0, limit)
    }),
    caughtUp: texts.caughtUp(),
    searchStatus: texts.status
  })
})
