/**
 * The usage of an account in a month of UTC, by operation: a fold of the account's stream. It is folded on request, and stored in the state
 * store with the last revision, so the next request reads only newer events. So charges have no extra cost, it takes no memory, and a
 * result includes all events that any process wrote before.
 *
 * The stored row is derived data. It is discarded when its version differs, or when the log no longer has the event it was folded to.
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
 * The usage of one operation. A charge counts in the month of its settlement and a refund in the month of the refund, so a past month never
 * changes. Free calls leave no event in the ledger, so they are not counted.
 */
export const OperationUsage = Schema.Struct({
  /** The operation's key. */
  operation: Schema.String,
  /** Charged calls. */
  calls: Schema.Int,
  /** Charged units. */
  units: Schema.Int,
  charged: Credits.Credits,
  /** Refunds of charges of this month or an earlier one. */
  refunded: Credits.Credits,
  /** Calls that failed or were cancelled, so their hold was released in full. */
  uncharged: Schema.Int
})
export type OperationUsage = typeof OperationUsage.Type

export interface Usage {
  readonly month: Month
  /** Used operations, sorted by key. */
  readonly operations: ReadonlyArray<OperationUsage>
  /** All events up to this time are counted. */
  readonly asOf: Timestamp
}

export interface UsageOptions {
  /** The row is stored after a fold of at least this many new events, 500 by default, and during a long fold after twenty times as many. */
  readonly storeEvery?: number
  /** The time limit of a fold: 2 seconds by default. Then the last stored row is returned, and the next request continues from it. */
  readonly within?: Duration.Input
}

export class UsageBook extends Context.Service<
  UsageBook,
  {
    /**
     * The usage of a month, by default the current one. Incomplete (see `asOf`) only if the first fold of a long month exceeds `within`.
     */
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

// the stored row

/** Raise it when the fold or the row changes. */
const VERSION = 1

const Row = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(VERSION),
    /** The revision and hash of the last folded event, to detect a log that was restored from a backup. */
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
/** The lifetime of a row, milliseconds: longer than its month, because most requests come within it. */
const KEPT = Duration.toMillis("40 days")

/** Events folded at once. */
const PAGE = 500
/** Accounts folded at once. */
const FOLDING = 4

const { codec } = Account
const RESERVED = codec.typesOf(["CreditReserved"])
const COUNTED = codec.typesOf(["CreditReserved", "OperationSucceeded", "Refunded"])

type Events = EventStore.EventStore["Service"]
type States = StateStore.StateStore["Service"]

// reading the account's stream

/** The month of an event. Events of an account are in the order of time. */
const monthOfEvent = (event: EventStore.RecordedEvent): Month => HashChain.atOf(event).slice(0, 7)

const eventAt = (events: Events, stream: StreamName.StreamName, revision: EventStore.Revision) =>
  Stream.runHead(events.readStream(stream, { from: revision, limit: 1 }))

/** The first revision of a month or of a later one, by binary search. */
const firstRevisionOf = Effect.fnUntraced(function* (events: Events, stream: StreamName.StreamName, month: Month) {
  const last = yield* events.lastRevision(stream)
  let low = 0
  let high = last === "noStream" ? 0 : last + 1
  while (low < high) {
    const middle = (low + high) >>> 1
    const isBefore = Option.exists(yield* eventAt(events, stream, middle), (event) => monthOfEvent(event) < month)
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

/** The operations of reservations made before a revision. Reads backwards, because most were made shortly before. */
const operationsBefore = Effect.fnUntraced(function* (
  events: Events,
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

/** Counts a page of events into `operations`. `holds`: the operations of open reservations seen so far. */
const count = Effect.fnUntraced(function* (
  events: Events,
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
  const earlier = yield* operationsBefore(events, stream, before, unknown)
  for (const { event, revision, operation = earlier.get(event.reservationId) } of endings) {
    if (operation === undefined)
      return yield* new Aggregate.StreamRefused({ stream, revision, reason: `Reservation ${event.reservationId} was never made` })
    operations.set(operation, evolve(operations.get(operation) ?? unused(operation), event))
  }
})

// rows of the state store, by account and month

const keyOf = (accountId: string, month: Month) => `${accountId}/${month}`

const loadRow = Effect.fnUntraced(function* (states: States, accountId: string, month: Month) {
  const entry = yield* states.get(SPACE, keyOf(accountId, month))
  const row = entry && Option.getOrUndefined(decodeRow(Buffer.from(entry.value).toString()))
  return { row, version: entry?.version ?? ("absent" as const) }
})

/** Whether the log still has the event that a row was folded to. A restored backup may not have it. */
const isOf = (events: Events, stream: StreamName.StreamName, { revision, hash }: Row) =>
  Effect.map(
    eventAt(events, stream, revision),
    Option.exists((event) => HashChain.hashOf(event) === hash)
  )

/** Writes the row of one month during a fold. It stops when another host writes the same row. */
class RowWriter {
  readonly #states: States
  readonly #key: string
  #expected: number | "absent" | undefined

  constructor(states: States, key: string, version: number | "absent") {
    this.#states = states
    this.#key = key
    this.#expected = version
  }

  /** Writes the row, which expires {@link KEPT} after `now`. A failure is ignored, as the events can be folded again. */
  write(now: number, last: EventStore.RecordedEvent, operations: Operations): Effect.Effect<void> {
    if (this.#expected === undefined) return Effect.void
    const at = Date.parse(HashChain.atOf(last))
    const { revision } = last
    const value = Buffer.from(encodeRow({ version: VERSION, revision, hash: HashChain.hashOf(last), at, operations: listed(operations) }))
    const put = { _tag: "put", space: SPACE, key: this.#key, value, expiresAt: now + KEPT, expected: this.#expected } as const
    return Effect.match(this.#states.write([put]), {
      onSuccess: (version) => {
        this.#expected = version
      },
      onFailure: () => {
        this.#expected = undefined
      }
    })
  }
}

const make = Effect.fnUntraced(function* ({ storeEvery = 500, within = "2 seconds" }: UsageOptions) {
  const events = yield* EventStore.EventStore
  const states = yield* StateStore.StateStore
  const clock = yield* Clock.Clock
  const folding = yield* PartitionedSemaphore.make<string>({ permits: FOLDING })

  const folded = Effect.fnUntraced(function* (accountId: string, month: Month) {
    const stream = StreamName.make(Account.category, accountId)
    const kept = yield* loadRow(states, accountId, month)
    const row = kept.row !== undefined && (yield* isOf(events, stream, kept.row)) ? kept.row : undefined
    const operations: Operations = new Map(row?.operations.map((usage) => [usage.operation, usage]))
    const holds = new Map<string, string>()
    const writer = new RowWriter(states, keyOf(accountId, month), kept.version)
    let unkept = 0
    let last: EventStore.RecordedEvent | undefined
    const keep = Effect.suspend(() => {
      if (last === undefined) return Effect.void
      unkept = 0
      return writer.write(clock.currentTimeMillisUnsafe(), last, operations)
    })
    const from = row === undefined ? yield* firstRevisionOf(events, stream, month) : row.revision + 1
    yield* events.readStream(stream, { from }).pipe(
      Stream.takeWhile((event) => monthOfEvent(event) <= month),
      Stream.rechunk(PAGE),
      Stream.runForEachArray((page) =>
        Effect.gen(function* () {
          yield* count(events, stream, operations, holds, page)
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
      const { row } = yield* loadRow(states, accountId, asked)
      return { month: asked, operations: row?.operations ?? [], asOf: row?.at ?? Date.parse(`${asked}-01`) }
    })
  })
})

const listed = (operations: Operations): ReadonlyArray<OperationUsage> =>
  [...operations.values()].sort((a, b) => (a.operation < b.operation ? -1 : 1))
