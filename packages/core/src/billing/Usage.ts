/**
 * The usage of an account in a month of UTC, by operation: a fold of the account's stream. It is folded on request, and stored in the state
 * store with the last revision, so the next request reads only newer events. So charges have no extra cost, it takes no memory, and a
 * result includes all events that any process wrote before.
 */
import { type Aggregate, EventStore, StateStore, StreamName } from "@millrace/event-sourcing"
import { Clock, Context, type Duration, Effect, Layer, Option, PartitionedSemaphore, Stream } from "effect"
import { Account } from "../ledger/Account.ts"
import type { Timestamp } from "../Timestamp.ts"
import { type DayUsage, listedDays } from "./UsageDays.ts"
import {
  type Counts,
  count,
  eventAt,
  firstRevisionOf,
  listed,
  type Month,
  monthOf,
  monthOfEvent,
  type OperationUsage
} from "./UsageFold.ts"
import * as UsageRows from "./UsageRows.ts"

export type { DayUsage } from "./UsageDays.ts"
export { type Month, monthOf, OperationUsage } from "./UsageFold.ts"

export interface Usage {
  readonly month: Month
  /** Used operations, sorted by key. */
  readonly operations: ReadonlyArray<OperationUsage>
  /** The days of the month on which credits changed, in their order. */
  readonly days: ReadonlyArray<DayUsage>
  /** All events up to this time are counted. */
  readonly asOf: Timestamp
}

export interface UsageOptions {
  /** The row is stored after a fold of at least this many new events, 500 by default, and during a long fold after twenty times as many. */
  readonly storeEvery?: number
  /** The time limit of a fold: 2 seconds by default. Then the last stored row is returned, and the next request continues from it. */
  readonly within?: Duration.Input
}

/** Events folded at once. */
const PAGE = 500
/** Accounts folded at once. */
const FOLDING = 4

const make = Effect.fnUntraced(function* ({ storeEvery = 500, within = "2 seconds" }: UsageOptions = {}) {
  const events = yield* EventStore.EventStore
  const states = yield* StateStore.StateStore
  const clock = yield* Clock.Clock
  const folding = yield* PartitionedSemaphore.make<string>({ permits: FOLDING })

  const folded = Effect.fnUntraced(function* (accountId: string, month: Month) {
    const stream = StreamName.make(Account.category, accountId)
    const stored = yield* UsageRows.load(states, accountId, month)
    const row = stored.row !== undefined && (yield* UsageRows.isOf(events, stream, stored.row)) ? stored.row : undefined
    if (row?.isFinished === true) return { operations: row.operations, days: row.days }
    const counts: Counts = {
      operations: new Map(row?.operations.map((usage) => [usage.operation, usage])),
      days: new Map(row?.days.map((usage) => [usage.day, usage]))
    }
    const holds = new Map<string, string>()
    const write = UsageRows.writer(states, accountId, month, stored.version)
    let unstored = 0
    let isFinished = false
    let last: EventStore.RecordedEvent | undefined
    const store = (isWhole: boolean) =>
      Effect.suspend(() => {
        unstored = 0
        return last === undefined ? Effect.void : write(clock.currentTimeMillisUnsafe(), last, counts, isWhole)
      })
    const from = row === undefined ? yield* firstRevisionOf(events, stream, month) : row.revision + 1
    yield* events.readStream(stream, { from }).pipe(
      Stream.takeWhile((event) => {
        isFinished = monthOfEvent(event) > month
        return !isFinished
      }),
      Stream.rechunk(PAGE),
      Stream.runForEachArray((page) =>
        Effect.gen(function* () {
          yield* count(events, stream, counts, holds, page)
          last = page.at(-1)
          unstored += page.length
          if (unstored >= 20 * storeEvery) yield* store(false)
        })
      )
    )
    // Of a month without events, the row names the last one before it
    if (isFinished && last === undefined && from > 0) last = Option.getOrUndefined(yield* eventAt(events, stream, from - 1))
    if (isFinished || unstored >= storeEvery) yield* store(isFinished)
    return { operations: listed(counts.operations), days: listedDays(counts.days) }
  })

  return {
    /** The usage of a month, by default the current one. Incomplete (see `asOf`) only if the first fold of a long month exceeds `within`. */
    read: Effect.fn("UsageBook.read")(function* (accountId: string, month?: Month): Effect.fn.Return<Usage, Failure> {
      const now = clock.currentTimeMillisUnsafe()
      const asked = month ?? monthOf(now)
      const whole = yield* folded(accountId, asked).pipe(folding.withPermit(accountId), Effect.timeoutOption(within))
      if (Option.isSome(whole)) return { month: asked, ...whole.value, asOf: now }
      const { row } = yield* UsageRows.load(states, accountId, asked)
      return { month: asked, operations: row?.operations ?? [], days: row?.days ?? [], asOf: row?.at ?? Date.parse(`${asked}-01`) }
    })
  }
})

type Failure = EventStore.StoreUnavailable | StateStore.StateUnavailable | Aggregate.StreamRefused

export class UsageBook extends Context.Service<UsageBook, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/core/billing/Usage/UsageBook"
) {
  static readonly layer = (options?: UsageOptions): Layer.Layer<UsageBook, never, EventStore.EventStore | StateStore.StateStore> =>
    Layer.effect(this, make(options))
}
