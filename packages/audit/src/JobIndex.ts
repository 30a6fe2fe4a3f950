/** The jobs in the log, as far as it was read. Holds, charges and refunds of accounts must agree with them. */
import { type Account, Job } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { noAmount, type Say, type Stake } from "./Means.ts"
import { iso, type Problems, type Replay, type ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

/** One job: its state, and its last event. */
interface Known {
  job: Job.Job
  /** When its last event was decided, milliseconds since 1970. */
  at: number
  position: string
}

/** A job ends so long after its deadline, and its account is settled so long after its end, at the latest: milliseconds. Recovery needs that. */
const MARGIN = 5 * 60_000

/** Finds an open hold of an account: undefined if it is not open, `unknown` if the account was not replayed this far. */
type FindHold = (accountId: string, reservationId: string) => Account.Hold | "unknown" | undefined

const { codec } = Job.Job

export class JobIndex {
  readonly #jobs = new Map<string, Known>()
  readonly #doubtful = new Set<string>()
  readonly #findHold: FindHold

  constructor(findHold: FindHold) {
    this.#findHold = findHold
  }

  /** How many jobs the log has. */
  get size(): number {
    return this.#jobs.size
  }

  /** Undefined if the job's stream could not be replayed. */
  get(jobId: string): Job.Job | undefined {
    return this.#doubtful.has(jobId) ? undefined : (this.#jobs.get(jobId)?.job ?? Job.Job.initial)
  }

  begin(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const jobId = StreamName.id(stream)
    const known: Known = { job: Job.Job.initial, at: 0, position: "" }
    this.#jobs.set(jobId, known)
    return (type, data, at, position) => {
      const event = codec.decode(type, data)
      if (event._tag === "JobAccepted") {
        const wrong = this.#unpaid(jobId, event)
        if (wrong !== undefined) {
          const stake = noAmount("the work of this job is paid by no hold, so it may be done for nothing")
          report("job-is-accepted-under-its-hold" satisfies RuleName, wrong, () => ({ account: event.accountId, ...stake }))
        }
      }
      known.job = Job.Job.evolve(known.job, event, at)
      known.at = at
      known.position = position
    }
  }

  lost(stream: StreamName.StreamName): void {
    this.#doubtful.add(StreamName.id(stream))
  }

  #unpaid(jobId: string, { accountId, operation, quantity, reservationId }: Job.Accepted): string | undefined {
    if (reservationId === null) return undefined
    const hold = this.#findHold(accountId, reservationId)
    if (hold === "unknown") return undefined
    if (hold === undefined) return `reservation ${reservationId} was not open in account ${accountId}`
    if (hold.jobId !== jobId) return `reservation ${reservationId} belongs to ${hold.jobId === undefined ? "no job" : `job ${hold.jobId}`}`
    if (hold.operation === operation && hold.quantity === quantity) return undefined
    return `${quantity} units of ${operation} were accepted, but ${hold.quantity} of ${hold.operation} held`
  }

  /** Reports jobs that at `now` are overdue: still open, or not settled. */
  reportOverdue(now: number, problems: Problems): void {
    for (const [jobId, { at, job, position }] of this.#jobs) {
      if (this.#doubtful.has(jobId) || job.status === "absent") continue
      const place = { position, stream: StreamName.make(Job.Job.category, jobId) }
      if (Job.isOpen(job)) {
        const { accountId, deadline, reservationId } = job.accepted
        const detail = `its deadline was ${iso(deadline)}, and it is ${job.status}`
        if (deadline + MARGIN <= now)
          problems.add(place, "job-ends-by-its-deadline", detail, (say) => this.#stakeOf(accountId, reservationId, say))
        continue
      }
      const { accountId, reservationId } = job.status === "refused" ? job : job.accepted
      const hold = reservationId === null ? undefined : this.#findHold(accountId, reservationId)
      const since = job.status === "refused" ? at : job.endedAt
      const detail = `the job was ${job.status}, and reservation ${reservationId} is still open`
      if (hold !== undefined && hold !== "unknown" && since + MARGIN <= now)
        problems.add(place, "job-is-settled", detail, (say) => this.#stakeOf(accountId, reservationId, say))
    }
  }

  /** What is at stake while the hold of a job stays open. */
  #stakeOf(accountId: string, reservationId: string | null, say: Say): Stake {
    const hold = reservationId === null ? undefined : this.#findHold(accountId, reservationId)
    if (hold === undefined || hold === "unknown")
      return { account: accountId, ...noAmount("the job holds no credits, or none that is known") }
    return { account: accountId, amount: hold.amount, sentence: `${say(hold.amount)} stay held, neither charged nor free to spend.` }
  }
}
