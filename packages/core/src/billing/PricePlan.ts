/**
 * The price plan: versions of a price list, each published before it comes into force. A hold records its version, so an auditor can
 * recompute every charge. Stream `pricePlan-{planId}`; amounts in thousandths of a credit for each unit.
 */

import { Aggregate, type Decider, type Decision, EventCodec, EventStore, StreamName } from "@millrace/event-sourcing"
import { Context, Effect, Exit, Layer, Result, Schema } from "effect"
import * as Credits from "../Credits.ts"
import * as Money from "../Money.ts"
import { Timestamp } from "../Timestamp.ts"

// events

export const Prices = Schema.Record(Schema.String, Credits.Credits)
export type Prices = typeof Prices.Type

export const PricePlanEvent = Schema.TaggedUnion({
  PricePlanPublished: {
    /** From 1, by one. */
    version: Schema.Int,
    effectiveAt: Timestamp,
    /** All prices from then on, by operation key. */
    prices: Prices,
    /** The prices that stand in the operations of a host, where the host published them. */
    own: Schema.optionalKey(Prices)
  }
})
export type PricePlanEvent = typeof PricePlanEvent.Type

// state

export type PriceList = Omit<PricePlanEvent, "_tag">

/** Versions in the order of publication. */
export type PricePlan = ReadonlyArray<PriceList>

export const PricePlan: Decider<PricePlan, PricePlanEvent> = {
  category: "pricePlan",
  codec: EventCodec.make(PricePlanEvent),
  initial: [],
  evolve: (plan, { _tag: _, ...list }) => [...plan, list]
}

/** The newest version that is in force at an instant. */
export const inForce = (plan: PricePlan, now: Timestamp): PriceList | undefined => plan.findLast(({ effectiveAt }) => effectiveAt <= now)

// decisions

/** A version may not come into force before it is published, nor before the version that it follows. */
export class EffectiveTooEarly extends Schema.TaggedError<EffectiveTooEarly>()("EffectiveTooEarly", { earliest: Timestamp }) {
  override get message(): string {
    return `Prices cannot come into force before ${new Date(this.earliest).toISOString()}`
  }
}

/** The price exceeds {@link MAX_UNIT_PRICE}. */
export class PriceTooHigh extends Schema.TaggedError<PriceTooHigh>()("PriceTooHigh", {
  operation: Schema.String,
  limit: Credits.Credits
}) {
  messageIn(money: Money.Money): string {
    return `The price of ${this.operation} may be at most ${Money.text(this.limit, money)} for each unit`
  }
  override get message(): string {
    return this.messageIn(Money.STANDARD)
  }
}

/** The most units of a call at the highest price: more than any operation accepts. */
export const MAX_QUANTITY = 1_000_000
/** The highest price of a unit: {@link MAX_QUANTITY} of them are the largest amount. A million credits, or $1,000. */
export const MAX_UNIT_PRICE = Credits.of(Credits.MAXIMUM / MAX_QUANTITY)

/** Publishes changed prices; the others stay. Decides nothing if no price changes. */
export const publish =
  (changes: Prices, effectiveAt?: Timestamp) =>
  (plan: PricePlan, now: Timestamp): Decision<PricePlanEvent, EffectiveTooEarly | PriceTooHigh> => {
    const tooHigh = Object.entries(changes).find(([, price]) => price > MAX_UNIT_PRICE)
    if (tooHigh !== undefined) return Result.fail(new PriceTooHigh({ operation: tooHigh[0], limit: MAX_UNIT_PRICE }))
    const last = plan.at(-1)
    const earliest = Math.max(now, last?.effectiveAt ?? 0)
    const from = effectiveAt ?? earliest
    if (from < earliest) return Result.fail(new EffectiveTooEarly({ earliest }))
    if (last !== undefined && Object.entries(changes).every(([operation, price]) => last.prices[operation] === price))
      return Result.succeed([])
    const prices = { ...last?.prices, ...changes }
    return Result.succeed([{ _tag: "PricePlanPublished", version: (last?.version ?? 0) + 1, effectiveAt: from, prices }])
  }

/** The prices that stand in operations, in thousandths. */
export const ownOf = (operations: Iterable<{ readonly key: string; readonly price?: number }>): Prices =>
  Object.fromEntries(
    [...operations].flatMap(({ key, price }) => (price === undefined ? [] : [[key, Credits.of(Math.round(price * 1000))]]))
  )

/** The versions that are announced at an instant and will come into force, in that order. */
const announced = (plan: PricePlan, now: Timestamp): PricePlan =>
  plan.filter(({ effectiveAt }, i) => effectiveAt > now && plan.slice(i + 1).every((newer) => newer.effectiveAt > effectiveAt))

/**
 * Publishes the prices that stand in a host's operations: of an operation that the plan does not have, and of one whose own price has changed
 * since it was last published. Any other price in the plan stays: it was published over the operation's own. They are in force at once. A
 * version that is announced is published again with them, for the same time.
 */
export const publishOwn =
  (own: Prices) =>
  (plan: PricePlan, now: Timestamp): Decision<PricePlanEvent, PriceTooHigh> => {
    const before = plan.findLast((list) => list.own !== undefined)?.own ?? {}
    const changed = Object.entries(own).filter(([operation, price]) => before[operation] !== price)
    if (changed.length === 0) return Result.succeed([])
    const tooHigh = changed.find(([, price]) => price > MAX_UNIT_PRICE)
    if (tooHigh !== undefined) return Result.fail(new PriceTooHigh({ operation: tooHigh[0], limit: MAX_UNIT_PRICE }))
    const withOwn = (prices: Prices): Prices => ({
      ...prices,
      ...Object.fromEntries(changed.filter(([operation]) => prices[operation] === undefined || before[operation] !== undefined))
    })
    const lists = [{ effectiveAt: now, prices: inForce(plan, now)?.prices ?? {} }, ...announced(plan, now)]
    return Result.succeed(
      lists.map(({ effectiveAt, prices }, i) => ({
        _tag: "PricePlanPublished",
        version: (plan.at(-1)?.version ?? 0) + 1 + i,
        effectiveAt,
        prices: withOwn(prices),
        own: { ...before, ...own }
      }))
    )
  }

// service

/** No version in force has a price for this operation. Publish one before the operation is called. */
export class NotPriced extends Schema.TaggedError<NotPriced>()("NotPriced", { operation: Schema.String }) {
  override get message(): string {
    return `The operation ${this.operation} has no price`
  }
}

export interface Price {
  readonly version: number
  readonly unitPrice: Credits.Credits
}

/** A price, and the condition under which it is the one in force: that its plan is still the newest. */
export interface ConditionalPrice extends Price {
  readonly condition: EventStore.Condition
}

/** By the plan's time, not the host's: a host with a slow clock must use the newest prices in force. */
const priceIn = ({ at, state }: Aggregate.Current<PricePlan>, operation: string): Exit.Exit<Price, NotPriced> => {
  const list = inForce(state, at)
  const unitPrice = list?.prices[operation]
  return list === undefined || unitPrice === undefined
    ? Exit.fail(new NotPriced({ operation }))
    : Exit.succeed({ version: list.version, unitPrice })
}

/** The only plan so far. */
const PLAN_ID = "standard"

const conditional = (plan: Aggregate.Current<PricePlan>, operation: string): Exit.Exit<ConditionalPrice, NotPriced> => {
  const stream = StreamName.make(PricePlan.category, PLAN_ID)
  const condition = { stream, expected: EventStore.expectedOf(plan.revision) }
  return Exit.map(priceIn(plan, operation), (price) => ({ ...price, condition }))
}

const make = Effect.fnUntraced(function* (own: Prices) {
  const plans = yield* Aggregate.make(PricePlan)
  yield* plans.execute(PLAN_ID, publishOwn(own), { actor: "millrace", reason: "the operations' own prices" })

  return {
    /** All versions, in the order of publication. */
    plan: Effect.map(plans.read(PLAN_ID), ({ state }) => state),
    /** The price in force of one unit of an operation. */
    quote: (operation: string): Effect.Effect<ConditionalPrice, NotPriced | Aggregate.Failure> =>
      Effect.flatMap(plans.read(PLAN_ID), (plan) => conditional(plan, operation)),
    /** {@link quote} at once. Undefined if the store has to be waited for. */
    quoteNow: (operation: string): Exit.Exit<Price, NotPriced> | undefined => {
      const plan = plans.readNow(PLAN_ID)
      return plan && priceIn(plan, operation)
    },
    /** {@link quote} by the plan in memory, unconfirmed. Undefined if no plan is in memory, or the operation has no price in it. */
    assume: (operation: string): ConditionalPrice | undefined => {
      const plan = plans.assume(PLAN_ID)
      const price = plan && conditional(plan, operation)
      return price !== undefined && Exit.isSuccess(price) ? price.value : undefined
    },
    /** Publishes changed prices, at once by default. Returns all versions. */
    publish: (changes: Prices, effectiveAt?: Timestamp, metadata?: Aggregate.Metadata) =>
      Effect.map(plans.execute(PLAN_ID, publish(changes, effectiveAt), metadata), ({ state }) => state)
  }
})

type MakeError = PriceTooHigh | Aggregate.Failure

export class PriceBook extends Context.Service<PriceBook, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/core/billing/PricePlan/PriceBook"
) {
  /** Publishes the prices that stand in a host's operations: see {@link publishOwn} and {@link ownOf}. */
  static readonly layerOf = (own: Prices): Layer.Layer<PriceBook, MakeError, EventStore.EventStore> => Layer.effect(PriceBook, make(own))
  /** Publishes nothing. */
  static readonly layer: Layer.Layer<PriceBook, MakeError, EventStore.EventStore> = Layer.suspend(() => PriceBook.layerOf({}))
}
