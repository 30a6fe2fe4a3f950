/**
 * The calls of an account, newest first, read backwards from its own stream: so a page costs what it shows, whatever the account did before,
 * and includes what any process wrote. Calls that cost nothing leave no event, so they are not among them.
 */
import { Aggregate, EventStore, HashChain, type Projection, type StateStore, StreamName } from "@millrace/event-sourcing"
import { Context, Effect, HashMap, Layer, Option, Stream } from "effect"
import * as Credits from "../Credits.ts"
import { Account, isOpen } from "../ledger/Account.ts"
import type { AccountEvent, EventOf, RefundReason } from "../ledger/AccountEvent.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { LotParts } from "../ledger/Lots.ts"
import type { Timestamp } from "../Timestamp.ts"
import * as RefundedCharges from "./RefundedCharges.ts"

/** `released`: it failed or was cancelled, so its hold was given back in full. `refunded`: it was charged, and credits went back later. */
export const OUTCOMES = ["running", "charged", "released", "refunded"] as const
export type Outcome = (typeof OUTCOMES)[number]

/** A call or job that was held for. */
export interface PastCall {
  readonly reservationId: string
  readonly requestId: string
  readonly operation: string
  readonly outcome: Outcome
  /** Why credits went back; null where none did. */
  readonly reason: RefundReason | null
  /** Units: those held while it runs, then those charged. */
  readonly quantity: number
  /** Null for a trial call, which has no price. */
  readonly priceVersion: number | null
  readonly held: Credits.Credits
  /** Null until it ended; zero where all was given back. */
  readonly charged: Credits.Credits | null
  readonly refunded: Credits.Credits
  readonly jobId: string | null
  /** What was charged by lot, or what is held. */
  readonly lots: LotParts
  readonly startedAt: Timestamp
  readonly endedAt: Timestamp | null
  readonly refundedAt: Timestamp | null
}

export interface Query {
  /** Only calls that began before this revision of the account's stream, as a page before it named it. */
  readonly before?: EventStore.Revision
  /** The most calls of the page. */
  readonly limit: number
  readonly operation?: string
  readonly outcome?: Outcome
  readonly kind?: "call" | "job"
}

export interface Page {
  readonly calls: ReadonlyArray<PastCall>
  /** Where the next page begins; null after the last. A page may have fewer calls than its limit, or none, and a next one. */
  readonly next: EventStore.Revision | null
}

export type Failure = EventStore.StoreUnavailable | Aggregate.Failure | Projection.ProjectionBehind | Projection.ProjectionStopped

export class CallHistory extends Context.Service<
  CallHistory,
  { readonly read: (accountId: string, query: Query) => Effect.Effect<Page, Failure> }
>()("@millrace/core/billing/CallHistory") {
  static readonly layer: Layer.Layer<CallHistory, never, Ledger | EventStore.EventStore | StateStore.StateStore> = Layer.effect(
    CallHistory,
    Effect.suspend(() => make)
  )
}

/** The most events that one page reads: what few calls match is found over several pages, each of them quick. */
const READ = 5_000

const { codec } = Account
type Start = EventOf<"CreditReserved" | "TrialReserved">
type End = EventOf<"OperationSucceeded" | "Refunded" | "TrialUsed" | "TrialReleased">
const TYPES = codec.typesOf(["CreditReserved", "OperationSucceeded", "Refunded", "TrialReserved", "TrialUsed", "TrialReleased"])

interface Timed<Event> {
  readonly event: Event
  readonly at: Timestamp
  readonly revision: EventStore.Revision
}

const timed = (recorded: EventStore.RecordedEvent): Effect.Effect<Timed<AccountEvent>, Aggregate.StreamRefused> =>
  Effect.try({
    try: () => ({
      event: codec.decode(recorded.type, recorded.data),
      at: HashChain.timeOf(recorded),
      revision: recorded.revision
    }),
    catch: (error) => new Aggregate.StreamRefused({ stream: recorded.stream, revision: recorded.revision, reason: String(error) })
  })

const isStart = (entry: Timed<AccountEvent>): entry is Timed<Start> =>
  entry.event._tag === "CreditReserved" || entry.event._tag === "TrialReserved"

/** Whether an event ends a call. The refund of a charge comes later, and ends nothing. */
const isEnd = (entry: Timed<AccountEvent>): entry is Timed<End> => {
  const { event } = entry
  if (event._tag === "Refunded") return event.stage === "reserved"
  return event._tag === "OperationSucceeded" || event._tag === "TrialUsed" || event._tag === "TrialReleased"
}

const make = Effect.gen(function* () {
  const events = yield* EventStore.EventStore
  const ledger = yield* Ledger
  const refunds = yield* RefundedCharges.make()

  const entriesOf = (accountId: string, options: EventStore.ReadStreamOptions) =>
    events.readStream(StreamName.make(Account.category, accountId), options).pipe(
      Stream.filter(({ type }) => TYPES.has(type)),
      Stream.mapEffect(timed)
    )

  /** The end of a call that was not among the newer events read: none if it runs, else the first one after its start. */
  const endOf = Effect.fnUntraced(function* (accountId: string, { event: { reservationId }, revision }: Timed<Start>) {
    const { state } = yield* ledger.read(accountId)
    if (isOpen(state, reservationId)) return undefined
    const end = yield* entriesOf(accountId, { from: revision + 1 }).pipe(
      Stream.filter(isEnd),
      Stream.filter(({ event }) => event.reservationId === reservationId),
      Stream.runHead
    )
    return Option.getOrUndefined(end)
  })

  const read: CallHistory["Service"]["read"] = Effect.fn("CallHistory.read")(function* (accountId, query) {
    const { before, limit } = query
    if (before === 0) return { calls: [], next: null }
    const refunded = (yield* refunds.caughtUp()).state
    const ends = new Map<string, Timed<End>>()
    const calls: Array<PastCall> = []
    let seen = 0
    let lowest: number | undefined
    yield* events
      .readStream(StreamName.make(Account.category, accountId), {
        direction: "backwards",
        limit: READ,
        ...(before === undefined ? {} : { from: before - 1 })
      })
      .pipe(
        Stream.runForEachWhile((recorded) =>
          Effect.gen(function* () {
            seen++
            lowest = recorded.revision
            if (!TYPES.has(recorded.type)) return true
            const entry = yield* timed(recorded)
            if (isEnd(entry)) ends.set(entry.event.reservationId, entry)
            if (!isStart(entry) || !isAsked(entry.event, query)) return true
            const { reservationId } = entry.event
            const end = ends.get(reservationId) ?? (yield* endOf(accountId, entry))
            const call = callOf(entry, end, Option.getOrUndefined(HashMap.get(refunded, reservationId)))
            if (query.outcome === undefined || query.outcome === call.outcome) calls.push(call)
            return calls.length < limit
          })
        )
      )
    const isLast = lowest === undefined || lowest === 0 || (calls.length < limit && seen < READ)
    return { calls, next: isLast ? null : (lowest ?? null) }
  })
  return CallHistory.of({ read })
})

const isAsked = (start: Start, { kind, operation }: Query): boolean =>
  (operation === undefined || start.operation === operation) && (kind === undefined || (jobOf(start) === null) === (kind === "call"))

const jobOf = (start: Start): string | null => (start._tag === "CreditReserved" ? (start.jobId ?? null) : null)

/** A slot of the trial that its expiry released has no reason of its own. */
const reasonOf = ({ reason = "expired" }: Pick<EventOf<"Refunded" | "TrialReleased">, "reason">): RefundReason => reason

const callOf = (
  { at: startedAt, event: start }: Timed<Start>,
  end: Timed<End> | undefined,
  refund: RefundedCharges.RefundedCharge | undefined
): PastCall => {
  const { operation, requestId, reservationId } = start
  const isPriced = start._tag === "CreditReserved"
  const success = end?.event._tag === "OperationSucceeded" ? end.event : undefined
  const released = end?.event._tag === "Refunded" || end?.event._tag === "TrialReleased" ? end.event : undefined
  return {
    reservationId,
    requestId,
    operation,
    outcome: end === undefined ? "running" : released !== undefined ? "released" : refund === undefined ? "charged" : "refunded",
    reason: refund?.reason ?? (released === undefined ? null : reasonOf(released)),
    quantity: success?.quantity ?? (isPriced ? start.quantity : 1),
    priceVersion: isPriced ? start.priceVersion : null,
    held: isPriced ? start.amount : Credits.zero,
    charged: end === undefined ? null : (success?.charged ?? Credits.zero),
    refunded: refund?.amount ?? Credits.zero,
    jobId: jobOf(start),
    lots: success?.lots ?? (isPriced ? start.lots : []),
    startedAt,
    endedAt: end?.at ?? null,
    refundedAt: refund?.at ?? null
  }
}
