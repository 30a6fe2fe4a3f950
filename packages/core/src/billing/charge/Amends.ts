/**
 * Corrections after a failure: releases holds, refunds charges, and makes calls free whose outcome is unknown. It releases a hold at once;
 * if the store does not answer, it retries in the background; at the latest, the hold's expiry releases it.
 */
import type { Aggregate } from "@millrace/event-sourcing"
import { Cause, Effect, Fiber, Schedule, type Scope } from "effect"
import { trialOutcome } from "../../ledger/Account.ts"
import * as Decisions from "../../ledger/Decisions.ts"
import * as Reason from "../../work/Reason.ts"
import { isTransient } from "../../work/Transient.ts"
import type { CallInDoubt } from "../CallsInDoubt.ts"
import { type Call, isRecoverable, OutcomeUnknown } from "./Call.ts"
import { type Services, TRY_AGAIN } from "./Services.ts"

export type Needs = Pick<Services, "ledger" | "callsInDoubt" | "vault" | "scope">

/** The schedule of retries in the background. It never ends. */
const RETRIES = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("10 seconds")])
/** How long a caller waits for a correction that goes on in the background. */
const WAITED_FOR = "1 second"

/**
 * Starts a correction in the background of `scope`, and retries it while a store does not answer. `failed` is logged with `facts` if it fails
 * otherwise.
 */
const inBackground = <E extends { readonly _tag: string }>(
  scope: Scope.Scope,
  correction: Effect.Effect<void, E>,
  failed: string,
  facts: object
): Effect.Effect<Fiber.Fiber<void>> =>
  correction.pipe(
    Effect.retry({ while: isTransient, schedule: RETRIES }),
    Effect.catchCause((cause) => Effect.logWarning(failed, facts, cause)),
    Effect.forkIn(scope)
  )

/**
 * Like {@link inBackground}, and waits at most a second for the correction: it must not be lost because a store is slow, and the answer must
 * not wait for the store.
 */
export const soon = <E extends { readonly _tag: string }>(
  scope: Scope.Scope,
  correction: Effect.Effect<void, E>,
  failed: string,
  facts: object
): Effect.Effect<void> =>
  Effect.flatMap(inBackground(scope, correction, failed, facts), (fiber) =>
    Effect.asVoid(Effect.timeoutOption(Fiber.await(fiber), WAITED_FOR))
  )

// releasing a hold

/** Releases the hold of a call whose work failed or was interrupted, then fails as the work did. */
export const failed = <E>(needs: Needs, call: Call, cause: Cause.Cause<E>): Effect.Effect<never, E | OutcomeUnknown> => {
  const failure = Effect.failCause(cause)
  if (Cause.hasInterruptsOnly(cause)) return Effect.andThen(release(needs, call, "cancelled"), failure)
  const sealed = Effect.suspend(() => Reason.seal(needs.vault, call.accountId, Reason.of(cause, call.input)))
  return sealed.pipe(
    // Whatever becomes of the reason, the hold is released
    Effect.catchDefect(() => Effect.undefined),
    Effect.flatMap((sealed) => release(needs, call, "service_error", sealed)),
    Effect.andThen(failure)
  )
}

/**
 * Releases a hold, in the background if the store does not answer. A recoverable call then fails with `OutcomeUnknown`, because recovery
 * may still charge it at the hold's expiry. `failure`: the sealed reason.
 */
export const release = (
  needs: Needs,
  call: Call,
  reason: "cancelled" | "service_error",
  failure?: string
): Effect.Effect<void, OutcomeUnknown> => {
  const metadata = { $correlationId: call.requestId, ...(failure === undefined ? {} : { failure }) }
  const released = needs.ledger.execute(call.accountId, Decisions.release(call.reservationId, reason), metadata)
  return released.pipe(
    // The store works, but other commands of the account are queued
    Effect.catchTag("Busy", () => Effect.retry(released, { while: ({ _tag }) => _tag === "Busy", ...TRY_AGAIN })),
    Effect.asVoid,
    Effect.catch(() => (isRecoverable(call.operation) ? outcomeUnknown(needs, call) : correctInBackground(needs, call)))
  )
}

// calls with an unknown outcome

/** Fails with `OutcomeUnknown`. A caller without an idempotency key cannot retry safely, so the call is made free; that is stored first. */
export const outcomeUnknown = (needs: Needs, call: Call): Effect.Effect<never, OutcomeUnknown> => {
  const { accountId, key, requestId, reservationId } = call
  const promised = key === undefined ? promise(needs, { accountId, requestId, reservationId }) : Effect.void
  return promised.pipe(Effect.andThen(correctInBackground(needs, call)), Effect.andThen(Effect.fail(new OutcomeUnknown())))
}

/**
 * Stores the promise that the call is free, so that another process keeps it if this one dies. If the store does not take it within a second,
 * it is stored in the background. One that is stored after the call was made free is removed by recovery.
 */
export const promise = (
  { callsInDoubt, scope }: Pick<Needs, "callsInDoubt" | "scope">,
  call: Omit<CallInDoubt, "at">
): Effect.Effect<void> =>
  soon(scope, callsInDoubt.add(call), "The promise that a call is free could not be stored", { requestId: call.requestId })

/**
 * In the background, makes a call without a key free. Releases the hold of a call with a key, unless it was settled: then it is replayed.
 */
export const correctInBackground = (needs: Needs, { accountId, key, requestId, reservationId }: Call): Effect.Effect<void> => {
  const { ledger, scope, callsInDoubt } = needs
  const call = { accountId, requestId, reservationId }
  const end =
    key === undefined
      ? Effect.flatMap(makeFree(needs, call), (known) => (known ? callsInDoubt.remove(reservationId) : Effect.void))
      : endedAnyway(ledger.execute(accountId, Decisions.release(reservationId, "service_error"), { $correlationId: requestId }))
  return Effect.asVoid(inBackground(scope, end, "A call that failed could not be released or refunded", { requestId }))
}

/** Releases the hold of a call or refunds its charge. False if the account has neither, or not yet. */
export const makeFree = (
  { ledger }: Pick<Needs, "ledger">,
  { accountId, requestId, reservationId }: Omit<CallInDoubt, "at">
): Effect.Effect<boolean, Aggregate.Failure> => {
  const metadata = { $correlationId: requestId }
  return ledger.execute(accountId, Decisions.release(reservationId, "service_error"), metadata).pipe(
    Effect.catchTag(["AlreadyEnded", "ReservationNotFound"], () =>
      ledger.refund(accountId, reservationId, { reason: "service_error" }, metadata)
    ),
    Effect.as(true),
    // A slot of the trial that was used costs no credits, and stays used
    Effect.catchTag("ReservationNotFound", (error) =>
      Effect.flatMap(ledger.read(accountId), ({ state }) =>
        trialOutcome(state, reservationId) === undefined ? Effect.fail(error) : Effect.succeed(true)
      )
    ),
    // It was never held, is not held yet, or was released long ago
    Effect.catchTag("ReservationNotFound", () => Effect.succeed(false)),
    // The whole charge is refunded, so it cannot be exceeded
    Effect.catchTag("RefundExceedsCharge", Effect.die)
  )
}

/** Ignores that another host already ended the hold. */
export const endedAnyway = (
  end: Effect.Effect<unknown, Decisions.AlreadyEnded | Decisions.ReservationNotFound | Decisions.HoldExpired | Aggregate.Failure>
): Effect.Effect<void, Aggregate.Failure> =>
  Effect.asVoid(Effect.catchTag(end, ["AlreadyEnded", "ReservationNotFound", "HoldExpired"], () => Effect.void))
