/**
 * What an account used in a month, by operation: a projection of its one stream, in months of UTC. It is folded when it is asked for, and
 * kept in the state store with the place it was folded to, so that the next question reads only what came since. No charge does anything
 * for it, nothing of it stays in memory, and whoever asks sees all that was written before, by whatever process.
 *
 * What is kept is derived: it is folded anew when it is of another version, or of a log that has another past than it had.
 */
import { Aggregate, EventStore, HashChain, StateStore, StreamName } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer, Option, PartitionedSemaphore, Schema, Stream } from "effect"
import * as Credits from "../Credits.ts"
import { Account } from "../ledger/Account.ts"
import type { EventOf } from "../ledger/AccountEvent.ts"
import { type Timestamp, toIso } from "../Timestamp.ts"

/** A month of UTC, such as `2026-11`. */
export type Month = string

export const monthOf = (at: Timestamp): Month => toIso(at).slice(0, 7)

/**
 * Everything counts in the month in which it happened, so a month that is over stays as it was: a charge when the call was settled, a
 * refund when it was given back. Calls that cost nothing leave no trace in the ledger, and are not counted.
 */
export const OperationUsage = Schema.Struct({
  /** Its key. */
  operation: Schema.String,
  /** That were charged. */
  calls: Schema.Int,
  /** Of the price plan, as charged. */
  units: Schema.Int,
  charged: Credits.Credits,
  /** Given back after it had been charged, in this month or an earlier one. */
  refunded: Credits.Credits,
  /** Calls that failed or were cancelled, so that their hold went back as a whole. */
  uncharged: Schema.Int
})
export type OperationUsage = typeof OperationUsage.Type

export interface Usage {
  readonly month: Month
  /** Those that were used, by key. */
  readonly operations: ReadonlyArray<OperationUsage>
  /** What was written by then is counted. */
  readonly asOf: Timestamp
}

export interface UsageOptions {
  /** It is kept once so many events of the account were folded since, 500 by default; while much is folded, twenty times as many. */
  readonly storeEvery?: number
  /** After so long the answer is what was kept last, and the next question goes on from there: 2 seconds by default. */
  readonly within?: Duration.Input
}

export class UsageBook extends Context.Service<
  UsageBook,
  {
    /** The use of a month, by default the one of now. Only a long one that was never asked for is answered before it is whole. */
    readonly read: (
      accountId: string,
      month?: Month
    ) => Effect.Effect<Usage, EventStore.StoreUnavailable | StateStore.StateUnavailable | Aggregate.StreamRefused>
  }
>()("@millrace/core/billing/Usage/UsageBook") {
  static readonly layer = (options: UsageOptions = {}): Layer.Layer<UsageBook, never, EventStore.EventStore | StateStore.StateStore> =>
    Layer.effect(UsageBook, make(options))
}

// the fold

type Ending = EventOf<"OperationSucceeded"> | EventOf<"Refunded">
type Operations = Map<string, OperationUsage>

const unused = (operation: string): OperationUsage => ({
  operation,
  calls: 0,
  units: 0,
  charged: Credits.zero,
  refunded: Credits.zero,
  uncharged: 0
})

const evolve = (usage: OperationUsage, event: Ending): OperationUsage => {
  if (event._tag === "OperationSucceeded") {
    const { charged, quantity } = event
    return { ...usage, calls: usage.calls + 1, units: usage.units + quantity, charged: Credits.of(usage.charged + charged) }
  }
  return event.stage === "reserved"
    ? { ...usage, uncharged: usage.uncharged + 1 }
    : { ...usage, refunded: Credits.of(usage.refunded + event.amount) }
}

// what is kept

/** Counts up whenever the fold or the row change. */
const VERSION = 1

const Row = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(VERSION),
    /** Of the last event that was folded, and its hash: so that it is known again. */
    revision: Schema.Int,
    hash: Schema.String,
    at: Schema.Int,
    operations: Schema.Array(OperationUsage)
  })
)
type Row = typeof Row.Type
const encodeRow = Schema.encodeSync(Row)
const decodeRow = Schema.decodeUnknownOption(Row)

const SPACE = "usage"
/** How long a row is kept after it was written, milliseconds: over its month, which is asked for most. */
const KEPT = Duration.toMillis("40 days")

/** Events folded at once. */
const PAGE = 500
/** Of all that are asked for at once, so many are folded at a time. */
const FOLDING = 4

const { codec } = Account
const RESERVED = codec.typesOf(["CreditReserved"])
const COUNTED = codec.typesOf(["CreditReserved", "OperationSucceeded", "Refunded"])

/** An account's stream never goes back in time. */
const monthOfEvent = (event: EventStore.RecordedEvent): Month => HashChain.atOf(event).slice(0, 7)

const make = Effect.fnUntraced(function* ({ storeEvery = 500, within = "2 seconds" }: UsageOptions) {
  const events = yield* EventStore.EventStore
  const states = yield* StateStore.StateStore
  const clock = yield* Clock.Clock
  const folding = yield* PartitionedSemaphore.make<string>({ permits: FOLDING })

  const eventAt = (stream: StreamName.StreamName, revision: EventStore.Revision) =>
    Stream.runHead(events.readStream(stream, { from: revision, limit: 1 }))

  /** The first revision of a month or of a later one. */
  const firstOf = Effect.fnUntraced(function* (stream: StreamName.StreamName, month: Month) {
    const last = yield* events.lastRevision(stream)
    let low = 0
    let high = last === "noStream" ? 0 : last + 1
    while (low < high) {
      const middle = (low + high) >>> 1
      const isBefore = Option.exists(yield* eventAt(stream, middle), (event) => monthOfEvent(event) < month)
      if (isBefore) low = middle + 1
      else high = middle
    }
    return low
  })

  const decode = (event: EventStore.RecordedEvent) =>
    Effect.try({
      try: () => codec.decode(event.type, event.data),
      catch: (error) => new Aggregate.StreamRefused({ stream: event.stream, revision: event.revision, reason: String(error) })
    })

  /** The operations of reservations that were made before a revision: most of them not long before. */
  const operationsOf = Effect.fnUntraced(function* (
    stream: StreamName.StreamName,
    before: EventStore.Revision,
    reservations: ReadonlySet<string>
  ) {
    const found = new Map<string, string>()
    if (reservations.size === 0 || before === 0) return found
    yield* Stream.runForEachWhile(events.readStream(stream, { from: before - 1, direction: "backwards" }), (recorded) =>
      !RESERVED.has(recorded.type)
        ? Effect.succeed(true)
        : Effect.map(decode(recorded), (event) => {
            if (event._tag === "CreditReserved" && reservations.has(event.reservationId)) found.set(event.reservationId, event.operation)
            return found.size < reservations.size
          })
    )
    return found
  })

  /** Counts a run of events. `holds`: the operations of reservations that are open, as far as they were seen. */
  const count = Effect.fnUntraced(function* (
    stream: StreamName.StreamName,
    operations: Operations,
    holds: Map<string, string>,
    page: ReadonlyArray<EventStore.RecordedEvent>
  ) {
    const endings: Array<{ readonly event: Ending; readonly revision: EventStore.Revision; readonly operation: string | undefined }> = []
    const unknown = new Set<string>()
    let before = 0
    for (const recorded of page) {
      if (!COUNTED.has(recorded.type)) continue
      const event = yield* decode(recorded)
      if (event._tag === "CreditReserved") holds.set(event.reservationId, event.operation)
      if (event._tag !== "OperationSucceeded" && event._tag !== "Refunded") continue
      const operation = holds.get(event.reservationId)
      holds.delete(event.reservationId)
      if (operation === undefined) {
        unknown.add(event.reservationId)
        before = recorded.revision
      }
      endings.push({ event, revision: recorded.revision, operation })
    }
    const earlier = yield* operationsOf(stream, before, unknown)
    for (const { event, revision, operation = earlier.get(event.reservationId) } of endings) {
      if (operation === undefined) {
        return yield* new Aggregate.StreamRefused({ stream, revision, reason: `Reservation ${event.reservationId} was never made` })
      }
      operations.set(operation, evolve(operations.get(operation) ?? unused(operation), event))
    }
  })

  // kept by account and month

  const keyOf = (accountId: string, month: Month) => `${accountId}/${month}`

  const load = Effect.fnUntraced(function* (accountId: string, month: Month) {
    const entry = yield* states.get(SPACE, keyOf(accountId, month))
    const row = entry && Option.getOrUndefined(decodeRow(Buffer.from(entry.value).toString()))
    return { row, version: entry?.version ?? ("absent" as const) }
  })

  /** Whether the log has the past that a row is of: it may have been restored from a backup since. */
  const isOf = (stream: StreamName.StreamName, { revision, hash }: Row) =>
    Effect.map(
      eventAt(stream, revision),
      Option.exists((event) => HashChain.hashOf(event) === hash)
    )

  const folded = Effect.fnUntraced(function* (accountId: string, month: Month) {
    const stream = StreamName.make(Account.category, accountId)
    const kept = yield* load(accountId, month)
    const row = kept.row !== undefined && (yield* isOf(stream, kept.row)) ? kept.row : undefined
    const operations: Operations = new Map(row?.operations.map((usage) => [usage.operation, usage]))
    const holds = new Map<string, string>()
    let unkept = 0
    let last: EventStore.RecordedEvent | undefined
    let expected: number | "absent" | undefined = kept.version

    const keep = Effect.suspend(() => {
      if (last === undefined || expected === undefined) return Effect.void
      const at = Date.parse(HashChain.atOf(last))
      const { revision } = last
      const value = encodeRow({ version: VERSION, revision, hash: HashChain.hashOf(last), at, operations: listed(operations) })
      const expiresAt = clock.currentTimeMillisUnsafe() + KEPT
      const put = { _tag: "put", space: SPACE, key: keyOf(accountId, month), value: Buffer.from(value), expiresAt, expected } as const
      return states.write([put]).pipe(
        Effect.tap((version) =>
          Effect.sync(() => {
            expected = version
            unkept = 0
          })
        ),
        // Somebody else kept his own meanwhile. And what cannot be kept now is folded again
        Effect.catch(() =>
          Effect.sync(() => {
            expected = undefined
          })
        )
      )
    })

    const from = row === undefined ? yield* firstOf(stream, month) : row.revision + 1
    yield* events.readStream(stream, { from }).pipe(
      Stream.takeWhile((event) => monthOfEvent(event) <= month),
      Stream.rechunk(PAGE),
      Stream.runForEachArray((page) =>
        Effect.gen(function* () {
          yield* count(stream, operations, holds, page)
          last = page.at(-1)
          unkept += page.length
          if (unkept >= 20 * storeEvery) yield* keep
        })
      )
    )
    if (unkept >= storeEvery) yield* keep
    return listed(operations)
  })

  return UsageBook.of({
    read: Effect.fn("UsageBook.read")(function* (accountId: string, month?: Month) {
      const now = clock.currentTimeMillisUnsafe()
      const asked = month ?? monthOf(now)
      const whole = yield* folded(accountId, asked).pipe(folding.withPermit(accountId), Effect.timeoutOption(within))
      if (Option.isSome(whole)) return { month: asked, operations: whole.value, asOf: now }
      const { row } = yield* load(accountId, asked)
      return { month: asked, operations: row?.operations ?? [], asOf: row?.at ?? Date.parse(`${asked}-01`) }
    })
  })
})

const listed = (operations: Operations): ReadonlyArray<OperationUsage> =>
  [...operations.values()].sort((a, b) => (a.operation < b.operation ? -1 : 1))
