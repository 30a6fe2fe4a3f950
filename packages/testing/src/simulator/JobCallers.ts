/** Callers that have created a job: they wait for it, read it, cancel it, sometimes just as it succeeds, and download its files. */
import { Job } from "@millrace/core"
import { Effect, Exit } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import { call } from "./Callers.ts"
import type { Download, Failure, Host } from "./Host.ts"
import * as JobEndpoints from "./JobEndpoints.ts"
import { stateOf } from "./LogRecorder.ts"
import { type Call, type JobObservation, tagOf } from "./Records.ts"
import { pickHost, type Simulation } from "./Simulation.ts"

/** A job as its caller knows it. */
export interface KnownJob {
  readonly jobId: string
  readonly accountId: string
  readonly operation: string
  readonly family: string
}

/** The accepted job that a call was answered with, if any. */
export const jobOf = ({ records }: Simulation, { response }: Call): KnownJob | undefined => {
  const jobId = response === undefined || Exit.isFailure(response.answer) ? undefined : response.answer.value.job?.id
  const event = jobId === undefined ? undefined : records.recorder.job(jobId).events[0]?.event
  if (jobId === undefined || event?._tag !== "JobAccepted") return undefined
  const { accountId, family, operation } = event
  return { jobId, accountId, operation, family }
}

/** The accepted jobs that callers were answered with, in that order. */
export const knownJobs = (simulation: Simulation): ReadonlyArray<KnownJob> => {
  const jobs = simulation.records.calls.flatMap((call) => jobOf(simulation, call) ?? [])
  return [...new Map(jobs.map((job) => [job.jobId, job])).values()]
}

/** Reads, cancels or downloads a job by a call. */
export const act = (
  simulation: Simulation,
  host: Host,
  action: JobEndpoints.JobAction,
  { accountId, family, jobId }: KnownJob,
  random: SeededRandom
): Effect.Effect<Call | undefined> => {
  const operation = JobEndpoints.keyOf(action, family)
  return call(simulation, host, { accountId, operation, input: { job: jobId }, request: `${action} ${jobId}` }, random)
}

/** Records a host's answer about a job. */
const observe = <A, E extends { readonly _tag: string }>(
  { records, world }: Simulation,
  host: Host,
  kind: JobObservation["kind"],
  { accountId, jobId }: KnownJob,
  asked: Effect.Effect<A, E>,
  describe: (a: A) => string
): Effect.Effect<Exit.Exit<A, E>> =>
  Effect.suspend(() => {
    const { process } = host
    const lengthBefore = records.recorder.length
    return Effect.tap(Effect.exit(asked), (exit) =>
      Effect.sync(() => {
        const answer = Exit.isSuccess(exit) ? describe(exit.value) : (tagOf(exit) ?? "died")
        world.note(accountId, `${kind} ${jobId}: ${answer}`)
        if (process === undefined) return
        const lengthAfter = records.recorder.length
        const failed = Exit.isFailure(exit)
        records.observations.push({ kind, jobId, accountId, process, lengthBefore, lengthAfter, at: world.now, answer, failed })
      })
    )
  })

/** Waits for the end of a job, up to so many milliseconds. */
export const wait = (simulation: Simulation, host: Host, job: KnownJob, within: number): Effect.Effect<Exit.Exit<boolean, Failure>> =>
  Effect.suspend(() => {
    const { records, report, world } = simulation
    const since = world.now
    const asked = host.wait(job.operation, job.accountId, job.jobId, within)
    const observed = observe(simulation, host, "waits", job, asked, (ended) => (ended ? "ended" : "open"))
    return Effect.tap(observed, (exit) =>
      Effect.sync(() => {
        if (Exit.isFailure(exit) || exit.value || world.now - since >= within) return
        const isOpen = Job.isOpen(stateOf(records.recorder.job(job.jobId)))
        report(`a wait for ${job.jobId} ended after ${world.now - since} ms of ${within}, while it is ${isOpen ? "open" : "over"}`)
      })
    )
  })

/** Downloads a job's file and compares it with what the job stored. */
export const download = (simulation: Simulation, host: Host, job: KnownJob): Effect.Effect<Exit.Exit<Download, Failure>> =>
  Effect.suspend(() => {
    const { files, report } = simulation
    const asked = host.download(JobEndpoints.keyOf("download", job.family), job.accountId, job.jobId)
    const observed = observe(simulation, host, "fetches", job, asked, ({ tag }) => `file ${tag.slice(0, 8)}`)
    return Effect.map(observed, (exit) => {
      if (Exit.isSuccess(exit) && files.has(exit.value.tag) && files.get(exit.value.tag) !== exit.value.hash)
        report(`${job.jobId} returns another file than it stored`)
      return exit
    })
  })

/** Does something with a job, up to three times. */
export const follow = (simulation: Simulation, job: KnownJob, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    const times = random.below(4)
    for (let i = 0; i < times; i++) {
      const own = random.fork(`then ${i}`)
      yield* Effect.sleep(own.below(own.pick([50, 1_500, 20_000, 90_000])))
      if (simulation.isOver()) return
      const host = pickHost(simulation, own)
      if (host !== undefined) yield* doSomething(simulation, host, job, own)
    }
  })

const doSomething = (simulation: Simulation, host: Host, job: KnownJob, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const choice = random.below(16)
    if (choice < 4) return wait(simulation, host, job, random.pick([0, 800, 20_000, 120_000]))
    if (choice < 8) return act(simulation, host, "read", job, random)
    if (choice < 9) return act(simulation, host, "cancel", job, random)
    if (choice < 11) return cancelOnDelivery(simulation, host, job, random)
    if (choice < 13) return download(simulation, host, job)
    if (choice < 14) return act(simulation, host, "download", job, random)
    // Perhaps for another account
    if (choice < 15)
      return act(simulation, host, "read", { ...job, accountId: random.pick([job.accountId, ...simulation.accounts]) }, random)
    return actAtOnce(simulation, host, job, random)
  })

/** Cancels the job at the moment when it succeeds. */
const cancelOnDelivery = (simulation: Simulation, host: Host, job: KnownJob, random: SeededRandom) =>
  Effect.gen(function* () {
    yield* Effect.raceFirst(simulation.awaitDelivery(job.jobId), Effect.sleep(60_000))
    yield* Effect.replicateEffect(Effect.yieldNow, random.below(60), { discard: true })
    yield* act(simulation, host, "cancel", job, random)
  })

/** Two or three callers cancel or read the job at once. */
const actAtOnce = (simulation: Simulation, host: Host, job: KnownJob, random: SeededRandom) => {
  const actions = Array.from({ length: 2 + random.below(2) }, () => random.pick<JobEndpoints.JobAction>(["cancel", "cancel", "read"]))
  const up = simulation.hosts.filter((host) => host.isUp)
  return Effect.forEach(actions, (action, i) => act(simulation, random.pick([host, ...up]), action, job, random.fork(`${i}`)), {
    concurrency: "unbounded",
    discard: true
  })
}
