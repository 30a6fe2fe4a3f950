/** The ledger: accounts as they are decided on, asked for, and looked back at. */

import type { Decide } from "@millrace/event-sourcing"
import { Aggregate, EventCodec, EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { type Cause, Clock, Context, Duration, Effect, Exit, HashMap, Layer, Schema, Stream } from "effect"
import type * as Credits from "../Credits.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Spans from "../observability/Spans.ts"
import type { Timestamp } from "../Timestamp.ts"
import { Account, debt, expiresByItself, initial } from "./Account.ts"
import { type AccountEvent, AdjustmentLifetime, type EventOf, type RefundReason } from "./AccountEvent.ts"
import { accountSnapshots } from "./AccountSnapshot.ts"
import * as Decisions from "./Decisions.ts"
import * as Lots from "./Lots.ts"

/** What an account has, as of an instant. Amounts in thousandths. */
export interface Balance {
  readonly accountId: string
  readonly status: Account["status"]
  readonly available: Credits.Credits
  readonly held: Credits.Credits
  readonly debt: Credits.Credits
  readonly at: Timestamp
  readonly lots: ReadonlyArray<Lots.Lot>
  readonly holds: ReadonlyArray<{ readonly reservationId: string } & EventOf<"CreditReserved">>
}

export type Committed = Aggregate.Committed<Account, AccountEvent>

export interface LedgerOptions extends Omit<Aggregate.Options<Account>, "snapshots"> {
  /** How long credits live that come back into an expired lot through our failure: whole milliseconds, seven days by default. */
  readonly adjustmentLifetime?: Duration.Input
}

export class Ledger extends Context.Service<
  Ledger,
  {
    /** Decides on an account: see `Decisions`. */
    readonly execute: <E>(
      accountId: string,
      decide: Decide<Account, AccountEvent, E>,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Committed, E | Aggregate.Failure>
    /** An account as it is now, by whomever it was written. */
    readonly read: (accountId: string) => Effect.Effect<Aggregate.Current<Account>, Aggregate.Failure>
    /** What an account has now, or had at an instant that is past. */
    readonly balance: (accountId: string, at?: Timestamp) => Effect.Effect<Balance, Decisions.AccountNotFound | Aggregate.Failure>
    /** Gives back what a settled call was charged, or some of it. The charge is read from its own events. */
    readonly giveBack: (
      accountId: string,
      reservationId: string,
      refund: { readonly reason: RefundReason; readonly amount?: Credits.Credits },
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Committed, Decisions.ReservationNotFound | Decisions.RefundExceedsCharge | Aggregate.Failure>
    /** As this host has it, for decisions that may give back into an expired lot. Milliseconds. */
    readonly adjustmentLifetime: number
    /** How a reservation ended, by its own events; undefined while it is open or when it is not known. */
    readonly ending: (
      accountId: string,
      reservationId: string,
      from?: EventStore.Revision
    ) => Effect.Effect<EventOf<"OperationSucceeded"> | EventOf<"Refunded"> | undefined, Aggregate.Failure>
    /** Accounts that this host refuses at present. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
    /** When the store last failed to take an append, if it has taken none since: milliseconds since 1970, for `/ready`. */
    readonly appendFailedAt: () => Timestamp | undefined
  }
>()("@millrace/core/ledger/Ledger") {
  /** An `adjustmentLifetime` that is none, or longer than a century, is a defect. */
  static readonly layer = (options: LedgerOptions = {}): Layer.Layer<Ledger, never, EventStore.EventStore> =>
    Layer.effect(Ledger, make(options))
}

const codec = EventCodec.make(Account)

/** The account, at an instant. */
export const balanceOf = (accountId: string, account: Account, at: Timestamp): Balance => {
  const now = Decisions.asOf(account, at)
  return {
    accountId,
    status: now.status,
    available: Lots.available(now.lots, at),
    held: Lots.held(now.lots),
    debt: debt(now),
    at,
    lots: now.lots,
    holds: [...now.holds]
      .map(([reservationId, { reservedAt: _, ...hold }]) => ({ _tag: "CreditReserved" as const, reservationId, ...hold }))
      .sort((a, b) => (a.reservationId < b.reservationId ? -1 : 1))
  }
}

const lifetimeOf = Schema.decodeSync(AdjustmentLifetime)

const make = Effect.fnUntraced(function* ({ adjustmentLifetime: lifetime = Decisions.ADJUSTMENT_LIFETIME, ...options }: LedgerOptions) {
  const adjustmentLifetime = lifetimeOf(Duration.toMillis(lifetime))
  const store = yield* EventStore.EventStore
  const clock = yield* Clock.Clock
  const time = yield* Metrics.timeAppends
  const count = yield* Metrics.countCredits
  const spanned = yield* Spans.spanner
  let failedAt: Timestamp | undefined
  const append: typeof store.append = (stream, expected, events) =>
    Effect.suspend(() => {
      const measured = time()
      return Effect.onExitPrimitive(store.append(stream, expected, events), (exit) => {
        if (Exit.isSuccess(exit)) failedAt = undefined
        else if (isOfTheStore(exit.cause)) failedAt = clock.currentTimeMillisUnsafe()
        return measured(exit)
      })
    })
  const accounts = yield* Aggregate.make(Account, { ...options, snapshots: accountSnapshots }).pipe(
    Effect.provideService(EventStore.EventStore, { ...store, append })
  )
  const execute: Ledger["Service"]["execute"] = (accountId, decide, metadata) =>
    spanned(
      Effect.map(accounts.execute(accountId, decide, metadata), (committed) => {
        count(committed.events)
        return committed
      }),
      () => ({ name: "ledger execute" })
    )

  const history = (accountId: string, from?: EventStore.Revision) => {
    const stream = StreamName.make(Account.category, accountId)
    return store.readStream(stream, from === undefined ? {} : { from }).pipe(
      Stream.mapEffect((event) =>
        Effect.try({
          try: () => ({ at: Date.parse(HashChain.atOf(event)), event: codec.decode(event.type, event.data) }),
          catch: (error) => new Aggregate.StreamRefused({ stream, revision: event.revision, reason: String(error) })
        })
      )
    )
  }

  const balance = Effect.fn("Ledger.balance")(function* (accountId: string, at?: Timestamp) {
    const now = clock.currentTimeMillisUnsafe()
    const account =
      at === undefined || at >= now
        ? (yield* accounts.read(accountId)).state
        : yield* Stream.runFold(
            Stream.takeWhile(history(accountId), (past) => past.at <= at),
            () => initial,
            (state, { event, at }) => Account.evolve(state, event, at)
          )
    if (account.status === "absent") return yield* new Decisions.AccountNotFound()
    return balanceOf(accountId, account, at ?? now)
  })

  const giveBack = Effect.fn("Ledger.giveBack")(function* (
    accountId: string,
    reservationId: string,
    { reason, amount }: { readonly reason: RefundReason; readonly amount?: Credits.Credits },
    metadata?: Aggregate.Metadata
  ) {
    const grants = new Map<string, Decisions.Charge["terms"][number]>()
    let settled: EventOf<"OperationSucceeded"> | undefined
    yield* Stream.runForEach(history(accountId), ({ event, at }) =>
      Effect.sync(() => {
        if (event._tag === "CreditsGranted") {
          const { lotId, source, priority, expiresAt } = event
          grants.set(lotId, { lotId, source, priority, expiresAt, grantedAt: at })
        }
        if (event._tag === "OperationSucceeded" && event.reservationId === reservationId) settled = event
      })
    )
    if (settled === undefined) return yield* new Decisions.ReservationNotFound({ reservationId })
    const { charged, lots } = settled
    const terms = lots.flatMap(({ lotId }) => grants.get(lotId) ?? [])
    const decide = Decisions.giveBack({ reservationId, charged, lots, terms }, reason, amount, adjustmentLifetime)
    return yield* execute(accountId, decide, metadata)
  })

  const ending = Effect.fnUntraced(function* (accountId: string, reservationId: string, from?: EventStore.Revision) {
    const ends = history(accountId, from).pipe(
      Stream.map(({ event }) => event),
      Stream.filter(
        (event): event is EventOf<"OperationSucceeded"> | EventOf<"Refunded"> =>
          (event._tag === "OperationSucceeded" || (event._tag === "Refunded" && event.stage === "reserved")) &&
          event.reservationId === reservationId
      ),
      Stream.take(1)
    )
    return (yield* Stream.runCollect(ends))[0]
  })

  const { read, refused } = accounts
  return Ledger.of({ execute, read, balance, giveBack, adjustmentLifetime, ending, refused, appendFailedAt: () => failedAt })
})

/** The store could not write. A wrong clock is this host's own fault, and another writer's success is none. */
const isOfTheStore = (
  cause: Cause.Cause<EventStore.WrongRevision | EventStore.AppendInDoubt | EventStore.AppendTooLarge | EventStore.StoreUnavailable>
): boolean =>
  cause.reasons.some(
    (reason) =>
      reason._tag === "Fail" &&
      (reason.error._tag === "AppendInDoubt" || (reason.error._tag === "StoreUnavailable" && reason.error.why === undefined))
  )

/** Holds that the ledger does not end by itself though they are past their time: recovery's work, or an audit's finding. */
export const overdue = (account: Account, now: Timestamp): ReadonlyArray<string> =>
  [...HashMap.entries(account.holds)]
    .filter(([, hold]) => !expiresByItself(hold) && (hold.expiresAt ?? hold.acceptBy ?? Number.POSITIVE_INFINITY) <= now)
    .map(([reservationId]) => reservationId)
