/**
 * A call that becomes a job: hold, store the input, keep the reply, accept, answer. Once accepted, the job's end decides how the hold ends.
 * A failure before that abandons the job and releases the hold.
 */
import type { Aggregate } from "@millrace/event-sourcing"
import { type Duration, Effect } from "effect"
import * as Credits from "../../Credits.ts"
import * as Acceptance from "../../jobs/Acceptance.ts"
import { type JobWasRefused, idOf as jobIdOf } from "../../jobs/Job.ts"
import type { JobCall } from "../../jobs/Jobs.ts"
import { unreadable } from "../../jobs/JobView.ts"
import { outcome } from "../../ledger/Account.ts"
import type { AnyJob, ReadError } from "../../work/Operation.ts"
import type { OperationError, OperationFailed } from "../../work/OperationError.ts"
import type { Done } from "../../work/Perform.ts"
import { isTransient, retryTransient } from "../../work/Transient.ts"
import * as Amends from "./Amends.ts"
import { type Admitted, billed, type Call, type ChargeError, OutcomeUnknown, type Reply, ResultWithheld } from "./Call.ts"
import * as Free from "./Free.ts"
import * as Hold from "./Hold.ts"
import * as Replay from "./Replay.ts"
import { type Services, TRY_AGAIN } from "./Services.ts"
import { answered } from "./Settle.ts"

type Needs = Replay.Needs & Amends.Needs

/** Runs the call up to the acceptance of its job. Interruptible only while it stores the input. */
export const call = <E extends OperationError, R>(
  needs: Needs,
  asked: Call<E, R>,
  operation: AnyJob<E, R>
): Effect.Effect<Reply | Hold.Outdated, E | ChargeError, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const admitted = asked.cost === 0 ? yield* Free.admit(needs, asked) : yield* Hold.make(needs, asked)
      if (admitted._tag === "Outdated") return admitted
      if (admitted._tag === "Replayed") return admitted.reply
      const job = jobOf(admitted)
      const prepare = Acceptance.prepare(needs.jobs, operation, asked.input, job)
      const prepared = yield* Effect.tapCause(restore(prepare), () => abandon(needs, admitted, job))
      const { done } = prepared
      const earlier = asked.key && (yield* Effect.tapCause(Replay.keepOrYield(needs, admitted, done), () => abandon(needs, admitted, job)))
      if (earlier !== undefined) return yield* Effect.as(abandon(needs, admitted, job), earlier.reply)
      yield* Acceptance.accept(needs.jobs, job.jobId, prepared, (append) => accepted(needs, admitted, job, append))
      return yield* replyOf(needs, admitted, job, done)
    })
  )

const jobOf = ({ _tag, call: { accountId, quantity, requestId, reservationId } }: Admitted): JobCall => ({
  accountId,
  requestId,
  jobId: jobIdOf(reservationId),
  reservationId: _tag === "Free" ? null : reservationId,
  quantity
})

/** Appends the acceptance. If the store does not confirm it, a call without an idempotency key is made free. */
const accepted = <A>(
  needs: Needs,
  admitted: Admitted,
  job: JobCall,
  append: Effect.Effect<A, JobWasRefused | Aggregate.Failure>
): Effect.Effect<A, ChargeError> => {
  const { key, operation } = admitted.call
  return append.pipe(
    retryTransient(TRY_AGAIN),
    Effect.tapError((error) => {
      if (!isTransient(error)) return abandon(needs, admitted, job)
      if (key !== undefined) return Effect.void
      const promise = Amends.promise(needs, { ...idsOf(admitted.call), operation: operation.key })
      return Effect.andThen(promise, abandon(needs, admitted, job))
    }),
    Effect.mapError((error) => (error._tag === "JobWasRefused" ? new ResultWithheld() : isTransient(error) ? new OutcomeUnknown() : error))
  )
}

/**
 * Abandons the job in the background, with retries. The caller waits a moment for it. If this process dies, `JobUpkeep` refuses the job.
 */
const abandon = (needs: Needs, { _tag, call }: Admitted, job: JobCall): Effect.Effect<void> => {
  const { jobs, scope, callsInDoubt } = needs
  const abandoned = jobs.abandon(job).pipe(
    // Refund as well: the job may have succeeded by then
    Effect.andThen(_tag === "Free" ? Free.unclaim(needs, call) : Effect.asVoid(Amends.makeFree(needs, idsOf(call)))),
    Effect.andThen(callsInDoubt.remove(call.reservationId))
  )
  return Amends.soon(scope, abandoned, "A job could not be abandoned", { jobId: job.jobId })
}

const idsOf = ({ accountId, requestId, reservationId }: Call) => ({ accountId, requestId, reservationId })

const replyOf = (needs: Needs, admitted: Admitted, { jobId }: JobCall, done: Done): Effect.Effect<Reply> => {
  const { call } = admitted
  const reply =
    admitted._tag === "Free"
      ? Free.reply(needs, call, done)
      : Effect.succeed(answered(call, done, billed(needs.ledger, admitted.hold, Credits.zero)))
  return Effect.map(reply, (reply) => ({ ...reply, job: { id: jobId } }))
}

/** The reply of a call that became a job. */
export type Accepted = Reply & Required<Pick<Reply, "job">>

/** A reply; `ended`: whether it is final. */
export interface Awaited {
  readonly reply: Reply
  readonly ended: boolean
}

/**
 * Waits at most `within` for the job that a call became. The reply has the job's charge so far, so that the charges of an account's replies
 * add up to its balance. `UpstreamUnavailable` if a store does not answer; the job is accepted in any case.
 */
export const awaitEnd = (
  { jobs, ledger }: Pick<Services, "jobs" | "ledger">,
  operation: AnyJob,
  accountId: string,
  accepted: Accepted,
  within?: Duration.Input
): Effect.Effect<Awaited, ReadError | OperationFailed> =>
  Effect.gen(function* () {
    const { id: jobId } = accepted.job
    const answer = yield* Acceptance.answer(jobs, operation, { accountId, jobId }, within)
    const reply: Reply = { ...accepted, data: answer.data }
    if (!answer.ended) return { reply, ended: false }
    yield* jobs.settle(jobId)
    const { state: job } = yield* jobs.read(jobId)
    const account = yield* ledger.read(accountId)
    const reservationId = "accepted" in job ? job.accepted.reservationId : null
    const end = reservationId && (outcome(account.state, reservationId) ?? (yield* ledger.ending(accountId, reservationId)))
    const charged = end && "charged" in end ? end.charged : Credits.zero
    return { reply: { ...reply, billed: billed(ledger, account, charged) }, ended: true }
  }).pipe(Effect.mapError((error) => (error._tag === "OperationFailed" ? error : unreadable(operation.family.resource)(error))))
