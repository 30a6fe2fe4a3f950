/** The ledger as a service: decides on accounts, reads them, and looks back into their streams. */

import { Aggregate, type Decision, EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { type Cause, Clock, Context, Duration, Effect, Exit, Layer, Option, Schema, Stream } from "effect"
import type * as Credits from "../Credits.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Spans from "../observability/Spans.ts"
import { fork, type Told } from "../Running.ts"
import type { Timestamp } from "../Timestamp.ts"
import { Account, debt, initial, type TrialView, trialOf } from "./Account.ts"
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
  /** Below it, the balance is told as low; null for none. */
  readonly threshold: Credits.Credits | null
  /** The recurring grants that were not stopped. */
  readonly recurring: Account["recurring"]
  readonly at: Timestamp
  readonly lots: ReadonlyArray<Lots.Lot>
  readonly holds: ReadonlyArray<{ readonly reservationId: string } & EventOf<"CreditReserved">>
}

/** An event that ended a hold or a slot of the trial. */
export type Ending = EventOf<"OperationSucceeded" | "Refunded" | "TrialUsed" | "TrialReleased">

export type Committed = Aggregate.Committed<Account, AccountEvent>

export interface LedgerOptions extends Omit<Aggregate.Options<Account>, "snapshots"> {
  /** The lifetime of credits that we return to an expired lot after our failure: whole milliseconds, seven days by default. */
  readonly adjustmentLifetime?: Duration.Input
  /**
   * Whether an account whose address was not verified yet, and that was never granted credits, may make ten free calls: true by default.
   * Such an account is never charged, and is refused once these are used.
   */
  readonly trial?: boolean
}

export class Ledger extends Context.Service<
  Ledger,
  Pick<Aggregate.Aggregate<Account, AccountEvent>, "execute" | "known" | "read" | "readNow" | "refused" | "unsaved"> & {
    /** `execute` by callback, for a caller without a fiber: see `Aggregate.submit`. `context`: that of the caller, for the span. */
    readonly submit: <E>(
      accountId: string,
      decide: (state: Account, now: Timestamp) => Decision<AccountEvent, E>,
      metadata: Aggregate.Metadata,
      context: Context.Context<never>,
      told: Told<Committed, E | Aggregate.Failure>
    ) => void
    /** `submit` for a decision that also rests on other streams: see `Aggregate.submitIf`. */
    readonly submitIf: <E>(
      conditions: ReadonlyArray<EventStore.Condition>,
      accountId: string,
      decide: (state: Account, now: Timestamp) => Decision<AccountEvent, E>,
      metadata: Aggregate.Metadata,
      context: Context.Context<never>,
      told: Told<Committed, E | Aggregate.Failure | EventStore.ConditionFailed>
    ) => void
    /**
     * The number of successes under idempotency keys that the account has recorded, as far as this host knows. Take it before the lookup in
     * the reply store, and reserve with it (see `Memory.ts`). Reads the store only if the account is not in memory; 0 if the store fails.
     */
    readonly recorded: (accountId: string) => Effect.Effect<number>
    /** What an account has now, or had at an earlier instant, milliseconds since 1970. */
    readonly balance: (accountId: string, at?: Timestamp) => Effect.Effect<Balance, Decisions.AccountNotFound | Aggregate.Failure>
    /** Refunds a charge or a part of it. Reads the charge from the account's events. */
    readonly refund: (
      accountId: string,
      reservationId: string,
      refund: { readonly reason: RefundReason; readonly amount?: Credits.Credits },
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Committed, Decisions.ReservationNotFound | Decisions.RefundExceedsCharge | Aggregate.Failure>
    /** Whether accounts have a trial at this host. */
    readonly hasTrial: boolean
    /** The trial of an account that is on trial at this host; undefined for any other account. */
    readonly trialOf: (current: Pick<Aggregate.Current<Account>, "state" | "at">) => TrialView | undefined
    /** This host's lifetime of credits that are returned to an expired lot. Milliseconds. */
    readonly adjustmentLifetime: number
    /** The event that ended a reservation, searched from a revision on; undefined if it is open or unknown. */
    readonly ending: (
      accountId: string,
      reservationId: string,
      from?: EventStore.Revision
    ) => Effect.Effect<Ending | undefined, Aggregate.Failure>
    /** When an append last failed, if none has succeeded since: milliseconds since 1970, for `/ready`. */
    readonly appendFailedAt: () => Timestamp | undefined
  }
>()("@millrace/core/ledger/Ledger") {
  /** An `adjustmentLifetime` below a millisecond or above a century is a defect. */
  static readonly layer = (options: LedgerOptions = {}): Layer.Layer<Ledger, never, EventStore.EventStore> =>
    Layer.effect(Ledger, make(options))
}

const { codec } = Account

/** The balance of an account as of an instant. */
export const balanceOf = (accountId: string, account: Account, at: Timestamp): Balance => {
  const now = Decisions.asOf(account, at)
  return {
    accountId,
    status: now.status,
    available: Lots.available(now.purse.lots, at),
    held: Lots.held(now.purse.lots),
    debt: debt(now),
    threshold: now.lowBalance.threshold,
    recurring: now.recurring,
    at,
    lots: now.purse.lots,
    holds: [...now.purse.holds]
      .map(([reservationId, { reservedAt: _, ...hold }]) => ({ _tag: "CreditReserved" as const, reservationId, ...hold }))
      .sort((a, b) => (a.reservationId < b.reservationId ? -1 : 1))
  }
}

const lifetimeOf = Schema.decodeSync(AdjustmentLifetime)

const describe = () => ({ name: "ledger execute" })

const make = Effect.fnUntraced(function* ({
  adjustmentLifetime: lifetime = Decisions.ADJUSTMENT_LIFETIME,
  trial = true,
  ...options
}: LedgerOptions) {
  const adjustmentLifetime = lifetimeOf(Duration.toMillis(lifetime))
  const count = yield* Metrics.countCredits
  const isTracing = yield* Spans.isTracing
  const { store, appendFailedAt } = yield* measuredStore
  const { begin: _, ...accounts } = yield* Aggregate.make(Account, { ...options, snapshots: accountSnapshots }).pipe(
    Effect.provideService(EventStore.EventStore, store)
  )
  yield* Metrics.unsavedStreams(() => accounts.unsaved().length)
  const counted = (committed: Committed): Committed => {
    for (const event of committed.events) countMoved(count, event)
    return committed
  }
  const execute: Ledger["Service"]["execute"] = (accountId, decision, metadata) => {
    const executed = Effect.map(accounts.execute(accountId, decision, metadata), counted)
    return isTracing ? Spans.around(executed, describe) : executed
  }
  const counting =
    <E>(told: Told<Committed, E>): Told<Committed, E> =>
    (exit) => {
      if (Exit.isSuccess(exit)) counted(exit.value)
      told(exit)
    }
  const submit: Ledger["Service"]["submit"] = (accountId, decision, metadata, context, told) => {
    if (isTracing) fork(execute(accountId, decision, metadata), context, told, { uninterruptible: true })
    else accounts.submit(accountId, decision, metadata, counting(told))
  }
  const submitIf: Ledger["Service"]["submitIf"] = (conditions, accountId, decision, metadata, context, told) => {
    const send = (tell: typeof told) => void accounts.submitIf(conditions, accountId, decision, metadata, counting(tell))
    if (isTracing) fork(Spans.around(Effect.callback(send), describe), context, told, { uninterruptible: true })
    else send(told)
  }
  return Ledger.of({
    ...accounts,
    execute,
    submit,
    submitIf,
    recorded: (accountId) =>
      Effect.suspend(() => {
        const account = accounts.known(accountId)
        if (account !== undefined) return Effect.succeed(account.memory.recorded)
        // A lower number is safe: the lookup is stale more often
        return Effect.match(accounts.read(accountId), { onSuccess: ({ state }) => state.memory.recorded, onFailure: () => 0 })
      }),
    balance: balanceAt(store, accounts.read),
    refund: Effect.fn("Ledger.refund")(function* (accountId, reservationId, { reason, amount }, metadata) {
      const charge = yield* chargeOf(store, accountId, reservationId)
      return yield* execute(accountId, Decisions.refund(charge, reason, amount, adjustmentLifetime), metadata)
    }),
    hasTrial: trial,
    trialOf: ({ at, state }) => (trial ? trialOf(Decisions.asOf(state, at)) : undefined),
    adjustmentLifetime,
    ending: endingOf(store),
    appendFailedAt
  })
})

type Store = EventStore.EventStore["Service"]

/** The event store with its appends measured, and when one last failed, if none has succeeded since. */
const measuredStore = Effect.gen(function* () {
  const store = yield* EventStore.EventStore
  const clock = yield* Clock.Clock
  const time = yield* Metrics.timeAppends
  let failedAt: Timestamp | undefined
  const append = EventStore.observeAppend(store.append, time.begin, (began, exit) => {
    if (Exit.isSuccess(exit)) failedAt = undefined
    else if (isOfTheStore(exit.cause)) failedAt = clock.currentTimeMillisUnsafe()
    time.end(began, exit)
  })
  return { store: { ...store, append }, appendFailedAt: () => failedAt }
})

/** Whether the store failed to write. A wrong clock of this host and a conflict with another writer are not failures of the store. */
const isOfTheStore = ({ reasons }: Cause.Cause<EventStore.AppendFailure>): boolean =>
  reasons.some(
    (reason) =>
      reason._tag === "Fail" &&
      (reason.error._tag === "AppendInDoubt" || (reason.error._tag === "StoreUnavailable" && reason.error.why === undefined))
  )

const countMoved = (count: Effect.Success<typeof Metrics.countCredits>, event: AccountEvent): void => {
  switch (event._tag) {
    case "OperationSucceeded":
      return count("charged", event.charged)
    case "Refunded":
      return count(event.stage, event.amount)
    case "CreditsGranted":
      return count("granted", event.amount)
  }
}

/** The events of an account with their times, from a revision on. */
const history = (store: Store, accountId: string, from?: EventStore.Revision) => {
  const stream = StreamName.make(Account.category, accountId)
  return store.readStream(stream, from === undefined ? {} : { from }).pipe(
    Stream.mapEffect((event) =>
      Effect.try({
        try: () => ({ at: HashChain.timeOf(event), event: codec.decode(event.type, event.data) }),
        catch: (error) => new Aggregate.StreamRefused({ stream, revision: event.revision, reason: String(error) })
      })
    )
  )
}

const balanceAt = (store: Store, read: Ledger["Service"]["read"]) =>
  Effect.fn("Ledger.balance")(function* (accountId: string, at?: Timestamp) {
    // The account's time may be ahead of this host's clock
    const current = yield* read(accountId)
    const account =
      at === undefined || at >= current.at
        ? current.state
        : yield* Stream.runFold(
            Stream.takeWhile(history(store, accountId), (past) => past.at <= at),
            () => initial,
            (state, { event, at }) => Account.evolve(state, event, at)
          )
    if (account.status === "absent") return yield* new Decisions.AccountNotFound()
    return balanceOf(accountId, account, at ?? current.at)
  })

/** The charge of a settled call, and the terms of the charged lots. */
const chargeOf = Effect.fnUntraced(function* (store: Store, accountId: string, reservationId: string) {
  const grants = new Map<string, Decisions.Charge["terms"][number]>()
  let settled: EventOf<"OperationSucceeded"> | undefined
  yield* Stream.runForEach(history(store, accountId), ({ event, at }) =>
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
  return { reservationId, charged, lots, terms: lots.flatMap(({ lotId }) => grants.get(lotId) ?? []) }
})

const isEnding = (event: AccountEvent): event is Ending =>
  event._tag === "OperationSucceeded" ||
  (event._tag === "Refunded" && event.stage === "reserved") ||
  event._tag === "TrialUsed" ||
  event._tag === "TrialReleased"

const endingOf =
  (store: Store): Ledger["Service"]["ending"] =>
  (accountId, reservationId, from) =>
    history(store, accountId, from).pipe(
      Stream.map(({ event }) => event),
      Stream.filter(isEnding),
      Stream.filter((event) => event.reservationId === reservationId),
      Stream.runHead,
      Effect.map(Option.getOrUndefined)
    )
