/**
 * The coupons of one shop: what accounts submit, what becomes of it, and whether it worked for those who tried. Stream
 * `couponStore-{domain}`, or `couponStore-~{SHA-256 of the domain}` for a domain of more than 200 characters.
 *
 * Accounts are named by authors: random ids that only the account's own key leads to, so an erased account's submissions are anonymous.
 */
import { hash } from "node:crypto"
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { HashMap, Option, Result, Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"
import { MOST_REPORTS, type Report } from "./CouponRank.ts"

const LONGEST_ID = 200

/** The id of the stream of a domain. */
export const idOf = (domain: string): string => (domain.length <= LONGEST_ID ? domain : `~${hash("sha256", domain, "base64url")}`)

/** Codes are compared without spaces and in upper case. */
export const canonicalCode = (code: string): string => code.normalize("NFKC").replaceAll(/\s+/gu, "").toUpperCase()

/** The id of a coupon: the same for every submission of one code for one shop, or for one seller of a marketplace. */
export const couponIdOf = (domain: string, code: string, shopUsername: string | null): string =>
  `cpn_${hash("sha256", JSON.stringify([domain, canonicalCode(code), shopUsername?.toLowerCase() ?? null]), "base64url").slice(0, 26)}`

// events

/** What a coupon promises. */
export const Terms = {
  couponId: Schema.String,
  domain: Schema.String,
  /** In canonical form. */
  code: Schema.String,
  description: Schema.String,
  /** Such as `20% off`. */
  discountText: Schema.String,
  /** From then on the coupon is gone; null if it does not end. */
  expiresAt: Schema.NullOr(Timestamp),
  /** The one seller of a marketplace whose goods it is for; null for all of the shop. */
  shopUsername: Schema.NullOr(Schema.String),
  /** The least sum of an order, in the shop's currency; null for none. */
  minimumOrder: Schema.NullOr(Schema.Finite)
}
export type Terms = Schema.Struct.Type<typeof Terms>

/** Percent, from 0 to 100. */
const Cashback = Schema.Struct({ minPercent: Schema.Finite, maxPercent: Schema.Finite })

/** What the host's operators say of a shop. */
export const Description = {
  domain: Schema.String,
  name: Schema.NullOr(Schema.String),
  affiliateUrl: Schema.NullOr(Schema.String),
  cashback: Schema.NullOr(Cashback)
}
export type Description = Schema.Struct.Type<typeof Description>

export const CouponStoreEvent = Schema.TaggedUnion({
  /** An account asks the operators for this shop: once for each account. */
  CouponStoreRequested: { domain: Schema.String, by: Schema.String },
  CouponStoreDescribed: Description,
  /** A new coupon, or one that had expired and is promised again. It is pending. */
  CouponSubmitted: { ...Terms, by: Schema.String },
  /** By an operator, or by the host's policy. */
  CouponAccepted: { couponId: Schema.String },
  CouponRejected: { couponId: Schema.String, reason: Schema.String },
  /** An account tried the coupon. Its newest report counts. `discount`: percent that it saved. */
  CouponOutcomeReported: {
    couponId: Schema.String,
    by: Schema.String,
    worked: Schema.Boolean,
    discount: Schema.NullOr(Schema.Int)
  }
})
export type CouponStoreEvent = typeof CouponStoreEvent.Type
type EventOf<Tag extends CouponStoreEvent["_tag"]> = Extract<CouponStoreEvent, { readonly _tag: Tag }>

// state

export type Status = "pending" | "accepted" | "rejected"

export interface Coupon extends Terms {
  readonly by: string
  readonly submittedAt: Timestamp
  readonly status: Status
  /** Why it was rejected. */
  readonly reason: string | null
  /** The newest report of each account, oldest first; at most {@link MOST_REPORTS}. */
  readonly reports: ReadonlyArray<Report>
}

export interface CouponStore {
  readonly description: Description | undefined
  /** Those who asked for the shop, at most {@link MOST_REQUESTS}. */
  readonly requestedBy: ReadonlyArray<string>
  readonly coupons: HashMap.HashMap<string, Coupon>
}

export type CouponEvent = EventOf<"CouponSubmitted" | "CouponAccepted" | "CouponRejected" | "CouponOutcomeReported">

const decided = (coupon: Coupon, status: Status, reason: string | null): Coupon => {
  if (coupon.status === status) throw new Error(`A coupon is ${status} once`)
  return { ...coupon, status, reason }
}

const reported = (coupon: Coupon, report: Report): Coupon => ({
  ...coupon,
  reports: [...coupon.reports.filter(({ by }) => by !== report.by), report].slice(-MOST_REPORTS)
})

/** Folds an event of a coupon: here, and in the search. */
export const evolveCoupon = (coupon: Coupon | undefined, event: CouponEvent, at: Timestamp): Coupon => {
  if (event._tag === "CouponSubmitted") {
    if (coupon !== undefined && (coupon.expiresAt === null || at < coupon.expiresAt))
      throw new Error("A coupon is submitted once until it expires")
    const { _tag: _, ...submitted } = event
    return { ...submitted, submittedAt: at, status: "pending", reason: null, reports: coupon?.reports ?? [] }
  }
  if (coupon === undefined) throw new Error("A coupon is submitted first")
  if (event._tag === "CouponAccepted") return decided(coupon, "accepted", null)
  if (event._tag === "CouponRejected") return decided(coupon, "rejected", event.reason)
  const { by, discount, worked } = event
  return reported(coupon, { by, worked, discount, at, own: by === coupon.by })
}

const evolve = (store: CouponStore, event: CouponStoreEvent, at: Timestamp): CouponStore => {
  if (event._tag === "CouponStoreRequested") return { ...store, requestedBy: [...store.requestedBy, event.by] }
  if (event._tag === "CouponStoreDescribed") {
    const { _tag: _, ...description } = event
    return { ...store, description }
  }
  const before = Option.getOrUndefined(HashMap.get(store.coupons, event.couponId))
  return { ...store, coupons: HashMap.set(store.coupons, event.couponId, evolveCoupon(before, event, at)) }
}

export const CouponStore: Decider<CouponStore, CouponStoreEvent> = {
  category: "couponStore",
  codec: EventCodec.make(CouponStoreEvent),
  initial: { description: undefined, requestedBy: [], coupons: HashMap.empty() },
  evolve
}

// refusals

/** Coupons of one account that may be pending at a shop. */
export const MOST_PENDING = 10
/** Coupons of a shop that are not expired. */
export const MOST_COUPONS = 2_000
/** Requests of a shop that are counted. Later ones change nothing. */
export const MOST_REQUESTS = 1_000

/** The account has as many pending coupons at this shop as it may, or the shop has as many coupons as it may. */
export class TooManyCoupons extends Schema.TaggedError<TooManyCoupons>()("TooManyCoupons", { limit: Schema.Int }) {
  override get message(): string {
    return `The limit of ${this.limit} coupons is reached`
  }
}

/** There is no such coupon. */
export class CouponNotFound extends Schema.TaggedError<CouponNotFound>()("CouponNotFound", { couponId: Schema.String }) {
  override get message(): string {
    return `There is no coupon ${this.couponId}`
  }
}

// decisions

/** When the host accepts a coupon by itself: after so many accounts beside its submitter report that it worked. Null: never. */
export type AcceptAfter = number | null

export interface Submission extends Terms {
  readonly by: string
  /** Whether it worked for the submitter; undefined if it was not tried. */
  readonly worked: boolean | undefined
  readonly discount: number | null
}

const DAY = 86_400_000

export const isExpired = ({ expiresAt }: Pick<Coupon, "expiresAt">, now: Timestamp): boolean => expiresAt !== null && expiresAt <= now

/** Whether a report says what the account's last one said less than a day before. */
const isRepeated = ({ reports }: Coupon, { by, discount, worked }: Submission, now: Timestamp): boolean =>
  reports.some((report) => report.by === by && report.worked === worked && report.discount === discount && now - report.at < DAY)

const mayAdd = ({ coupons }: CouponStore, by: string, now: Timestamp): TooManyCoupons | undefined => {
  let [pending, all] = [0, 0]
  for (const coupon of HashMap.values(coupons)) {
    if (isExpired(coupon, now)) continue
    all++
    if (coupon.by === by && coupon.status === "pending") pending++
  }
  if (pending >= MOST_PENDING) return new TooManyCoupons({ limit: MOST_PENDING })
  return all >= MOST_COUPONS ? new TooManyCoupons({ limit: MOST_COUPONS }) : undefined
}

/** The events of one coupon, each decided on the coupon that those before it left. */
class Changes {
  readonly events: Array<CouponEvent> = []
  coupon: Coupon | undefined
  readonly #now: Timestamp

  constructor(coupon: Coupon | undefined, now: Timestamp) {
    this.coupon = coupon
    this.#now = now
  }

  add(event: CouponEvent): Coupon {
    this.events.push(event)
    this.coupon = evolveCoupon(this.coupon, event, this.#now)
    return this.coupon
  }
}

/**
 * Submits a coupon, reports whether it worked, or both. A coupon that is there already is not submitted again, unless it has expired; a
 * rejected one stays rejected.
 */
export const submit =
  ({ worked, discount, ...submitted }: Submission, acceptAfter: AcceptAfter) =>
  (store: CouponStore, now: Timestamp): Decision<CouponStoreEvent, TooManyCoupons> => {
    const changes = new Changes(Option.getOrUndefined(HashMap.get(store.coupons, submitted.couponId)), now)
    if (changes.coupon === undefined || isExpired(changes.coupon, now)) {
      const refusal = mayAdd(store, submitted.by, now)
      if (refusal !== undefined) return Result.fail(refusal)
      changes.add({ _tag: "CouponSubmitted", ...submitted })
    }
    const { couponId, by } = submitted
    if (worked !== undefined && changes.coupon !== undefined && !isRepeated(changes.coupon, { ...submitted, worked, discount }, now))
      changes.add({ _tag: "CouponOutcomeReported", couponId, by, worked, discount })
    if (changes.coupon?.status === "pending" && acceptAfter !== null && confirmationsOf(changes.coupon) >= acceptAfter)
      changes.add({ _tag: "CouponAccepted", couponId })
    return Result.succeed(changes.events)
  }

/** The accounts beside the submitter for which it worked. */
export const confirmationsOf = ({ reports }: Pick<Coupon, "reports">): number => reports.filter(({ own, worked }) => worked && !own).length

/** Asks for a shop. Asking again decides nothing. */
export const request =
  (domain: string, by: string) =>
  ({ requestedBy }: CouponStore): Decision<CouponStoreEvent> =>
    Result.succeed(requestedBy.includes(by) || requestedBy.length >= MOST_REQUESTS ? [] : [{ _tag: "CouponStoreRequested", domain, by }])

/** Describes a shop. The same description decides nothing. */
export const describe =
  (description: Description) =>
  (store: CouponStore): Decision<CouponStoreEvent> =>
    Result.succeed(
      JSON.stringify(store.description) === JSON.stringify(description) ? [] : [{ _tag: "CouponStoreDescribed", ...description }]
    )

const decide =
  (couponId: string, status: Status, event: CouponEvent) =>
  ({ coupons }: CouponStore): Decision<CouponStoreEvent, CouponNotFound> => {
    const coupon = Option.getOrUndefined(HashMap.get(coupons, couponId))
    if (coupon === undefined) return Result.fail(new CouponNotFound({ couponId }))
    return Result.succeed(coupon.status === status ? [] : [event])
  }

/** Shows a coupon to everybody, also one that was rejected before. Accepting again decides nothing. */
export const accept = (couponId: string) => decide(couponId, "accepted", { _tag: "CouponAccepted", couponId })

/** Shows a coupon to nobody, also one that was accepted before. Rejecting again decides nothing. */
export const reject = (couponId: string, reason: string) => decide(couponId, "rejected", { _tag: "CouponRejected", couponId, reason })
