/**
 * Invariants: what is true of the events of every account and every job. The checkers keep books of their own from the events alone. Only the
 * rules about postings and the fold use the ledger's code, to compare it with those books.
 */
import { type AccountEvent, Job } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { AccountChecker } from "./invariants/AccountChecker.ts"
import { JobChecker } from "./invariants/JobChecker.ts"
import { type Report, RULES, type Rule } from "./invariants/Rules.ts"

export type { Rule } from "./invariants/Rules.ts"

/** An event of an account or a job in a log. */
export interface Recorded {
  readonly stream: string
  /** Its place in the stream, by default counted from 0. */
  readonly revision?: number
  readonly event: AccountEvent | Job.JobEvent
  /** When it was decided: milliseconds since 1970. */
  readonly at: number
}

export interface Violation {
  readonly stream: string
  readonly revision: number
  readonly rule: Rule
  readonly detail: string
}

const JOB = `${Job.Job.category}-`

const isOfJob = (recorded: Recorded): recorded is Recorded & { readonly event: Job.JobEvent } => recorded.stream.startsWith(JOB)
const isOfAccount = (recorded: Recorded): recorded is Recorded & { readonly event: AccountEvent } => !isOfJob(recorded)

/**
 * All violations in these events, in the order of the log. The events may be of one account or many, of jobs, or of both; if both are there,
 * their relations are checked as well. Never throws.
 */
export const invariants = (events: Iterable<Recorded>): ReadonlyArray<Violation> => {
  const violations: Array<Violation> = []
  const all = [...events]
  let current = { stream: "", revision: -1, tag: "" }
  const report: Report = (rule, detail) => {
    const { revision, stream, tag } = current
    violations.push({ stream, revision, rule: RULES[rule], detail: `${tag}: ${detail}` })
  }
  const accounts = new Map<string, AccountChecker>()
  const jobs = new JobChecker({ accounts: all.some(isOfAccount), jobs: all.some(isOfJob) }, report)
  const revisions = new Map<string, number>()
  for (const recorded of all) {
    const { at, event, stream } = recorded
    const revision = recorded.revision ?? (revisions.get(stream) ?? -1) + 1
    revisions.set(stream, revision)
    current = { stream, revision, tag: event._tag }
    if (isOfJob(recorded)) jobs.enter(stream.slice(JOB.length), recorded.event, at)
    if (!isOfAccount(recorded)) continue
    const account = accounts.get(stream) ?? new AccountChecker(StreamName.isStreamName(stream) ? StreamName.id(stream) : stream, report)
    accounts.set(stream, account)
    account.enter(recorded.event, at)
    jobs.follow(recorded.event)
  }
  for (const [stream, account] of accounts) {
    current = { stream, revision: revisions.get(stream) ?? -1, tag: "end" }
    account.end()
  }
  return violations
}
