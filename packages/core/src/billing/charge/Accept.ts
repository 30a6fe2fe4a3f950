/**
 * A call that becomes a job: hold, store the input, keep the reply, accept, answer. From then on the job's stream decides how its hold
 * ends. Until then nothing runs, so whatever fails is abandoned there, and its hold is released.
 */
import { type Duration, Effect, Fiber } from "effect"
import * as Credits from "../../Credits.ts"
import * as Acceptance from "../../jobs/Acceptance.ts"
import { idOf as jobIdOf } from "../../jobs/Job.ts"
import type { JobCall } from "../../jobs/Jobs.ts"
import { unreadable } from "../../jobs/JobView.ts"
import { outcome } from "../../ledger/Account.ts"
import type { AnyJob, ReadError } from "../../work/Operation.ts"
import type { OperationError, OperationFailed } from "../../work/OperationError.ts"
import type { Done } from "../../work/Perform.ts"
import { isTransient } from "../../work/Transient.ts"
import * as Amends from "./Amends.ts"
import { available, type Call, type ChargeError, type Held, OutcomeUnknown, type Reply, ResultWithheld } from "./Call.ts"
import * as Free from "./Free.ts"
import * as Hold from "./Hold.ts"
import * as Replay from "./Replay.ts"
import { type Services, TRY_AGAIN } from "./Services.ts"
import { answered } from "./Settle.ts"

type Needs = Replay.Needs & Amends.Needs

export const call = <E extends OperationError, R>(
  needs: Needs,
  asked: Call<E, R>,
  operation: AnyJob<E, R>
): Effect.Effect<Reply, E | ChargeError, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const held = asked.cost === 0 ? yield* claimed(needs, asked) : yield* Hold.make(needs, asked)
      if (held._tag === "Replayed") return held.reply
      const job = jobOf(held)
      const prepare = Acceptance.prepare(needs.jobs, operation, asked.input, job)
      const { accept, done } = yield* Effect.tapCause(restore(prepare), () => abandon(needs, held, job))
      yield* Effect.tapCause(Replay.keepOrYield(needs, held, done), () => abandon(needs, held, job))
      yield* accepted(needs, held, job, accept)
      return yield* replyOf(needs, held, job, done)
    })
  )

const claimed = <E extends OperationError, R>(needs: Needs, asked: Call<E, R>): Effect.Effect<Held<E, R>, ChargeError> =>
  Effect.as(Free.claim(needs, asked), Free.heldFor(asked))

const jobOf = ({ call: { accountId, quantity, requestId, reservationId }, hold }: Held): JobCall => ({
  accountId,
  requestId,
  jobId: jobIdOf(reservationId),
  reservationId: hold === undefined ? null : reservationId,
  quantity
})

/** Appends the acceptance. Where the store does not say whether it was written, a caller without a key is promised that it costs nothing. */
const accepted = (needs: Needs, held: Held, job: JobCall, accept: Acceptance.Prepared["accept"]): Effect.Effect<void, ChargeError> => {
  const { key, operation } = held.call
  return accept.pipe(
    Effect.retry({ while: isTransient, ...TRY_AGAIN }),
    Effect.tapError((error) => {
      if (!isTransient(error)) return abandon(needs, held, job)
      if (key !== undefined) return Effect.void
      const promise = Amends.promise(needs, { ...idsOf(held.call), operation: operation.key })
      return Effect.andThen(promise, abandon(needs, held, job))
    }),
    Effect.mapError((error) => (error._tag === "JobWasRefused" ? new ResultWithheld() : isTransient(error) ? new OutcomeUnknown() : error))
  )
}

/** In the background, for as long as it takes: the caller waits a moment for it. A job that was never accepted is refused after its time. */
const abandon = (needs: Needs, { call, hold }: Held, job: JobCall): Effect.Effect<void> => {
  const { jobs, scope, unanswered } = needs
  return jobs.abandon(job).pipe(
    // The job may have succeeded by then
    Effect.andThen(hold === undefined ? Free.unclaim(needs, call) : Effect.asVoid(Amends.makeFree(needs, idsOf(call)))),
    Effect.andThen(unanswered.remove(call.reservationId)),
    Effect.retry({ while: isTransient, schedule: Amends.IN_BACKGROUND }),
    Effect.catchCause((cause) => Effect.logWarning("A job could not be abandoned", { jobId: job.jobId }, cause)),
    Effect.forkIn(scope),
    Effect.flatMap((fiber) => Effect.asVoid(Effect.timeoutOption(Fiber.join(fiber), Amends.WRITTEN_WITHIN)))
  )
}

const idsOf = ({ accountId, requestId, reservationId }: Call) => ({ accountId, requestId, reservationId })

const replyOf = (needs: Needs, { call, hold }: Held, { jobId }: JobCall, done: Done): Effect.Effect<Reply> => {
  const job = { id: jobId }
  if (hold === undefined) return Effect.map(Free.reply(needs, call, done), (reply) => ({ ...reply, job }))
  return Effect.succeed({ ...answered(call, done, { charged: Credits.zero, balance: available(hold) }), job })
}

/**
 * The reply of a call that became a job, once the job has ended, or after `within`: its data, and what the job has charged by then, so that
 * the replies of an account add up to its balance. `UpstreamUnavailable` where a store does not answer: the job was accepted all the same.
 */
export const awaitEnd = (
  services: Pick<Services, "jobs" | "ledger">,
  operation: AnyJob,
  accountId: string,
  accepted: Accepted,
  within?: Duration.Input
): Effect.Effect<Awaited, ReadError | OperationFailed> =>
  Effect.mapError(ended(services, operation, accountId, accepted, within), (error) =>
    error._tag === "OperationFailed" || error._tag === "UpstreamUnavailable" ? error : unreadable(operation.family.resource)(error)
  )

/** The reply of a call that became a job. */
export type Accepted = Reply & Required<Pick<Reply, "job">>

/** A reply; `ended`: whether it is final. */
export interface Awaited {
  readonly reply: Reply
  readonly ended: boolean
}

const ended = Effect.fnUntraced(function* (
  { jobs, ledger }: Pick<Services, "jobs" | "ledger">,
  operation: AnyJob,
  accountId: string,
  accepted: Accepted,
  within: Duration.Input | undefined
) {
  const { id: jobId } = accepted.job
  const answer = yield* Acceptance.answer(jobs, operation, { accountId, jobId }, within)
  const reply: Reply = { ...accepted, data: answer.data }
  if (!answer.ended) return { reply, ended: false }
  yield* jobs.settle(jobId)
  const { state: job } = yield* jobs.read(jobId)
  const account = yield* ledger.read(accountId)
  const reservationId = "accepted" in job ? job.accepted.reservationId : null
  const end =
    reservationId === null ? undefined : (outcome(account.state, reservationId) ?? (yield* ledger.ending(accountId, reservationId)))
  const charged = end !== undefined && "charged" in end ? end.charged : Credits.zero
  return { reply: { ...reply, billed: { charged, balance: available(account) } }, ended: true }
})
