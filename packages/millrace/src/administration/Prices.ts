/** Acts on the price plan. Prices in credits for each unit. */
import { Credits, PricePlan, toIso } from "@millrace/core"
import { type Aggregate, EventStore, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, Stream } from "effect"
import { type Failure, fail } from "../Failure.ts"
import * as SettingNames from "../SettingNames.ts"
import type { Act } from "./Act.ts"

/** A version of the price plan. */
export interface PriceVersion {
  readonly version: number
  readonly effectiveAt: Date
  readonly inForce: boolean
  readonly prices: Readonly<Record<string, number>>
}

export interface Published {
  readonly version: number
  readonly effectiveAt: Date
  /** False if every price stood already. */
  readonly published: boolean
  readonly changes: ReadonlyArray<{ readonly operation: string; readonly from: number | null; readonly to: number }>
}

const { codec, evolve, initial } = PricePlan.PricePlan

const plan = Effect.flatMap(EventStore.EventStore, (log) =>
  Stream.runFold(
    log.readStream(StreamName.make(PricePlan.PricePlan.category, "standard")),
    () => initial,
    (plan, { data, type }) => evolve(plan, codec.decode(type, data), 0)
  )
)

const decimals = (prices: PricePlan.Prices): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(prices).map(([operation, price]) => [operation, Credits.toDecimal(price)]))

/** All versions in the order of their publication, or the one in force at an instant. */
export const list = (at: Date | undefined): Effect.Effect<ReadonlyArray<PriceVersion>, Failure, EventStore.EventStore> =>
  Effect.gen(function* () {
    const versions = yield* plan
    const inForce = PricePlan.inForce(versions, at?.getTime() ?? (yield* Clock.currentTimeMillis))
    return (at === undefined ? versions : versions.filter((list) => list === inForce)).map(({ effectiveAt, prices, version }) => ({
      version,
      effectiveAt: new Date(effectiveAt),
      inForce: version === inForce?.version,
      prices: decimals(prices)
    }))
  })

/** Versions take effect in order, so without a time a new version would wait for the last announced one. */
const refuseToWait = Effect.fnUntraced(function* (versions: PricePlan.PricePlan, now: number) {
  const last = versions.at(-1)
  if (last === undefined || last.effectiveAt <= now) return
  const { effectiveAt } = yield* SettingNames.Current
  yield* fail(
    `version ${last.version} comes into force at ${toIso(last.effectiveAt)}, and a later version cannot precede it: name a time by ${effectiveAt}`
  )
})

/** A misspelt operation would leave the old price in force. `operations`: those of this program; any that has a price is known, too. */
export const refuseUnknown = (changes: PricePlan.Prices, operations: ReadonlyArray<string>): Act<void> =>
  Effect.gen(function* () {
    const plan = yield* PricePlan.PriceBook.use((book) => book.plan)
    const known = new Set([...Object.keys(plan.at(-1)?.prices ?? {}), ...operations])
    const unknown = Object.keys(changes).filter((operation) => !known.has(operation))
    const { newOperations } = yield* SettingNames.Current
    if (unknown.length > 0)
      yield* fail(`no operation here is called ${unknown.join(", ")}: see prices list, or use ${newOperations} for future operations`)
  })

/** Publishes changed prices as a new version, in force at once or from a later time; the others stay. */
export const publish = (changes: PricePlan.Prices, effectiveAt: Date | undefined, metadata: Aggregate.Metadata): Act<Published> =>
  Effect.gen(function* () {
    const book = yield* PricePlan.PriceBook
    const before = yield* book.plan
    if (effectiveAt === undefined) yield* refuseToWait(before, yield* Clock.currentTimeMillis)
    const after = yield* book
      .publish(changes, effectiveAt?.getTime(), metadata)
      .pipe(
        Effect.catchTag("EffectiveTooEarly", ({ earliest }) =>
          fail(`prices cannot come into force before they are published, nor before those they follow: from ${toIso(earliest)} on`)
        )
      )
    const last = after.at(-1)
    if (last === undefined) return yield* Effect.die(new Error("A plan that was published to has a version"))
    const old = before.at(-1)?.prices ?? {}
    const published = after.length > before.length
    const changed = Object.entries(changes).filter(([operation, price]) => published && old[operation] !== price)
    return {
      version: last.version,
      effectiveAt: new Date(last.effectiveAt),
      published,
      changes: changed.map(([operation, price]) => {
        const from = old[operation]
        return { operation, from: from === undefined ? null : Credits.toDecimal(from), to: Credits.toDecimal(price) }
      })
    }
  })
