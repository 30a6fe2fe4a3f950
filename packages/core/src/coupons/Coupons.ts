/** Coupons of shops: submitted by accounts, decided by operators or by a policy, searched by everybody. */
import { Aggregate, type EventStore, MemoryTextIndex, type StateStore, TextIndex, TextProjection, wordsOf } from "@millrace/event-sourcing"
import { Clock, Context, Effect, HashMap, Layer, Option } from "effect"
import { getDomain } from "tldts"
import type { Timestamp } from "../Timestamp.ts"
import type { Vault } from "../vault/Vault.ts"
import * as Authors from "./Authors.ts"
import * as Contributions from "./Contributions.ts"
import { rankOf } from "./CouponRank.ts"
import { couponOf, definition, isCoupon, KEYS, type Shop, shopId, shopOf } from "./CouponSearch.ts"
import * as CouponStore from "./CouponStore.ts"

export interface CouponsOptions {
  /**
   * Accepts a coupon without an operator, after so many accounts beside its submitter report that it worked; 0 accepts it at once. By
   * default operators decide on each.
   */
  readonly acceptAfter?: number
}

/** What an account submits. Terms by their names in {@link CouponStore.Terms}. */
export interface Submission extends Omit<CouponStore.Terms, "couponId"> {
  readonly worked?: boolean | undefined
  readonly discount?: number | undefined
}

export interface Submitted {
  readonly coupon: CouponStore.Coupon
  /** Whether the coupon was there before. */
  readonly isDuplicate: boolean
}

/** Which coupons to search. */
export interface Query {
  /** Of this shop, or else of the nearest domain above it that has any. */
  readonly domain?: string | undefined
  /** Words of the shop's name or domain, where no domain is given. */
  readonly store?: string | undefined
  /** What is bought. It selects coupons where no shop is given, and otherwise orders those of the shop. */
  readonly products?: ReadonlyArray<string>
  /** The seller of a marketplace. Coupons of other sellers are left out, and without it those of any one seller. */
  readonly shopUsername?: string | undefined
  /** The sum of the order, in the shop's currency. Coupons that need more are left out. */
  readonly total?: number | undefined
}

export interface Ranked extends CouponStore.Coupon {
  readonly rank: number
}

export interface Found {
  /** Undefined if no shop was asked for. */
  readonly domain: string | undefined
  readonly shop: Shop | undefined
  /** The best first. */
  readonly coupons: ReadonlyArray<Ranked>
}

type SearchFailure = TextIndex.TextIndexUnavailable | TextProjection.TextProjectionStopped
type Decided = Effect.Effect<CouponStore.Coupon, CouponStore.CouponNotFound | SearchFailure | CatchUpFailure | Aggregate.Failure>
type CatchUpFailure = Effect.Error<ReturnType<TextProjection.TextProjection["caughtUp"]>>
type Contributed<A, E = never> = Effect.Effect<
  A,
  E | Contributions.DailyLimitReached | Authors.Failure | StateStore.StateUnavailable | Aggregate.Failure
>

export class Coupons extends Context.Service<
  Coupons,
  {
    readonly submit: (accountId: string, submission: Submission) => Contributed<Submitted, CouponStore.TooManyCoupons>
    /** Asks the operators for a shop. Returns how many accounts did. */
    readonly request: (accountId: string, domain: string) => Contributed<number>
    readonly search: (query: Query) => Effect.Effect<Found, SearchFailure>
    /** Coupons that wait for a decision, those with the most confirmations first. */
    readonly pending: (limit?: number) => Effect.Effect<ReadonlyArray<CouponStore.Coupon>, SearchFailure | CatchUpFailure>
    /** Shops that accounts asked for and that have no coupons, the most wanted first. */
    readonly requested: (limit?: number) => Effect.Effect<ReadonlyArray<Shop>, SearchFailure | CatchUpFailure>
    readonly accept: (couponId: string, metadata?: Aggregate.Metadata) => Decided
    readonly reject: (couponId: string, reason: string, metadata?: Aggregate.Metadata) => Decided
    /** Says what a shop is called, and what it gives. */
    readonly describe: (description: CouponStore.Description, metadata?: Aggregate.Metadata) => Effect.Effect<void, Aggregate.Failure>
    /** Waits until the search has everything that was written before. */
    readonly caughtUp: Effect.Effect<void, CatchUpFailure>
    /** Shops whose streams this host cannot read, and the status of the search: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
    readonly searchStatus: Effect.Effect<TextProjection.Status>
  }
>()("@millrace/core/coupons/Coupons") {
  /** The search is in the host's `TextIndex`; without one, in memory. */
  static readonly layer = (
    options: CouponsOptions = {}
  ): Layer.Layer<Coupons, never, Vault | EventStore.EventStore | StateStore.StateStore> => Layer.effect(Coupons, make(options))
}

/** The most coupons of a shop, and of all shops, that are ranked. */
const CANDIDATES = { ofShop: 1_000, ofAll: 100 } as const

const LISTED = 100

/** The most domains that are looked at for one. */
const LEVELS = 6

/**
 * The domain and those above it, up to the one that its owner registered. What is above that, such as `co.uk`, belongs to others: its coupons
 * are no coupons of this shop.
 */
const nearest = (domain: string): ReadonlyArray<string> => {
  const registered = getDomain(domain, { allowPrivateDomains: true })
  if (registered === null) return [domain]
  const above = domain.split(".").length - registered.split(".").length
  return Array.from({ length: Math.min(above + 1, LEVELS) }, (_, i) => domain.split(".").slice(i).join("."))
}

const isSeller = ({ shopUsername }: CouponStore.Coupon, asked: string | undefined): boolean =>
  shopUsername === null || shopUsername.toLowerCase() === asked?.toLowerCase()

const isAllowed = ({ minimumOrder }: CouponStore.Coupon, total: number | undefined): boolean =>
  minimumOrder === null || total === undefined || total >= minimumOrder

/** The share of the words of what is bought that a coupon mentions. */
const mentions = (words: ReadonlySet<string>, { description, discountText }: CouponStore.Coupon): number => {
  const own = new Set(wordsOf(`${discountText} ${description}`))
  return words.size === 0 ? 0 : [...words].filter((word) => own.has(word)).length / words.size
}

/** Those that can be used now. A coupon that mentions all of what is bought counts as one of twice its rank. */
const ranked = (coupons: ReadonlyArray<CouponStore.Coupon>, query: Query, now: Timestamp): ReadonlyArray<Ranked> => {
  const words = new Set(wordsOf((query.products ?? []).join(" ")))
  return coupons
    .filter((one) => !CouponStore.isExpired(one, now) && isSeller(one, query.shopUsername) && isAllowed(one, query.total))
    .map((coupon) => ({ coupon: { ...coupon, rank: rankOf(coupon.reports, now) }, mentioned: mentions(words, coupon) }))
    .sort(
      (a, b) =>
        b.coupon.rank * (1 + b.mentioned) - a.coupon.rank * (1 + a.mentioned) ||
        b.mentioned - a.mentioned ||
        b.coupon.submittedAt - a.coupon.submittedAt ||
        (a.coupon.couponId < b.coupon.couponId ? -1 : 1)
    )
    .map(({ coupon }) => coupon)
}

/** The searches over the text index. */
const searching = (texts: TextProjection.TextProjection) => {
  const shopOfDomain = (domain: string) =>
    Effect.map(texts.get([shopId(CouponStore.idOf(domain))]), (found) => [...found.values()].map(shopOf)[0])

  const ofShop = Effect.fnUntraced(function* (domain: string, query: Query, now: Timestamp) {
    for (const one of nearest(domain)) {
      const found = yield* texts.search({ keys: [KEYS.live, KEYS.of(one)], limit: CANDIDATES.ofShop })
      const coupons = ranked(found.map(couponOf), query, now)
      if (coupons.length > 0) return { domain: one, shop: yield* shopOfDomain(one), coupons }
    }
    return { domain, shop: yield* shopOfDomain(domain), coupons: [] }
  })

  return Effect.fn("Coupons.search")(function* (query: Query) {
    const now = yield* Clock.currentTimeMillis
    if (query.domain !== undefined) return yield* ofShop(query.domain, query, now)
    if (query.store !== undefined) {
      const [best] = yield* texts.search({ text: query.store, keys: [KEYS.shop], limit: 1 })
      return best === undefined || wordsOf(query.store).length === 0
        ? { domain: undefined, shop: undefined, coupons: [] }
        : yield* ofShop(shopOf(best).domain, query, now)
    }
    const text = (query.products ?? []).join(" ")
    const keys = wordsOf(text).length === 0 ? [KEYS.live] : []
    const found = yield* texts.search({ text, match: "any", keys, limit: CANDIDATES.ofAll })
    return { domain: undefined, shop: undefined, coupons: ranked(found.filter(isCoupon).map(couponOf), query, now) }
  })
}

const make = Effect.fnUntraced(function* ({ acceptAfter }: CouponsOptions) {
  const stores = yield* Aggregate.make(CouponStore.CouponStore)
  const authorOf = yield* Authors.make
  const admit = yield* Contributions.make
  const index = Option.getOrUndefined(yield* Effect.serviceOption(TextIndex.TextIndex)) ?? (yield* MemoryTextIndex.make)
  const texts = yield* Effect.provideService(TextProjection.make(definition), TextIndex.TextIndex, index)

  const couponIn = (store: CouponStore.CouponStore, couponId: string) =>
    Effect.mapError(Effect.fromOption(HashMap.get(store.coupons, couponId)), () => new CouponStore.CouponNotFound({ couponId }))

  /** The coupon of an id, wherever it is. */
  const decide = (couponId: string, decision: ReturnType<typeof CouponStore.accept>, metadata?: Aggregate.Metadata): Decided =>
    Effect.gen(function* () {
      yield* texts.caughtUp()
      const document = (yield* texts.get([couponId])).get(couponId)
      if (document === undefined || !isCoupon(document)) return yield* new CouponStore.CouponNotFound({ couponId })
      const { state } = yield* stores.execute(CouponStore.idOf(couponOf(document).domain), decision, metadata)
      return yield* couponIn(state, couponId)
    })

  const listed = (key: string, limit: number) => Effect.andThen(texts.caughtUp(), texts.search({ keys: [key], limit }))

  return Coupons.of({
    submit: Effect.fn("Coupons.submit")(function* (accountId, { discount, worked, ...terms }: Submission) {
      yield* admit(accountId)
      const by = yield* authorOf(accountId)
      const couponId = CouponStore.couponIdOf(terms.domain, terms.code, terms.shopUsername)
      const submission = { ...terms, code: CouponStore.canonicalCode(terms.code), couponId, by, worked, discount: discount ?? null }
      const decision = CouponStore.submit(submission, acceptAfter ?? null)
      const { events, state } = yield* stores.execute(CouponStore.idOf(terms.domain), decision)
      const coupon = yield* Effect.orDie(couponIn(state, couponId))
      return { coupon, isDuplicate: !events.some(({ _tag }) => _tag === "CouponSubmitted") }
    }),
    request: Effect.fn("Coupons.request")(function* (accountId, domain) {
      yield* admit(accountId)
      const by = yield* authorOf(accountId)
      const { state } = yield* stores.execute(CouponStore.idOf(domain), CouponStore.request(domain, by))
      return state.requestedBy.length
    }),
    search: searching(texts),
    pending: (limit = LISTED) => Effect.map(listed(KEYS.pending, limit), (found) => found.map(couponOf)),
    requested: (limit = LISTED) => Effect.map(listed(KEYS.requested, limit), (found) => found.map(shopOf)),
    accept: (couponId, metadata) => decide(couponId, CouponStore.accept(couponId), metadata),
    reject: (couponId, reason, metadata) => decide(couponId, CouponStore.reject(couponId, reason), metadata),
    describe: (description, metadata) =>
      Effect.asVoid(stores.execute(CouponStore.idOf(description.domain), CouponStore.describe(description), metadata)),
    caughtUp: texts.caughtUp(),
    refused: stores.refused,
    searchStatus: texts.status
  })
})
