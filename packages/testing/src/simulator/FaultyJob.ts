/** A job of the workload with faults injected into its upstream. Every attempt is recorded: its input, its checkpoints, its outcome. */
import { Operation, type OperationError, UpstreamUnavailable } from "@millrace/core"
import { Cause, type Context, Duration, Effect, Exit, Option, Schema } from "effect"
import type { AttemptRecord, CheckpointRecord } from "./Records.ts"
import { type FaultInjector, inject, provideAllButHost, type UpstreamFault } from "./UpstreamFaults.ts"
import type { HostServices } from "./Workload.ts"
import type { Process } from "./World.ts"

/** As of calls; `afterCheckpoint`: it fails once a checkpoint was recorded. */
type JobFault = UpstreamFault | "afterCheckpoint"

/** Passing failures are the most frequent, for only they are retried. */
const FAULTS: readonly [JobFault, ...ReadonlyArray<JobFault>] = [
  ...(["down", "invalid", "missing", "unconfigured", "bug", "malformed", "tooMany", "fraction", "negative"] as const),
  ...([
    "down",
    "down",
    "down",
    "answerLost",
    "answerLost",
    "afterCheckpoint",
    "afterCheckpoint",
    "hang",
    "late",
    "uninterruptible"
  ] as const)
]

/** The faults whose result the runner must reject, with the failure that it must record. */
const REJECTED: Readonly<Partial<Record<JobFault, AttemptRecord["rejectedAs"] & string>>> = {
  malformed: "Defect",
  tooMany: "Defect",
  fraction: "Defect",
  negative: "Defect"
}

type Run = Operation.AnyJob<OperationError, HostServices>["run"]
type Progress = Operation.RunningJob<unknown>["progress"]

/** `process`: the host that runs it. */
export const faultyJob = (
  operation: Operation.AnyJob,
  services: Context.Context<never>,
  injector: FaultInjector,
  process: Process
): Run => {
  const { attempted, jobDelivered, length, random: randoms, rate, world } = injector
  const { family, key, route } = operation
  const timeout = Duration.toMillis(operation.timeout)
  const resultText = encoderOf(family.result)
  const inputText = encoderOf(Operation.inputOf(route))
  const checkpointText = encoderOf(family.checkpoint)
  return (asked, job) =>
    Effect.suspend(() => {
      const { accountId, attempt: number, id: jobId } = job
      const input = inputText(asked)
      const checkpoint = job.checkpoint === undefined ? undefined : checkpointText(job.checkpoint)
      const random = randoms.fork(`${jobId} ${number}`)
      const fault: JobFault | "fine" = random.chance(rate()) ? random.pick(FAULTS) : "fine"
      const takes = random.chance(0.2) ? random.below(timeout) : random.below(random.pick([40, 4_000]))
      world.note(key, `attempt ${number} at ${jobId}: ${fault}`)
      const record: AttemptRecord = {
        ...{ jobId, accountId, attempt: number, operation: key, input, checkpoint, process },
        lengthBefore: length(),
        checkpoints: [],
        isUninterruptible: fault === "uninterruptible"
      }
      attempted(record)
      const progress = faultyProgress(job.progress, checkpointText, fault, record)
      const work = provideAllButHost(operation.run(asked, { ...job, progress }), services)
      const deliver = Effect.tap(Effect.delay(work, takes), ({ artifacts = [], data, quantity }) =>
        Effect.sync(() => {
          record.delivered = { data: resultText(data), quantity, artifacts: artifacts.map(({ id }) => id) }
          if (fault !== "fine" && REJECTED[fault] !== undefined) record.rejectedAs = REJECTED[fault]
          world.note(key, `delivers ${jobId}`)
          jobDelivered(jobId)
        })
      )
      const ignores = () => random.below(timeout + 90_000)
      const outcome =
        fault === "fine" || fault === "afterCheckpoint"
          ? deliver
          : inject(fault, { upstream: key, deliver, random, takes, timeout, ignores, tooMany: 1_000_000 })
      return Effect.onExit(outcome, (exit) =>
        Effect.sync(() => {
          record.outcome = outcomeOf(exit)
          record.stopped = { at: world.now, unhinderedSince: Math.max(process.resumedAt, world.skippedTo) }
        })
      )
    })
}

/** Records each checkpoint that the attempt asks for. */
const faultyProgress =
  (progress: Progress, textOf: (checkpoint: unknown) => string, fault: JobFault | "fine", record: AttemptRecord): Progress =>
  (percent, reached) =>
    Effect.suspend(() => {
      const { checkpoints, operation } = record
      const checkpoint: CheckpointRecord = { percent, text: reached === undefined ? undefined : textOf(reached), confirmed: false }
      checkpoints.push(checkpoint)
      const recorded = Effect.tap(progress(percent, reached), () =>
        Effect.sync(() => {
          checkpoint.confirmed = true
        })
      )
      if (fault === "afterCheckpoint")
        return Effect.andThen(recorded, Effect.fail(new UpstreamUnavailable({ upstream: operation, reason: fault })))
      // The upstream ignores interruption, the operation does not
      return fault === "uninterruptible" ? Effect.interruptible(recorded) : recorded
    })

/** A schema's values as JSON text. */
const encoderOf = (schema: Schema.Codec<unknown, unknown>) => {
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(schema))
  return (value: unknown): string => JSON.stringify(encode(value))
}

const outcomeOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string => {
  if (Exit.isSuccess(exit)) return "done"
  if (Cause.hasInterruptsOnly(exit.cause)) return "interrupted"
  return Option.match(Exit.findErrorOption(exit), { onNone: () => "Defect", onSome: ({ _tag }) => _tag })
}
