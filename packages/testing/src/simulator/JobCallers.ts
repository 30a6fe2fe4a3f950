/** Callers who have made a job: they wait for it, read it, cancel it, now and then just as it succeeds, fetch its files, or forget it. */
import type { Operation } from "@millrace/core"
import { Job } from "@millrace/core"
import { Effect, Exit } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"
import { type Call, type Intent, place, type Town, tagOf } from "./Callers.ts"
import * as Desk from "./Desk.ts"
import type { Failure, Host } from "./Host.ts"
import type { Witness } from "./Witness.ts"
import type { Process } from "./World.ts"

/** A wait for a job's end, or a file that was fetched: what was told, and the events in the log before and after. */
export interface Told {
  readonly what: "waits" | "fetches"
  readonly jobId: string
  readonly accountId: string
  readonly process: Process
  readonly floor: number
  readonly ceiling: number
  readonly at: number
  /** `ended`, `open`, a hash of the file, or why not. */
  readonly answer: string
  readonly failed: boolean
}

export interface Bureau<Op extends Operation.Any> extends Town<Op> {
  readonly witness: Witness
  readonly accounts: ReadonlyArray<string>
  readonly violated: (what: string) => void
  readonly tidings: Array<Told>
  /** SHA-256 of files as jobs stored them, in hex, by their names. */
  readonly files: ReadonlyMap<string, string>
  /** The family of an operation that is a job. */
  readonly familyOf: (operation: string) => string | undefined
  /** Waits until an attempt at the job has delivered. */
  readonly delivered: (jobId: string) => Effect.Effect<void>
}

/** A job as somebody knows it. */
export interface Known {
  readonly jobId: string
  readonly accountId: string
  readonly operation: string
  readonly family: string
}

/** The jobs that callers were told of, in that order. */
export const known = <Op extends Operation.Any>({ calls, witness }: Bureau<Op>, accountId?: string): ReadonlyArray<Known> => {
  const jobs = new Map<string, Known>()
  for (const { intent, told } of calls) {
    if (told === undefined || Exit.isFailure(told.answer) || told.answer.value.job === undefined) continue
    if (accountId !== undefined && intent.accountId !== accountId) continue
    const jobId = told.answer.value.job.id
    const [first] = witness.job(jobId).arrivals
    if (first?.event._tag !== "JobAccepted") continue
    jobs.set(jobId, { jobId, accountId: first.event.accountId, operation: first.event.operation, family: first.event.family })
  }
  return [...jobs.values()]
}

/** One thing that a caller does with a job through the desk. */
export const act = <Op extends Operation.Any>(
  bureau: Bureau<Op>,
  host: Host<Op>,
  act: Desk.Act,
  { accountId, family, jobId }: Known,
  random: SeededRandom.SeededRandom
): Effect.Effect<Call | undefined> => {
  const intent: Intent = { accountId, operation: Desk.keyOf(act, family), input: { job: jobId }, request: `${act} ${jobId}` }
  return place(bureau, host, intent, random)
}

const noted = <Op extends Operation.Any, A, E extends { readonly _tag: string }>(
  { tidings, witness, world }: Bureau<Op>,
  host: Host<Op>,
  what: Told["what"],
  { accountId, jobId }: Known,
  asked: Effect.Effect<A, E>,
  tell: (a: A) => string
): Effect.Effect<Exit.Exit<A, E>> =>
  Effect.suspend(() => {
    const { process } = host
    const floor = witness.length
    return Effect.tap(Effect.exit(asked), (exit) =>
      Effect.sync(() => {
        const answer = Exit.isSuccess(exit) ? tell(exit.value) : (tagOf(exit) ?? "died")
        world.say(accountId, `${what} ${jobId}: ${answer}`)
        if (process === undefined) return
        const failed = Exit.isFailure(exit)
        tidings.push({ what, jobId, accountId, process, floor, ceiling: witness.length, at: world.now, answer, failed })
      })
    )
  })

/** Waits for its end, up to so many milliseconds. */
export const wait = <Op extends Operation.Any>(
  bureau: Bureau<Op>,
  host: Host<Op>,
  job: Known,
  within: number
): Effect.Effect<Exit.Exit<{ readonly ended: boolean }, Failure>> =>
  Effect.suspend(() => {
    const { violated, witness, world } = bureau
    const since = world.now
    const asked = host.answer(job.operation, job.accountId, job.jobId, within)
    return Effect.tap(
      noted(bureau, host, "waits", job, asked, ({ ended }) => (ended ? "ended" : "open")),
      (exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit) || exit.value.ended || world.now - since >= within) return
          const isOpen = Job.isOpen(witness.job(job.jobId).states.at(-1) ?? Job.Job.initial)
          violated(`${job.jobId} was waited for for ${world.now - since} ms of ${within}, and is ${isOpen ? "open" : "over"}`)
        })
    )
  })

export const fetch = <Op extends Operation.Any>(
  bureau: Bureau<Op>,
  host: Host<Op>,
  job: Known
): Effect.Effect<Exit.Exit<{ readonly tag: string; readonly hash: string }, Failure>> =>
  Effect.suspend(() => {
    const { files, violated } = bureau
    const asked = host.download(Desk.keyOf("download", job.family), job.accountId, job.jobId, "download")
    return Effect.map(
      noted(bureau, host, "fetches", job, asked, ({ tag }) => `file ${tag.slice(0, 8)}`),
      (exit) => {
        if (Exit.isSuccess(exit) && files.has(exit.value.tag) && files.get(exit.value.tag) !== exit.value.hash)
          violated(`${job.jobId} gives another file than it stored`)
        return exit
      }
    )
  })

/** Does something with a job, a few times over. */
export const follow = <Op extends Operation.Any>(bureau: Bureau<Op>, job: Known, random: SeededRandom.SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    const times = random.below(4)
    for (let i = 0; i < times; i++) {
      const own = random.fork(`then ${i}`)
      yield* Effect.sleep(own.below(own.pick([50, 1_500, 20_000, 90_000])))
      if (bureau.over()) return
      const up = bureau.hosts.filter((host) => host.isUp)
      const host = up[own.below(up.length)]
      if (host === undefined) continue
      const what = own.below(16)
      if (what < 4) yield* wait(bureau, host, job, own.pick([0, 800, 20_000, 120_000]))
      else if (what < 8) yield* act(bureau, host, "read", job, own)
      else if (what < 9) yield* act(bureau, host, "cancel", job, own)
      else if (what < 11) {
        // At the very moment when it succeeds
        yield* Effect.raceFirst(bureau.delivered(job.jobId), Effect.sleep(60_000))
        yield* Effect.replicateEffect(Effect.yieldNow, own.below(60), { discard: true })
        yield* act(bureau, host, "cancel", job, own)
      } else if (what < 13) yield* fetch(bureau, host, job)
      else if (what < 14) yield* act(bureau, host, "download", job, own)
      else if (what < 15) yield* act(bureau, host, "read", { ...job, accountId: own.pick([job.accountId, ...bureau.accounts]) }, own)
      else {
        // Several at once
        const acts = Array.from({ length: 2 + own.below(2) }, () => own.pick<Desk.Act>(["cancel", "cancel", "read"]))
        yield* Effect.forEach(acts, (what, i) => act(bureau, own.pick([host, ...up]), what, job, own.fork(`${i}`)), {
          concurrency: "unbounded",
          discard: true
        })
      }
    }
  })

/** The job that a call became, as its caller was told. */
export const jobOf = ({ intent, told }: Call, family: (operation: string) => string | undefined): Known | undefined => {
  if (told === undefined || Exit.isFailure(told.answer) || told.answer.value.job === undefined) return undefined
  const { accountId, operation } = intent
  const name = family(operation)
  return name === undefined ? undefined : { jobId: told.answer.value.job.id, accountId, operation, family: name }
}
