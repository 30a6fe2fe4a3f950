/** An operation of the workload with its services provided and faults injected into its upstream. Every attempt at a job is recorded. */
import { Operation, type OperationError, UpstreamUnavailable } from "@millrace/core"
import { Cause, type Context, Duration, Effect, Exit } from "effect"
import { type AttemptRecord, type CheckpointRecord, encoderOf, type Input, tagOf } from "./Records.ts"
import { callFaults, type FaultInjector, inject, jobFaults, REJECTED, type UpstreamFault } from "./UpstreamFaults.ts"
import * as UserWork from "./UserWork.ts"
import type { HostServices, SimulatedOperation } from "./Workload.ts"
import type { Process } from "./World.ts"

/** Where an operation runs: its services, and the process of its host. */
interface Site extends FaultInjector {
  readonly services: Context.Context<never>
  readonly process: Process
}

export const make = (operation: Operation.Any, site: Site): SimulatedOperation => {
  const { key, timeout } = operation
  const provided = {
    check: (input: Input, requester: Operation.Requester) =>
      UserWork.run(site, `check of ${key}, request ${requester.requestId},`, timeout, operation.check(input, requester)),
    configured: UserWork.run(site, `configured of ${key}`, timeout, operation.configured)
  }
  switch (operation._tag) {
    case "Call":
      return { ...operation, ...provided, ...faultyCall(operation, site) }
    case "Job":
      return { ...operation, ...provided, run: faultyJob(operation, site) }
    case "File":
      return {
        ...operation,
        ...provided,
        open: (input, caller) => UserWork.run(site, `file ${key}, request ${caller.requestId},`, timeout, operation.open(input, caller))
      }
  }
}

type SimulatedCall = Operation.AnyCall<OperationError, HostServices>

/** The longest that an upstream delays its work once faults have ended, so that work which takes time itself stays within its timeout. */
const CALM = 40

const delayOf = ({ isOver }: Site, drawn: number): number => (isOver() ? Math.min(drawn, CALM) : drawn)

const faultyCall = (operation: Operation.AnyCall, site: Site): Pick<SimulatedCall, "run" | "recover"> => {
  const { key: upstream, quantity, recover } = operation
  const { random: randoms, rate, records, world } = site
  const timeout = Duration.toMillis(operation.timeout)
  const textOf = encoderOf(operation.success)
  const run: SimulatedCall["run"] = (input, caller) =>
    Effect.suspend(() => {
      const { requestId, reservationId } = caller
      const random = randoms.fork(requestId)
      const fault = random.chance(rate()) ? random.pick(callFaults) : "fine"
      const takes = delayOf(site, random.chance(0.2) ? random.below(timeout) : random.below(40))
      world.note(upstream, `runs ${requestId}: ${fault}`)
      if (fault === "uninterruptible") records.ignoring.add(requestId)
      const work = UserWork.run(site, `operation ${upstream}, request ${requestId},`, timeout, operation.run(input, caller))
      const deliver = Effect.tap(Effect.delay(work, takes), ({ data, quantity }) =>
        Effect.sync(() => records.deliveries.push({ requestId, reservationId, data: textOf(data), quantity }))
      )
      const ignores = () => timeout + random.below(90_000)
      return inject(fault, { upstream, deliver, random, takes, timeout, ignores, tooMany: () => quantity(input) + 1 })
    })
  return recover === undefined ? { run } : { run, recover: faultyRecover(operation, recover, site) }
}

type Recover<C extends Operation.AnyCall> = NonNullable<C["recover"]>

const faultyRecover = (
  { key: upstream, success, timeout }: Operation.AnyCall,
  recover: Recover<Operation.AnyCall>,
  site: Site
): Recover<SimulatedCall> => {
  const { random: randoms, rate, records, world } = site
  const textOf = encoderOf(success)
  let asked = 0
  return (reservationId) =>
    Effect.suspend((): Effect.Effect<Operation.Outcome<unknown> | undefined, OperationError, HostServices> => {
      const random = randoms.fork(`${reservationId} ${asked++}`)
      const fails = random.chance(rate() / 2)
      const hangs = random.chance(0.3)
      world.note(upstream, `recovers ${reservationId}${fails ? (hangs ? ": hangs" : ": down") : ""}`)
      if (fails && hangs) return Effect.never
      if (fails) return Effect.fail(new UpstreamUnavailable({ upstream, reason: "down" }))
      const work = UserWork.run(site, `recover of ${upstream}, reservation ${reservationId},`, timeout, recover(reservationId))
      // The work may have been interrupted between its effect and the record of its delivery
      const found = Effect.tap(work, (outcome) =>
        Effect.sync(() => {
          if (outcome === undefined) return
          const { data, quantity } = outcome
          records.deliveries.push({ requestId: undefined, reservationId, data: textOf(data), quantity })
        })
      )
      return Effect.delay(found, random.below(100))
    })
}

const faultyJob = (operation: Operation.AnyJob, site: Site): Operation.AnyJob<OperationError, HostServices>["run"] => {
  const { jobDelivered, process, random: randoms, rate, records, world } = site
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
      const fault = random.chance(rate()) ? random.pick(jobFaults) : "fine"
      const takes = delayOf(site, random.chance(0.2) ? random.below(timeout) : random.below(random.pick([40, 4_000])))
      world.note(key, `attempt ${number} at ${jobId}: ${fault}`)
      const record: AttemptRecord = {
        ...{ jobId, accountId, attempt: number, operation: key, input, checkpoint, process },
        lengthBefore: records.recorder.length,
        checkpoints: [],
        isUninterruptible: fault === "uninterruptible"
      }
      records.attempts.push(record)
      const progress = faultyProgress(job.progress, checkpointText, fault, record)
      const name = `operation ${key}, attempt ${number} at ${jobId},`
      const work = UserWork.run(site, name, timeout, operation.run(asked, { ...job, progress }))
      const deliver = Effect.tap(Effect.delay(work, takes), ({ artifacts = [], data, quantity }) =>
        Effect.sync(() => {
          record.delivered = { data: resultText(data), quantity, artifacts: artifacts.map(({ id }) => id) }
          if (REJECTED.has(fault)) record.rejectedAs = "Defect"
          world.note(key, `delivers ${jobId}`)
          jobDelivered(jobId)
        })
      )
      const ignores = () => random.below(timeout + 90_000)
      const outcome = inject(fault, { upstream: key, deliver, random, takes, timeout, ignores, tooMany: () => 1_000_000 })
      return Effect.onExit(outcome, (exit) =>
        Effect.sync(() => {
          record.outcome = outcomeOf(exit)
          record.stopped = { at: world.now, unhinderedSince: Math.max(process.resumedAt, world.skippedTo) }
        })
      )
    })
}

type Progress = Operation.RunningJob<unknown>["progress"]

/** Records each checkpoint that the attempt asks for. */
const faultyProgress =
  (
    progress: Progress,
    textOf: (checkpoint: unknown) => string,
    fault: UpstreamFault,
    { checkpoints, operation }: AttemptRecord
  ): Progress =>
  (percent, reached) =>
    Effect.suspend(() => {
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

const outcomeOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string => {
  if (Exit.isSuccess(exit)) return "done"
  return Cause.hasInterruptsOnly(exit.cause) ? "interrupted" : (tagOf(exit) ?? "Defect")
}
