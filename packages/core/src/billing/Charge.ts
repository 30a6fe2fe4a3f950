/**
 * The order of a billed call: check, hold, run, keep the reply, settle, answer. Each step is one hop forward, and wherever a call
 * stops, its hold ends once: captured or refunded. The windows between the steps are those of the ledger's guide.
 */
import { hash } from "node:crypto"
import { Aggregate, type StateStore, StreamName } from "@millrace/event-sourcing"
import { Cause, Context, Duration, Effect, Exit, Fiber, Layer, Schedule, Schema, type Scope } from "effect"
import * as Credits from "../Credits.ts"
import { newReservationId } from "../Ids.ts"
import { type JobWasRefused, idOf as jobIdOf } from "../jobs/Job.ts"
import type { JobCall, JobDefinition } from "../jobs/JobDefinition.ts"
import { type Account, Account as AccountDecider, hold as openHold, outcome } from "../ledger/Account.ts"
import * as Decisions from "../ledger/Decisions.ts"
import { type Committed, Ledger } from "../ledger/Ledger.ts"
import * as Lots from "../ledger/Lots.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Spans from "../observability/Spans.ts"
import type { Page } from "../operations/Operation.ts"
import type { OperationError, UpstreamUnavailable } from "../operations/OperationError.ts"
import { Vault, type VaultFailure } from "../vault/Vault.ts"
import { CircuitBreaker } from "./CircuitBreaker.ts"
import { type NotPriced, PriceBook } from "./PricePlan.ts"
import { Replies, type StoredReply } from "./Replies.ts"
import { Unanswered, type UnansweredCall } from "./Unanswered.ts"
import { type Done, encode, make as makeAttempt, type Runnable, upstreamOf } from "./Work.ts"

export type { Runnable } from "./Work.ts"

/** Who calls, and how. */
export interface Caller {
  readonly accountId: string
  readonly requestId: string
  /** `key` as the caller sent it; `request` a text that differs whenever the request does. Neither is written anywhere. */
  readonly idempotency?: { readonly key: string; readonly request: string }
  /** A dearer call is refused before anything is held. */
  readonly maxCost?: Credits.Credits
}

/** A success. */
export interface Reply {
  /** Of the call that did the work: the first one's, when it is replayed. */
  readonly requestId: string
  /** The operation's data as JSON text, exactly as it was first answered. */
  readonly data: string
  /** What the call cost, and what is available now. Absent where a free call was done, but the balance could not be read any more. */
  readonly billed?: { readonly charged: Credits.Credits; readonly balance: Credits.Credits }
  readonly replayed: boolean
  /** The answer is not the last word: seconds after which to ask again. */
  readonly retryAfter?: number
  /** Where the answer is one page of many. */
  readonly page?: Page
  /** What the call became. It is charged once that has succeeded; until then its price is held. */
  readonly job?: { readonly id: string }
}

// errors

export class CostExceedsLimit extends Schema.TaggedError<CostExceedsLimit>()("CostExceedsLimit", {
  cost: Credits.Credits,
  limit: Credits.Credits
}) {}
/** The work was done, but its hold had ended before it could be charged: nothing was charged, nothing is answered. */
export class ResultWithheld extends Schema.TaggedError<ResultWithheld>()("ResultWithheld", {}) {}
/** The store did not say in time whether the call was settled. With a key, a retry tells; without, it is given back in any case. */
export class OutcomeUnknown extends Schema.TaggedError<OutcomeUnknown>()("OutcomeUnknown", {}) {}
/** The call under this key succeeded, but its reply was not kept or is gone. It does not run again. */
export class ReplyUnavailable extends Schema.TaggedError<ReplyUnavailable>()("ReplyUnavailable", {}) {}

export type ChargeError =
  | Exclude<Decisions.ReserveRefusal, Decisions.AlreadySucceeded | Decisions.LookupStale | Decisions.AlreadyEnded>
  | CostExceedsLimit
  | ResultWithheld
  | OutcomeUnknown
  | ReplyUnavailable
  | UpstreamUnavailable
  | NotPriced
  | Aggregate.Failure
  | StateStore.StateUnavailable
  | VaultFailure

export interface ChargeOptions {
  /** What becomes of a success whose hold has ended: its result is withheld, or charged under a new reservation. */
  readonly late?: "withhold" | "charge"
}

export class Charge extends Context.Service<
  Charge,
  {
    /** Runs an operation for a caller and charges what was done. Whatever fails is refunded in full. */
    readonly run: <Input, A, E extends OperationError, R>(
      operation: Runnable<Input, A, E, R>,
      input: Input,
      caller: Caller
    ) => Effect.Effect<Reply, E | ChargeError, R>
    /** Runs an operation for whoever asks, without an account. It must be priced at nothing: a defect where it is not. */
    readonly runPublic: <Input, A, E extends OperationError, R>(
      operation: Runnable<Input, A, E, R>,
      input: Input,
      requestId: string
    ) => Effect.Effect<Reply, E | ChargeError, R>
    /** Ends a hold that is due: by what its operation says became of the call, where it can say, else by giving it back. */
    readonly recover: <E extends OperationError, R>(
      operation: Pick<Runnable<never, unknown, E, R>, "recover" | "success"> | undefined,
      accountId: string,
      reservationId: string
    ) => Effect.Effect<void, E | Aggregate.Failure | StateStore.StateUnavailable | VaultFailure, R>
    /**
     * Gives back whatever was held or charged for a call whose caller was told {@link OutcomeUnknown}; again: nothing. False where
     * nothing is known of the call, or not yet.
     */
    readonly giveBack: (call: Omit<UnansweredCall, "at">) => Effect.Effect<boolean, Aggregate.Failure>
  }
>()("@millrace/core/billing/Charge") {
  static readonly layer = (
    options: ChargeOptions = {}
  ): Layer.Layer<Charge, never, Ledger | PriceBook | Replies | Unanswered | Vault | CircuitBreaker> => Layer.effect(Charge, make(options))
}

/** How much longer than its operation a hold lives at the least, milliseconds: time to keep the reply and settle. */
export const HOLD_MARGIN = 30_000

/**
 * The store may fail for a moment when the work is done: it is asked again for about a second before the caller is told, or longer
 * while its answers are in doubt.
 */
const TRY_AGAIN = { schedule: Schedule.exponential("20 millis"), times: 5 } as const
/** What the caller was not told in time is put right behind its back, for as long as it takes. */
const PUT_RIGHT = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("10 seconds")])

/** How long after its hold a job can be accepted, milliseconds. */
const ACCEPT_WITHIN = 30_000

/** Lookups for a kept reply before the account is too busy: each time more calls ended than an account remembers. */
const LOOKUPS = 5

/** Who calls where no account does. */
const PUBLIC = "public"

/** How long the caller waits for the promise to be written down that he shall not pay. */
const WRITTEN_WITHIN = "1 second"

const isTransient = (error: { readonly _tag: string }): boolean =>
  error._tag === "StoreUnavailable" || error._tag === "AppendInDoubt" || error._tag === "Busy" || error._tag === "StateUnavailable"

type SettleError =
  | Decisions.AlreadyEnded
  | Decisions.ReservationNotFound
  | Decisions.HoldExpired
  | Decisions.ChargeExceedsHold
  | Aggregate.Failure

/** What a call becomes that is not done when it is answered. */
interface Becomes<R> {
  readonly statusOf: JobDefinition<never, unknown, never, R>["statusOf"]
}

/** The caller's idempotency key as the ledger knows it. */
type Key = NonNullable<Decisions.Reserve["key"]>

const make = Effect.fnUntraced(function* ({ late = "withhold" }: ChargeOptions) {
  const ledger = yield* Ledger
  const prices = yield* PriceBook
  const replies = yield* Replies
  const unanswered = yield* Unanswered
  const vault = yield* Vault
  const breaker = yield* CircuitBreaker
  const scope: Scope.Scope = yield* Effect.scope
  const attempt = yield* makeAttempt
  const count = yield* Metrics.countCharges
  const spanned = yield* Spans.spanner

  /** Counted, and shown in its trace, by what became of it. */
  const observed = <E, R>(operation: string, call: Effect.Effect<Reply, E, R>): Effect.Effect<Reply, E, R> =>
    spanned(
      Effect.onExitPrimitive(call, (exit) => void count(operation, exit)),
      () => ({ name: `charge ${operation}`, attributes: { "millrace.operation": operation } })
    )

  const run = <Input, A, E extends OperationError, R>(operation: Runnable<Input, A, E, R>, input: Input, caller: Caller) =>
    observed(
      operation.key,
      Effect.suspend((): Effect.Effect<Reply, E | ChargeError, R> => {
        const begin = (key: Key | undefined) => {
          const now = runNow(operation, input, caller, key)
          return operation.local === true ? now : breaker.guard(upstreamOf(operation.key), now)
        }
        const { accountId, idempotency } = caller
        if (idempotency === undefined) return begin(undefined)
        return Effect.flatMap(lookUp(accountId, hashesOf(accountId, idempotency), operation.job), ({ key, replay }) =>
          replay === undefined ? begin(key) : Effect.succeed(replay)
        )
      })
    )

  const runPublic = <Input, A, E extends OperationError, R>(operation: Runnable<Input, A, E, R>, input: Input, requestId: string) =>
    observed(
      operation.key,
      breaker.guard(
        upstreamOf(operation.key),
        Effect.gen(function* () {
          const caller = { accountId: PUBLIC, requestId }
          yield* operation.check(input, caller)
          const { unitPrice } = yield* prices.quote(operation.key)
          if (operation.quantity(input) * unitPrice > 0)
            return yield* Effect.die(new Error(`${operation.key} has a price: it needs an account`))
          const { data } = yield* attempt(operation, input, { ...caller, reservationId: yield* newReservationId })
          const reply: Reply = { requestId, data, replayed: false }
          return reply
        })
      )
    )

  const runNow = Effect.fnUntraced(function* <Input, A, E extends OperationError, R>(
    operation: Runnable<Input, A, E, R>,
    input: Input,
    caller: Caller,
    key: Key | undefined
  ): Effect.fn.Return<Reply, E | ChargeError, R> {
    yield* operation.check(input, caller)
    const quantity = operation.quantity(input)
    const { version, unitPrice } = yield* prices.quote(operation.key)
    const cost = Credits.of(quantity * unitPrice)
    if (caller.maxCost !== undefined && cost > caller.maxCost) return yield* new CostExceedsLimit({ cost, limit: caller.maxCost })
    const reservationId = yield* newReservationId
    const { job } = operation
    if (job !== undefined) {
      const { accountId, requestId } = caller
      const reserve: Decisions.Reserve = {
        ...{ reservationId, requestId, operation: operation.key, quantity, priceVersion: version, unitPrice },
        job: { jobId: jobIdOf(reservationId), acceptWithin: ACCEPT_WITHIN },
        adjustmentLifetime: ledger.adjustmentLifetime,
        ...(key === undefined ? {} : { key })
      }
      const call = { accountId, requestId, jobId: jobIdOf(reservationId), reservationId: cost === 0 ? null : reservationId, quantity }
      const prepare = job.prepare(input, call)
      const ready = Effect.flatMap(prepare, ({ accept, data }) =>
        Effect.map(encode(operation, { data }, upstreamOf(operation.key)), (done) => ({ accept, done }))
      )
      return yield* Effect.uninterruptibleMask((restore) => accepted(job, call, reserve, restore(ready)))
    }
    const work = attempt(operation, input, { accountId: caller.accountId, requestId: caller.requestId, reservationId })
    if (cost === 0) return yield* free(caller, yield* work)
    const call: Decisions.Reserve = {
      reservationId,
      requestId: caller.requestId,
      operation: operation.key,
      quantity,
      priceVersion: version,
      unitPrice,
      lifetime: Duration.toMillis(operation.timeout) + HOLD_MARGIN,
      adjustmentLifetime: ledger.adjustmentLifetime,
      ...(operation.recover === undefined ? {} : { recoverable: true }),
      ...(key === undefined ? {} : { key })
    }
    // From the hold to its end nothing comes between but what `work` lets in
    return yield* Effect.uninterruptibleMask((restore) => billed(caller.accountId, call, restore(work)))
  })

  /** What costs nothing leaves no trace in the ledger. */
  const free = (
    { accountId, requestId }: Pick<Caller, "accountId" | "requestId">,
    { data, page, retryAfter }: Done
  ): Effect.Effect<Reply> => {
    const reply: Reply = {
      requestId,
      data,
      replayed: false,
      ...(retryAfter === undefined ? {} : { retryAfter }),
      ...(page === undefined ? {} : { page })
    }
    return Effect.match(ledger.read(accountId), {
      onFailure: () => reply,
      onSuccess: (account) => ({ ...reply, billed: { charged: Credits.zero, balance: available(account) } })
    })
  }

  /**
   * A call that becomes a job: hold, keep the input, keep the reply, accept, answer. From then on the job's stream says how its hold ends.
   * Until then nothing runs, so whatever fails is refused there, and given back.
   */
  const accepted = Effect.fnUntraced(function* <Input, A, E extends OperationError, R, EReady>(
    job: JobDefinition<Input, A, E, R>,
    call: JobCall,
    reserve: Decisions.Reserve,
    ready: Effect.Effect<{ readonly done: Done; readonly accept: Effect.Effect<void, JobWasRefused | Aggregate.Failure> }, EReady, R>
  ): Effect.fn.Return<Reply, E | EReady | ChargeError, R> {
    const { accountId, jobId, requestId } = call
    const services = yield* Effect.context<R>()
    const { reservationId } = reserve
    // Also behind the caller's back, for as long as it takes; and what was never accepted is refused when its time is over
    const abandon = Effect.provideContext(job.abandon(call), services).pipe(
      // It may have succeeded by then
      Effect.andThen(call.reservationId === null ? Effect.void : giveBack({ accountId, reservationId, requestId })),
      Effect.andThen(unanswered.remove(reservationId)),
      Effect.retry({ while: isTransient, schedule: PUT_RIGHT }),
      Effect.catchCause((cause) => Effect.logWarning("A job could not be given up", cause)),
      Effect.forkIn(scope),
      Effect.flatMap((fiber) => Effect.timeoutOption(Fiber.join(fiber), WRITTEN_WITHIN))
    )
    const hold = call.reservationId === null ? undefined : yield* held(accountId, reserve, job)
    if (hold !== undefined && "data" in hold) return hold
    const { accept, done } = yield* Effect.tapCause(ready, () => abandon)
    const { key } = reserve
    if (hold !== undefined && key !== undefined) yield* Effect.tapCause(keep(accountId, reserve, key, hold.revision, done), () => abandon)
    yield* accept.pipe(
      Effect.retry({ while: isTransient, ...TRY_AGAIN }),
      // Whoever has no key cannot ask what became of it, and is promised that it costs nothing
      Effect.tapError((error) =>
        !isTransient(error)
          ? abandon
          : key === undefined
            ? Effect.andThen(promise({ accountId, reservationId, requestId, operation: reserve.operation }), abandon)
            : Effect.void
      ),
      Effect.mapError((error) =>
        error._tag === "JobWasRefused" ? new ResultWithheld() : isTransient(error) ? new OutcomeUnknown() : error
      )
    )
    const answer = { requestId, data: done.data, replayed: false, job: { id: jobId } }
    return hold === undefined
      ? { ...(yield* free(call, done)), ...answer }
      : { ...answer, billed: { charged: Credits.zero, balance: available(hold) } }
  })

  const billed = Effect.fnUntraced(function* <E, R>(
    accountId: string,
    call: Decisions.Reserve,
    work: Effect.Effect<Done, E, R>
  ): Effect.fn.Return<Reply, E | ChargeError, R> {
    const hold = yield* held(accountId, call)
    if ("data" in hold) return hold
    const exit = yield* Effect.exit(work)
    if (Exit.isSuccess(exit)) return yield* settled(accountId, call, hold, exit.value)
    yield* giveUp(accountId, call, Cause.hasInterruptsOnly(exit.cause) ? "cancelled" : "service_error")
    return yield* Effect.failCause(exit.cause)
  })

  // 2: hold, unless the key turns out to have done its work

  const held = <R = never>(
    accountId: string,
    call: Decisions.Reserve,
    job?: Becomes<R>,
    lookups = 1
  ): Effect.Effect<Committed | Reply, ChargeError, R> =>
    Effect.catch(
      ledger.execute(accountId, Decisions.reserve(call), { $correlationId: call.requestId }),
      (error): Effect.Effect<Committed | Reply, ChargeError, R> => {
        switch (error._tag) {
          case "AlreadySucceeded":
            return replayAgain(accountId, call, job)
          case "LookupStale":
            return heldAfterAll(accountId, call, job, lookups)
          case "AlreadyEnded":
            // A reservation id is new for each attempt
            return Effect.die(error)
          case "AppendInDoubt":
            // A job's hold goes back by itself: nothing accepts it any more
            return Effect.andThen(call.job === undefined ? putRight(accountId, call) : Effect.void, Effect.fail(error))
          default:
            return Effect.fail(error)
        }
      }
    )

  /** While the call waited, the account forgot a success that the reply may have been kept for since. */
  const heldAfterAll = Effect.fnUntraced(function* <R>(
    accountId: string,
    { key: before, ...call }: Decisions.Reserve,
    job: Becomes<R> | undefined,
    lookups: number
  ): Effect.fn.Return<Committed | Reply, ChargeError, R> {
    if (before === undefined) return yield* Effect.die(new Error("Only a call with a key can be stale"))
    if (lookups >= LOOKUPS) return yield* new Aggregate.Busy({ stream: StreamName.make(AccountDecider.category, accountId) })
    const { key, replay } = yield* lookUp(accountId, before, job)
    return replay ?? (yield* held(accountId, { ...call, key }, job, lookups + 1))
  })

  /** It succeeded between the lookup and the hold. */
  const replayAgain = Effect.fnUntraced(function* <R>(accountId: string, { key }: Decisions.Reserve, job: Becomes<R> | undefined) {
    return (key && (yield* replayOf(accountId, key, job))) ?? (yield* new ReplyUnavailable())
  })

  /**
   * The kept reply, if the account says that its call succeeded, or the job that it became; nothing when the key is free for a new
   * attempt. A job that began has the key, however it ended.
   */
  const replayOf = Effect.fnUntraced(function* <R = never>(accountId: string, key: Key, job?: Becomes<R>) {
    const kept = yield* replies.find(accountId, key.hash)
    if (kept === undefined) return undefined
    const account = yield* ledger.read(accountId)
    const end = yield* endOf(accountId, account, kept)
    const { data, fingerprint, requestId, reservationId } = kept
    const jobId = jobIdOf(reservationId)
    const began = job !== undefined && (yield* job.statusOf(jobId)) === "begun"
    if (end === "refunded" && !began) return undefined
    if (fingerprint !== key.fingerprint) return yield* new Decisions.KeyReused()
    if (end === "open" && !began) return yield* new Decisions.InFlight({ reservationId })
    if (data === null) return yield* new ReplyUnavailable()
    const charged = typeof end === "string" ? Credits.zero : end.charged
    const reply: Reply = { requestId, data, billed: { charged, balance: available(account) }, replayed: true }
    return began ? { ...reply, job: { id: jobId } } : reply
  })

  /** In the account's memory, and beyond it in its stream. */
  const endOf = Effect.fnUntraced(function* (
    accountId: string,
    { state, at }: Aggregate.Current<Account>,
    { job, reservationId, revision }: StoredReply
  ) {
    const account = Decisions.asOf(state, at)
    if (openHold(account, reservationId) !== undefined) return "open"
    const end = outcome(account, reservationId) ?? (yield* ledger.ending(accountId, reservationId, revision))
    if (end !== undefined && "charged" in end) return end
    // A job that began has its key, whatever operation is called under it next; one that did not was abandoned
    return job === true && end?.reason !== "abandoned" ? "ended" : "refunded"
  })

  // 3, the work itself, is in Work.ts. 4 and 5: keep the reply, settle

  const settled = (accountId: string, call: Decisions.Reserve, hold: Committed, done: Done): Effect.Effect<Reply, ChargeError> => {
    const { key, requestId, reservationId } = call
    const settle = ledger.execute(accountId, Decisions.settle(settleOf(reservationId, done)), { $correlationId: requestId })
    const answered = Effect.matchCauseEffect(settle, {
      onSuccess: (committed) => Effect.succeed(replyOf(call, done, committed)),
      onFailure: (cause) => notSettled(accountId, call, hold, done, settle, cause)
    })
    if (key === undefined) return answered
    const kept = Effect.tapCause(keep(accountId, call, key, hold.revision, done), () => giveUp(accountId, call, "service_error"))
    return Effect.andThen(kept, answered)
  }

  /** What follows when the first attempt at settling failed; apart, for a call that succeeds at once need not prepare for it. */
  const notSettled = (
    accountId: string,
    call: Decisions.Reserve,
    hold: Committed,
    done: Done,
    settle: Effect.Effect<Committed, SettleError>,
    first: Cause.Cause<SettleError>
  ): Effect.Effect<Reply, ChargeError> => {
    let attempt: Effect.Effect<Committed, SettleError> = Effect.failCause(first)
    const again = Effect.suspend(() => {
      const now = attempt
      attempt = settle
      return now
    })
    return again.pipe(
      Effect.map((committed) => replyOf(call, done, committed)),
      // More than the account remembers has ended since, while the store did not answer: its stream knows
      Effect.catchTag("ReservationNotFound", () => endedLongAgo(accountId, call, hold, done)),
      Effect.retry({ while: isTransient, ...TRY_AGAIN }),
      Effect.catch((error): Effect.Effect<Reply, ResultWithheld | OutcomeUnknown> => {
        switch (error._tag) {
          case "ChargeExceedsHold":
            // The operation counted more than it was held for: a bug of ours, not the caller's debt
            return Effect.andThen(giveUp(accountId, call, "service_error"), Effect.die(error))
          case "HoldExpired":
          case "AlreadyEnded":
            return late === "charge" ? chargedLate(accountId, call, hold, done) : Effect.fail(new ResultWithheld())
          default:
            return unknown(accountId, call)
        }
      })
    )
  }

  const keep = (accountId: string, { job, reservationId, requestId }: Decisions.Reserve, key: Key, revision: number, { data }: Done) => {
    const reply = {
      reservationId,
      requestId,
      fingerprint: key.fingerprint,
      revision,
      data,
      ...(job === undefined ? {} : { job: true as const })
    }
    return replies.keep(accountId, key.hash, reply, isOver(accountId))
  }

  /** Another attempt's reply that will never be replayed. */
  const isOver = (accountId: string) => (there: StoredReply) =>
    Effect.map(
      Effect.flatMap(ledger.read(accountId), (account) => endOf(accountId, account, there)),
      (end) => end === "refunded"
    )

  const endedLongAgo = Effect.fnUntraced(function* (accountId: string, call: Decisions.Reserve, hold: Committed, { data }: Done) {
    const { reservationId, requestId } = call
    const end = yield* ledger.ending(accountId, reservationId, hold.revision)
    if (end?._tag !== "OperationSucceeded") return yield* new Decisions.HoldExpired({ reservationId })
    const balance = available(yield* ledger.read(accountId))
    const reply: Reply = { requestId, data, billed: { charged: end.charged, balance }, replayed: false }
    return reply
  })

  /** A reservation of its own: so its key is looked up again, for another attempt may have used it since. */
  const chargedLate = Effect.fnUntraced(
    function* (accountId: string, { key: before, ...late }: Decisions.Reserve, hold: Committed, done: Done) {
      const found = before && (yield* lookUp(accountId, before))
      if (found?.replay !== undefined) return yield* new ResultWithheld()
      const key = found?.key
      const call: Decisions.Reserve = { ...late, reservationId: yield* newReservationId, ...(key && { key }) }
      if (key !== undefined) yield* keep(accountId, call, key, hold.revision, done)
      const settle = settleOf(late.reservationId, done)
      const committed = yield* ledger.execute(accountId, Decisions.settleLate(call, settle), { $correlationId: call.requestId }).pipe(
        Effect.retry({ while: isTransient, ...TRY_AGAIN }),
        Effect.catchIf(isTransient, () => unknown(accountId, call))
      )
      // Another attempt may have kept its own meanwhile, and then failed
      if (key !== undefined) yield* Effect.ignore(keep(accountId, call, key, hold.revision, done))
      return replyOf(call, done, committed)
    },
    Effect.mapError((error) => (error._tag === "OutcomeUnknown" ? error : new ResultWithheld()))
  )

  const replyOf = ({ reservationId, requestId }: Decisions.Reserve, { data, retryAfter }: Done, committed: Committed): Reply => {
    const known = outcome(committed.state, reservationId)
    const charged = known?._tag === "succeeded" ? known.charged : Credits.zero
    const reply: Reply = { requestId, data, billed: { charged, balance: available(committed) }, replayed: false }
    return retryAfter === undefined ? reply : { ...reply, retryAfter }
  }

  // Ends that are not successes

  /**
   * Refunds a hold now if the store answers; if not, behind the caller's back, and at the latest its expiry does. But a hold that
   * recovery asks about may be charged at its expiry, for what was done may stand: then nobody can be told that it was not.
   */
  const giveUp = (
    accountId: string,
    call: Decisions.Reserve,
    reason: "cancelled" | "service_error"
  ): Effect.Effect<void, OutcomeUnknown> => {
    const refund = ledger.execute(accountId, Decisions.release(call.reservationId, reason), { $correlationId: call.requestId })
    return refund.pipe(
      // The store serves, only others are first
      Effect.catchTag("Busy", () => Effect.retry(refund, { while: ({ _tag }) => _tag === "Busy", ...TRY_AGAIN })),
      Effect.asVoid,
      Effect.catch(() => (call.recoverable === true ? unknown(accountId, call) : putRight(accountId, call)))
    )
  }

  /** Tells the caller so, who without a key is promised that it costs nothing: first it is written down, if that can be done now. */
  const unknown = (accountId: string, call: Decisions.Reserve): Effect.Effect<never, OutcomeUnknown> => {
    const { key, requestId, reservationId } = call
    const promised = key === undefined ? promise({ accountId, reservationId, requestId }) : Effect.void
    return promised.pipe(Effect.andThen(putRight(accountId, call)), Effect.andThen(Effect.fail(new OutcomeUnknown())))
  }

  const promise = (call: Omit<UnansweredCall, "at">) => Effect.timeoutOption(Effect.exit(unanswered.add(call)), WRITTEN_WITHIN)

  /** The caller could not be told: without a key the call must cost nothing, with one a retry may still find it settled. */
  const putRight = (accountId: string, { reservationId, requestId, key }: Decisions.Reserve) => {
    const call = { accountId, reservationId, requestId }
    const end =
      key === undefined
        ? Effect.flatMap(giveBack(call), (known) => (known ? unanswered.remove(reservationId) : Effect.void))
        : endAnyway(ledger.execute(accountId, Decisions.release(reservationId, "service_error"), { $correlationId: requestId }))
    return end.pipe(
      Effect.retry({ while: isTransient, schedule: PUT_RIGHT }),
      Effect.catchCause((cause) => Effect.logWarning("A call could not be put right", cause)),
      Effect.forkIn(scope),
      Effect.asVoid
    )
  }

  const giveBack = ({ accountId, reservationId, requestId }: Omit<UnansweredCall, "at">) => {
    const metadata = { $correlationId: requestId }
    return ledger.execute(accountId, Decisions.release(reservationId, "service_error"), metadata).pipe(
      Effect.catchTag(["AlreadyEnded", "ReservationNotFound"], () =>
        ledger.refund(accountId, reservationId, { reason: "service_error" }, metadata)
      ),
      Effect.as(true),
      // It never was, is not yet, or was refunded long ago
      Effect.catchTag("ReservationNotFound", () => Effect.succeed(false)),
      // All of it is asked for whatever it is
      Effect.catchTag("RefundExceedsCharge", Effect.die)
    )
  }

  const recover = <E extends OperationError, R>(
    operation: Pick<Runnable<never, unknown, E, R>, "recover" | "success"> | undefined,
    accountId: string,
    reservationId: string
  ) =>
    Effect.gen(function* () {
      const { state, revision, at } = yield* ledger.read(accountId)
      const hold = openHold(state, reservationId)
      if (hold?.recoverable !== true) return yield* Effect.asVoid(ledger.execute(accountId, Decisions.applyDue))
      // It may still run, here or at another host
      if (hold.expiresAt !== undefined && hold.expiresAt > at) return
      if (operation?.recover === undefined) {
        return yield* Effect.logError("No operation here can say what became of a call", { accountId, reservationId })
      }
      const { keyHash, fingerprint, requestId } = hold
      const metadata = { $correlationId: requestId }
      const refund = (reason: "abandoned" | "service_error") =>
        endAnyway(ledger.execute(accountId, Decisions.release(reservationId, reason), metadata))
      // As in a call: what was answered is no answer, so it is not charged, and whoever operates this host is told
      const refundAndDie = (error: unknown) => Effect.andThen(refund("service_error"), Effect.die(error))

      const outcome = yield* operation.recover(reservationId)
      if (outcome === undefined) return yield* refund("abandoned")
      const done = yield* Effect.catch(encode(operation, outcome, upstreamOf(hold.operation)), refundAndDie)
      if (keyHash !== undefined && fingerprint !== undefined) {
        yield* replies.keep(accountId, keyHash, { reservationId, requestId, fingerprint, revision, data: done.data })
      }
      const settle = ledger.execute(accountId, Decisions.settle(settleOf(reservationId, done)), metadata)
      yield* endAnyway(Effect.catchTag(settle, "ChargeExceedsHold", refundAndDie))
    })

  /** Looks for a reply that was kept under a key. What the account has recorded is taken first, so the ledger can tell whether it knows the rest. */
  const lookUp = Effect.fnUntraced(function* <R = never>(accountId: string, { hash, fingerprint }: Omit<Key, "since">, job?: Becomes<R>) {
    const key: Key = { hash, fingerprint, since: yield* ledger.recorded(accountId) }
    return { key, replay: yield* replayOf(accountId, key, job) }
  })

  const hashesOf = (accountId: string, { key, request }: NonNullable<Caller["idempotency"]>) => ({
    hash: vault.hmac("idempotency-key", `${accountId}\n${key}`),
    fingerprint: vault.hmac("request-fingerprint", request)
  })

  return Charge.of({ run, runPublic, recover, giveBack })
})

const settleOf = (reservationId: string, { data, quantity }: Done): Decisions.Settle => ({
  reservationId,
  ...(quantity === undefined ? {} : { quantity }),
  replyHash: hashOf(data)
})

/** Somebody else ended it meanwhile: then it has an end, which is all that recovery is for. */
const endAnyway = (
  end: Effect.Effect<unknown, Decisions.AlreadyEnded | Decisions.ReservationNotFound | Decisions.HoldExpired | Aggregate.Failure>
): Effect.Effect<void, Aggregate.Failure> =>
  Effect.asVoid(Effect.catchTag(end, ["AlreadyEnded", "ReservationNotFound", "HoldExpired"], () => Effect.void))

/** What can be spent: what is due by then is over, whether or not it was written. */
const available = ({ state, at }: Aggregate.Current<Account>): Credits.Credits => Lots.available(Decisions.asOf(state, at).purse.lots, at)

const hashOf = (data: string): string => hash("sha256", data, "base64url")
