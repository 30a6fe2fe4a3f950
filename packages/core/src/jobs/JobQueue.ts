/**
 * The queue of open jobs in memory. It is fair between accounts: for each operation they take turns (round robin), one job a turn. So an
 * account with one job waits only for the running jobs, even if another account has queued ten thousand.
 */
import { Deadlines } from "@millrace/event-sourcing"
import { Schema } from "effect"
import type { JobLimits } from "../work/JobOperation.ts"

/** A job that has not ended. */
export const Entry = Schema.Struct({
  jobId: Schema.String,
  accountId: Schema.String,
  operation: Schema.String,
  /** Milliseconds since 1970. */
  acceptedAt: Schema.Int,
  /** The newest attempt; 0 before the first. */
  attempt: Schema.Int,
  /** The runner that has it; null while it waits. */
  runner: Schema.NullOr(Schema.String),
  /** The earliest next start: of a waiting job its start time, of a running one the end of its lease. Milliseconds since 1970. */
  startFrom: Schema.Int
})
export type Entry = typeof Entry.Type

/** A job that a runner takes, or is about to. */
export type Candidate = Pick<Entry, "jobId" | "accountId" | "operation">

/** How many jobs may run at once at all runners. Jobs that another runner started a moment ago may not be counted yet. */
export type ConcurrencyLimits = Pick<JobLimits, "atOnce" | "atOnceOfAccount">

export interface Request {
  /** Milliseconds since 1970. */
  readonly now: number
  /** The limits of an operation; undefined if this runner does not run it. */
  readonly limits: (operation: string) => ConcurrencyLimits | undefined
  /** Jobs that this runner has taken, including those whose events the queue does not have yet. */
  readonly taken: { readonly has: (jobId: string) => boolean }
  /** The number of taken jobs that the queue does not show as running yet, by operation. They count for the limits. */
  readonly starting: Pick<Counts, "of">
  /** Pick among this many of an account's oldest jobs, with `pick`, so that runners do not all choose the same job. */
  readonly among?: number
  readonly pick?: (choices: number) => number
}

/** Accounts that had no turn in this round go first. A round ends after this many turns, so new accounts cannot starve the others. */
const ROUND = 1_000

/** The number of an operation's jobs, in all and of each account. */
class Count {
  inAll = 0
  readonly #of = new Map<string, number>()

  of(accountId: string): number {
    return this.#of.get(accountId) ?? 0
  }

  add(accountId: string, by: 1 | -1): void {
    this.inAll += by
    const now = this.of(accountId) + by
    if (now === 0) this.#of.delete(accountId)
    else this.#of.set(accountId, now)
  }
}

type ReadonlyCount = Pick<Count, "inAll" | "of">

const NONE: ReadonlyCount = new Count()

/** The number of jobs by operation. */
export class Counts {
  readonly #counts = new Map<string, Count>()

  of(operation: string): ReadonlyCount {
    return this.#counts.get(operation) ?? NONE
  }

  add({ accountId, operation }: Candidate, by: 1 | -1): void {
    const count = this.#counts.get(operation) ?? new Count()
    this.#counts.set(operation, count)
    count.add(accountId, by)
  }
}

/** The jobs of one operation. */
class Lane {
  /** Jobs that may start, oldest first, by account. The account whose turn was longest ago comes first. */
  readonly ready = new Map<string, Set<string>>()
  readonly running = new Count()
  /** Accounts that had their turn in this round. */
  readonly served = new Set<string>()

  enter({ accountId, jobId }: Entry): void {
    this.ready.set(accountId, (this.ready.get(accountId) ?? new Set()).add(jobId))
  }

  leave({ accountId, jobId }: Entry): void {
    const jobs = this.ready.get(accountId)
    if (jobs?.delete(jobId) === true && jobs.size === 0) this.ready.delete(accountId)
  }

  serve(accountId: string): void {
    const jobs = this.ready.get(accountId)
    if (jobs === undefined) return
    this.ready.delete(accountId)
    this.ready.set(accountId, jobs)
    this.served.add(accountId)
  }
}

export class JobQueue {
  readonly #jobs = new Map<string, Entry>()
  readonly #lanes = new Map<string, Lane>()
  readonly #ofAccount = new Map<string, number>()
  /** Start times of jobs that are not ready: they run or wait. */
  readonly #times = new Deadlines.OpenDeadlines()

  /** Jobs that have not ended. */
  get size(): number {
    return this.#jobs.size
  }

  sizeOf(accountId: string): number {
    return this.#ofAccount.get(accountId) ?? 0
  }

  get(jobId: string): Entry | undefined {
    return this.#jobs.get(jobId)
  }

  values(): Iterable<Entry> {
    return this.#jobs.values()
  }

  /** Adds or replaces a job. */
  set(entry: Entry): void {
    this.remove(entry.jobId)
    this.#jobs.set(entry.jobId, entry)
    this.#ofAccount.set(entry.accountId, this.sizeOf(entry.accountId) + 1)
    this.#times.set({ key: entry.jobId, dueAt: entry.startFrom, payload: "" })
    if (entry.runner !== null) this.#lane(entry.operation).running.add(entry.accountId, 1)
  }

  /** Removes a job that has ended. */
  remove(jobId: string): void {
    const entry = this.#jobs.get(jobId)
    if (entry === undefined) return
    this.#jobs.delete(jobId)
    const left = this.sizeOf(entry.accountId) - 1
    if (left === 0) this.#ofAccount.delete(entry.accountId)
    else this.#ofAccount.set(entry.accountId, left)
    const lane = this.#lane(entry.operation)
    if (this.#isReady(entry)) lane.leave(entry)
    else {
      this.#times.clear(jobId)
      if (entry.runner !== null) lane.running.add(entry.accountId, -1)
    }
  }

  /** The next job to start. Its account then waits for a turn of the others. Undefined if no job may start now. */
  next(request: Request): Entry | undefined {
    this.#ripen(request.now)
    for (const [operation, lane] of this.#lanes) {
      const limits = request.limits(operation)
      const accountId = limits && nextAccount(lane, limits, request.starting.of(operation), request)
      const entry = accountId === undefined ? undefined : this.#jobs.get(chooseJob(lane.ready.get(accountId), request) ?? "")
      if (entry === undefined) continue
      lane.serve(entry.accountId)
      this.#lanes.delete(operation)
      this.#lanes.set(operation, lane)
      return entry
    }
    return undefined
  }

  /**
   * Whether a job that is not in the queue yet may start at once: its limits allow it, and no job waits that the runner could take. So it
   * overtakes none.
   */
  mayStartAtOnce({ accountId, operation }: Candidate, request: Request): boolean {
    const limits = request.limits(operation)
    this.#ripen(request.now)
    for (const [waiting, lane] of this.#lanes)
      if (request.limits(waiting) !== undefined) for (const jobs of lane.ready.values()) if (hasUntaken(jobs, request)) return false
    return limits !== undefined && isWithin(limits, this.#lane(operation), request.starting.of(operation), accountId)
  }

  /** When the next job becomes ready, milliseconds since 1970; infinity if none will. */
  nextTime(now: number): number {
    this.#ripen(now)
    return this.#times.at(now).next
  }

  #lane(operation: string): Lane {
    const lane = this.#lanes.get(operation) ?? new Lane()
    this.#lanes.set(operation, lane)
    return lane
  }

  #isReady({ accountId, jobId, operation }: Entry): boolean {
    return this.#lane(operation).ready.get(accountId)?.has(jobId) === true
  }

  /** Makes jobs ready whose time has come. A job whose lease expired no longer counts as running. */
  #ripen(now: number): void {
    for (const { key } of this.#times.at(now).due) {
      const entry = this.#jobs.get(key)
      this.#times.clear(key)
      if (entry === undefined) continue
      const lane = this.#lane(entry.operation)
      if (entry.runner !== null) lane.running.add(entry.accountId, -1)
      lane.enter(entry)
    }
  }
}

/** Whether the limits allow one more job of this account. */
const isWithin = ({ atOnce, atOnceOfAccount }: ConcurrencyLimits, { running }: Lane, starting: ReadonlyCount, accountId: string): boolean =>
  running.inAll + starting.inAll < atOnce && running.of(accountId) + starting.of(accountId) < atOnceOfAccount

const hasUntaken = (jobs: Iterable<string>, { taken }: Pick<Request, "taken">): boolean => {
  for (const jobId of jobs) if (!taken.has(jobId)) return true
  return false
}

/** The account whose turn it is; undefined if the limits allow no job or none is ready. */
const nextAccount = (lane: Lane, limits: ConcurrencyLimits, starting: ReadonlyCount, request: Request): string | undefined => {
  if (lane.running.inAll + starting.inAll >= limits.atOnce) return undefined
  return turn(lane, (accountId) => {
    const ready = lane.ready.get(accountId)
    return ready !== undefined && isWithin(limits, lane, starting, accountId) && hasUntaken(ready, request)
  })
}

/** Picks one of an account's oldest ready jobs. */
const chooseJob = (ready: Iterable<string> = [], { taken, among = 1, pick = () => 0 }: Request): string | undefined => {
  const choices: Array<string> = []
  for (const jobId of ready) {
    if (choices.length === among) break
    if (!taken.has(jobId)) choices.push(jobId)
  }
  return choices[pick(choices.length)]
}

/** The next account: the first free one without a turn in this round, or else the first free one, which begins a new round. */
const turn = ({ ready, served }: Lane, isFree: (accountId: string) => boolean): string | undefined => {
  let first: string | undefined
  if (served.size >= ROUND) served.clear()
  for (const accountId of ready.keys()) {
    if (!isFree(accountId)) continue
    if (!served.has(accountId)) return accountId
    first ??= accountId
  }
  if (first !== undefined) served.clear()
  return first
}
