/** The service of observed prices: records what was read and what callers claim, and tells the history of a product. */
import { Aggregate, type EventStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer } from "effect"
import { Vault } from "../vault/Vault.ts"
import { type Offer, offerOf } from "./Offer.ts"
import * as PriceSeries from "./PriceSeries.ts"
import * as Product from "./Product.ts"
import { identityOf, type ProductNames } from "./ProductIdentity.ts"

/** A price that this host read. */
export interface Observation {
  /** Names of the product. It gets a history under each of them; one that names nothing is left out. */
  readonly names: ReadonlyArray<ProductNames>
  /** An exact decimal such as `19.90`, see `PriceSeries.Price`. */
  readonly price: string
  /** ISO 4217; null where the shop did not tell. */
  readonly currency: string | null
  /**
   * Who sells it, so that the price is found by the name of the product. An offer without a title, or without an http or https address, is
   * left out.
   */
  readonly offer?: Offer
}

/** Streams that are written at once. */
const CONCURRENCY = 32

const PURPOSE = "price-claims"

const make = Effect.gen(function* () {
  const vault = yield* Vault
  const snapshots = { version: 1, state: PriceSeries.Series }
  const products = yield* Aggregate.make(Product.Product, { snapshots })
  const claims = yield* Aggregate.make(Product.PriceClaims, { snapshots })
  const claimsId = (accountId: string, identity: string): string => vault.hmac(PURPOSE, JSON.stringify([accountId, identity]))

  return {
    /** Records prices that this host read in a public catalog. They count for every caller. */
    record: Effect.fn("PriceObservations.record")(function* (observations: ReadonlyArray<Observation>, metadata?: Aggregate.Metadata) {
      const each = observations.flatMap(({ currency, names, offer, price }) => {
        const identities = [...new Set(names.map(identityOf))].filter((identity) => identity !== undefined)
        const sold = offer && offerOf(offer)
        // One name is enough to find it
        return identities.map((identity, i) => ({ identity, price, currency, offer: i === 0 ? sold : undefined }))
      })
      yield* Effect.forEach(
        each,
        ({ currency, identity, offer, price }) =>
          products.execute(Product.idOf(identity), Product.observe(price, currency, offer), metadata),
        { concurrency: CONCURRENCY, discard: true }
      )
    }),
    /** Records a price that a caller claims. It counts in the history of this account alone. */
    claim: (accountId: string, identity: string, price: string): Effect.Effect<void, Aggregate.Failure> =>
      Effect.asVoid(claims.execute(claimsId(accountId, identity), Product.claim(price))),
    /** The newest price of a product that was read, with the revision of its event; undefined before the first. */
    newest: Effect.fn("PriceObservations.newest")(function* (productId: string) {
      const { revision, state } = yield* products.read(productId)
      return state.last === null ? undefined : { price: state.last.price, currency: state.currency, revision }
    }),
    /** What this host read and what the account claimed, of the last `timeframe` days. */
    history: Effect.fn("PriceObservations.history")(function* (accountId: string, identity: string, timeframe: number) {
      const observed = yield* products.read(Product.idOf(identity))
      const claimed = yield* claims.read(claimsId(accountId, identity))
      return PriceSeries.summaryOf(PriceSeries.merge(observed.state, claimed.state), timeframe, yield* Clock.currentTimeMillis)
    }),
    /** Products and claims whose streams this host cannot read: for `/ready`. */
    refused: () => [...products.refused(), ...claims.refused()]
  }
})

export class PriceObservations extends Context.Service<PriceObservations, Effect.Success<typeof make>>()(
  "@millrace/core/prices/PriceObservations"
) {
  static readonly layer: Layer.Layer<PriceObservations, never, Vault | EventStore.EventStore> = Layer.effect(this, make)
}
