/** Accepts a call as a job, and builds its reply from the state of the job. */
import type { Aggregate, Projection } from "@millrace/event-sourcing"
import { Clock, Duration, Effect, Function, Schema } from "effect"
import type { VaultFailure } from "../vault/Vault.ts"
import { inputOf } from "../work/Contract.ts"
import type { AnyJob, InputOf } from "../work/Operation.ts"
import type { NotFound, OperationFailed } from "../work/OperationError.ts"
import { type Done, encode } from "../work/Perform.ts"
import type { Owner } from "./Documents.ts"
import * as Job from "./Job.ts"
import type { JobCall, Jobs } from "./Jobs.ts"
import { isOpen, viewer } from "./JobView.ts"

/** What is the same for all jobs of an operation: how their input is written, and their times in milliseconds. */
const termsOf = Function.memoize((operation: AnyJob) => ({
  encode: Schema.encodeUnknownSync(Schema.toCodecJson(inputOf(operation.route))),
  within: Duration.toMillis(operation.deadline),
  retention: Duration.toMillis(operation.retention)
}))

/** A job that is ready to be accepted: its input is stored. */
export interface Prepared {
  /** The reply, to be sent once the job is accepted. */
  readonly done: Done
  readonly command: Job.Accept
  /** The input as JSON text. */
  readonly input: string
}

/** Names no document. No job is accepted with it. */
const NOTHING: Job.Document = { size: 0, hash: "" }

/** Stores the input. If the job was refused meanwhile, its key was destroyed; then `accept` will fail as refused. */
const keepInput = (jobs: Jobs["Service"], owner: Owner, text: string): Effect.Effect<Job.Document, VaultFailure | Aggregate.Failure> =>
  Effect.catchTag(jobs.documents.keepFirst(owner, "input", text), "SubjectDestroyed", (destroyed) =>
    Effect.flatMap(jobs.read(owner.jobId), ({ state: job }) =>
      job.status === "refused" ? Effect.succeed(NOTHING) : Effect.fail(destroyed)
    )
  )

/** Stores the sealed input, and builds the reply for a job that is accepted now. */
export const prepare = <Op extends AnyJob>(
  jobs: Jobs["Service"],
  operation: Op,
  input: InputOf<Op>,
  { accountId, jobId, quantity, requestId, reservationId }: JobCall
): Effect.Effect<Prepared, VaultFailure | OperationFailed | Aggregate.Failure> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const { encode: encodeInput, retention, within } = termsOf(operation)
    const text = JSON.stringify(encodeInput(input))
    const command: Job.Accept = {
      accountId,
      operation: operation.key,
      family: operation.family.name,
      requestId,
      reservationId,
      quantity,
      input: yield* keepInput(jobs, { jobId, accountId }, text),
      attempts: operation.attempts,
      within,
      retention: jobs.retention ?? retention
    }
    const view = viewer(operation.family)(jobs, jobId, { job: Job.accepted(command, now), at: now })
    return { done: yield* encode(operation.key, operation.success, { data: operation.created(view) }), command, input: text }
  })

type Append = Effect.Effect<Aggregate.Current<Job.Job>, Job.JobWasRefused | Aggregate.Failure>

/**
 * Appends `JobAccepted`, and the claim of a runner of this process if it has a place for the job now: that runner then runs it. `retried`
 * repeats an append that failed, which is idempotent.
 */
export const accept = <E>(
  jobs: Jobs["Service"],
  jobId: string,
  { command, input }: Prepared,
  retried: (append: Append) => Effect.Effect<Aggregate.Current<Job.Job>, E>
): Effect.Effect<void, E> => {
  const { accountId, operation, requestId } = command
  return Effect.flatMap(jobs.places.find({ jobId, accountId, operation }), (place) => {
    const decide = place === undefined ? Job.accept(command) : Job.acceptAndStart(command, place.claim)
    const accepted = retried(jobs.begin(jobId, decide, { $correlationId: requestId }))
    return Effect.asVoid(place === undefined ? accepted : Effect.onExitPrimitive(accepted, (exit) => place.settle(exit, input)))
  })
}

type AnswerError = OperationFailed | NotFound | Aggregate.Failure | Projection.ProjectionBehind | Projection.ProjectionStopped

/** Waits at most `within` for the job's end, then builds its creation reply anew. `ended`: whether the reply is final. */
export const answer = (
  jobs: Jobs["Service"],
  operation: AnyJob,
  { accountId, jobId }: Pick<JobCall, "accountId" | "jobId">,
  within?: Duration.Input
): Effect.Effect<{ readonly data: string; readonly ended: boolean }, AnswerError> =>
  Effect.gen(function* () {
    if (within !== undefined) yield* jobs.wait(jobId, within)
    const view = viewer(operation.family)(jobs, jobId, yield* jobs.find(accountId, operation.family, jobId))
    const { data } = yield* encode(operation.key, operation.success, { data: operation.created(view) })
    return { data, ended: !isOpen(view) }
  })
