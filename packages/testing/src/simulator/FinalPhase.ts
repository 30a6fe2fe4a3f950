/**
 * The final phase: faults have ended, recovery completes, and then hosts must answer. Every key is called once more, new jobs must succeed,
 * and every account, job and file must be readable at every host.
 */
import { Job, Ledger } from "@millrace/core"
import { Effect, Exit } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import { readAccount } from "./AdminActor.ts"
import { call, requestOf } from "./Callers.ts"
import { type Reservation, Reservations } from "./Evidence.ts"
import type { Host } from "./Host.ts"
import { filesOf as filesOfInbox } from "./inboxes/FinalPhase.ts"
import { act, download, jobOf, knownJobs, wait } from "./JobCallers.ts"
import { stateOf } from "./LogRecorder.ts"
import { type Call, haveSameKey, type Intent, summaryOf, tagOf } from "./Records.ts"
import { nonEmpty, type Simulation } from "./Simulation.ts"
import type { AnyOffer } from "./Workload.ts"

const MINUTE = 60_000
/** Recovery has retried everything after this time: its longest pause, a lease, and its sweeps. Milliseconds. */
const RECOVERED_WITHIN = 25 * MINUTE
/** For this time after the faults, hosts may be paused, stores slow, and appends on their way. Milliseconds. */
const AFTERMATH = 6 * MINUTE
/** The longest time until a new job ends: an attempt, after the others of its account. Milliseconds. */
const ENDED_WITHIN = 15 * MINUTE
/** The longest time until a waiting caller learns of a job's end, milliseconds. */
const TOLD_WITHIN = 3_000
/** How long a reply is certainly replayed, milliseconds. */
const REPLAYED = 23 * 60 * MINUTE

/** Waits until no hold, job or promise is open; `long`: for the longest time that may take, so that late mistakes show as well. */
export const untilRecovered = ({ records: { recorder }, states }: Simulation, long: boolean) =>
  Effect.gen(function* () {
    for (let waited = 0; waited < RECOVERED_WITHIN; waited += MINUTE) {
      yield* Effect.sleep(MINUTE)
      if (long || waited < AFTERMATH || recorder.openHolds.size > 0 || recorder.openJobs().length > 0) continue
      if ((yield* Effect.orDie(states.list("unanswered", { limit: 1 }))).length === 0) return
    }
  })

/** Errors that a call may get without faults. */
const REFUSALS = new Set([
  ...["AccountSuspended", "AccountInDebt", "InsufficientCredits", "CostExceedsLimit", "KeyReused", "ReplyUnavailable"],
  ...[
    "DownloadUnavailable",
    "InvalidInput",
    "NotFound",
    "UpstreamNotConfigured",
    "TooManyJobs",
    "TooManyPayments",
    "TooManySubmissions",
    "AddressNotVerified",
    "TrialUsedUp",
    "TrialExcludesJobs"
  ]
])

/** Calls once more under every key: a success is replayed, and any other call may run now. */
export const retryEveryKey = (simulation: Simulation, intents: ReadonlyArray<Intent>, random: SeededRandom) =>
  Effect.gen(function* () {
    const { hosts, records, report } = simulation
    const reservations = new Reservations(records.recorder.accountEvents)
    for (const intent of new Set(intents.filter(({ key }) => key !== undefined))) {
      const host = random.pick(nonEmpty(hosts))
      const success = successUnder(intent, simulation, reservations)
      const record = yield* call(simulation, host, success?.intent ?? intent, random)
      const answer = record?.response?.answer
      if (answer === undefined) report(`${intent.key} is not answered after faults have ended`)
      else if (success !== undefined && !(Exit.isSuccess(answer) && answer.value.replayed))
        report(`${record?.requestId}: ${intent.key} succeeded with ${success.requestId}, but is answered ${summaryOf(answer)}`)
      else if (Exit.isFailure(answer) && !REFUSALS.has(tagOf(answer) ?? ""))
        report(`${record?.requestId} fails after faults have ended: ${summaryOf(answer)}`)
    }
  })

/** The call that succeeded under this key and must be replayed. A job takes its key as soon as it is accepted, however it ends. */
const successUnder = (intent: Intent, { records, world }: Simulation, reservations: Reservations): Call | undefined => {
  const isReplayed = ({ at, end, hold: { jobId }, success }: Reservation) =>
    jobId === undefined
      ? success !== undefined && world.now - (end?.at ?? 0) < REPLAYED
      : "accepted" in stateOf(records.recorder.job(jobId)) && world.now - at < REPLAYED
  return records.calls.find((earlier) => haveSameKey(earlier.intent, intent) && reservations.of(earlier.requestId).some(isReplayed))
}

/** Creates each kind of job once and waits for it. Then every job that was accepted before must have ended as well. */
export const runEveryJob = (simulation: Simulation, random: SeededRandom) =>
  Effect.gen(function* () {
    const { records, report, workload } = simulation
    for (const offer of workload.offers)
      if (offer.operation._tag === "Job") yield* runJob(simulation, offer, random.fork(offer.operation.key))
    for (let waited = 0; waited < ENDED_WITHIN && records.recorder.openJobs().length > 0; waited += MINUTE) yield* Effect.sleep(MINUTE)
    for (const { jobId } of records.recorder.openJobs()) report(`${jobId} does not end`)
  })

const runJob = (simulation: Simulation, { input: draw, operation }: AnyOffer, random: SeededRandom) =>
  Effect.gen(function* () {
    const { accounts, hosts, records, report, world } = simulation
    const accountId = random.pick(nonEmpty(accounts))
    const known = knownJobs(simulation).map(({ jobId }) => jobId)
    const input = draw(random, known)
    const intent: Intent = { accountId, operation: operation.key, input, request: requestOf(operation.key, input) }
    const record = yield* call(simulation, random.pick(nonEmpty(hosts)), intent, random)
    const job = record && jobOf(simulation, record)
    if (job === undefined) return
    const waited = yield* wait(simulation, random.pick(nonEmpty(hosts)), job, ENDED_WITHIN)
    if (Exit.isFailure(waited) || !waited.value) report(`${job.jobId} does not end after faults have ended`)
    const late = world.now - (records.recorder.job(job.jobId).events.at(-1)?.at ?? 0)
    if (late > TOLD_WITHIN) report(`a caller that waited for ${job.jobId} learned of its end ${late} ms late`)
  })

/** A host shows every account as the log has it, now and as of `past`. */
export const checkAccounts = (simulation: Simulation, host: Host, past: number) =>
  Effect.gen(function* () {
    const { accounts, records, report } = simulation
    for (const accountId of accounts) {
      yield* readAccount(simulation, accountId, host)
      const exit = yield* Effect.exit(host.request(Effect.flatMap(Ledger, ({ balance }) => balance(accountId, past))))
      const known = records.recorder.balanceAt(accountId, past)
      if (Exit.isFailure(exit)) report(`${host.name} cannot read the balance of ${accountId}: ${tagOf(exit)}`)
      else if (exit.value.available !== known.available || exit.value.held !== known.held || exit.value.debt !== known.debt)
        report(`${host.name} says that ${accountId} has ${exit.value.available}, but it has ${known.available}`)
    }
  })

/** A host shows every job, and gives out the files of those that have any. */
export const checkJobs = (simulation: Simulation, host: Host, random: SeededRandom) =>
  Effect.gen(function* () {
    const { records, report } = simulation
    for (const job of knownJobs(simulation)) {
      const record = yield* act(simulation, host, "read", job, random)
      const answer = record?.response?.answer
      if (answer === undefined || (Exit.isFailure(answer) && tagOf(answer) !== "NotFound"))
        report(`${job.jobId} cannot be read at ${host.name}: ${answer && summaryOf(answer)}`)
      const state = stateOf(records.recorder.job(job.jobId))
      if (state.status !== "succeeded" || state.artifacts.length === 0 || answer === undefined || Exit.isFailure(answer)) continue
      const file = yield* download(simulation, host, job)
      if (Exit.isFailure(file)) report(`the file of ${job.jobId} cannot be downloaded at ${host.name}: ${tagOf(file)}`)
    }
  })

/** A file that no job needs is kept for a day, for an attempt may still be using it; then a sweep removes it. */
const KEPT = 25 * 60 * MINUTE
const SWEPT_WITHIN = 45 * MINUTE

/** A day later only files are left that can still be downloaded, and no inbox lives. */
export const checkFilesAreSwept = ({ blobs, inboxes, records, report, workload, world }: Simulation) =>
  Effect.gen(function* () {
    // A host without jobs and inboxes sweeps no files
    if (blobs.size === 0 && records.recorder.inboxes.byId.size === 0) return
    if (inboxes === 0 && workload.offers.every(({ operation }) => operation._tag !== "Job")) return
    world.note("world", `skips ${KEPT} ms`)
    world.skip(KEPT)
    const leftovers = () => {
      const ofInboxes = [...records.recorder.inboxes.byId.keys()].map((id) => records.recorder.inboxes.stateOf(id))
      const needed = new Set([
        ...[...records.recorder.jobs.values()].flatMap((job) => filesOf(stateOf(job))),
        ...ofInboxes.flatMap((inbox) => filesOfInbox(inbox, world.now))
      ])
      return [...blobs.keys()].filter((id) => !needed.has(id))
    }
    const isAlive = () => [...records.recorder.inboxes.byId.keys()].some((id) => records.recorder.inboxes.stateOf(id).status === "active")
    const isBusy = () =>
      leftovers().length > 0 || isAlive() || [...records.recorder.jobs.values()].some((job) => isDue(stateOf(job), world.now))
    for (let waited = 0; waited < SWEPT_WITHIN && isBusy(); waited += MINUTE) yield* Effect.sleep(MINUTE)
    for (const id of leftovers()) report(`the file ${id} was not removed, but nothing needs it`)
  })

const filesOf = (job: Job.Job): ReadonlyArray<string> =>
  job.status === "succeeded" && !job.purged ? job.artifacts.map(({ id }) => id) : []

/** Whether the job is to be purged by now. */
const isDue = (job: Job.Job, now: number): boolean => Job.isEnded(job) && !job.purged && job.retainUntil <= now
