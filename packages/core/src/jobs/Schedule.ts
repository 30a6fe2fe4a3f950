/**
 * Which job is next: those that wait, those that run, in memory, as plain data. Fair between accounts: for each operation they take turns,
 * one job a turn, so ten thousand jobs of one account keep the only one of another waiting for no more than what is running already.
 */
import { Deadlines } from "@millrace/event-sourcing"
import { Schema } from "effect"

/** A job that has not ended. */
export const Entry = Schema.Struct({
  jobId: Schema.String,
  accountId: Schema.String,
  operation: Schema.String,
  /** The newest attempt; 0 before the first. */
  attempt: Schema.Int,
  /** Who has it; null while it waits. */
  runner: Schema.NullOr(Schema.String),
  /** From when on it may be started: what it waits for, or the end of its lease. Milliseconds since 1970. */
  startFrom: Schema.Int
})
export type Entry = typeof Entry.Type

/** How many may run at once, by all who run them; what was started a moment ago elsewhere may not be counted yet. */
export interface Limits {
  readonly atOnce: number
  readonly atOnceOfAccount: number
}

export interface Request {
  /** Milliseconds since 1970. */
  readonly now: number
  /** Of an operation; undefined where it is none of ours. */
  readonly limits: (operation: string) => Limits | undefined
  /** Jobs that were taken already, whether or not the log says so yet. */
  readonly taken: { readonly has: (jobId: string) => boolean } & Iterable<string>
  /** Of an account's jobs, among how many of the oldest to choose, and how: so that several runners do not all reach for the same. */
  readonly among?: number
  readonly pick?: (choices: number) => number
}

/** New accounts go before those that had their turn, but not for ever: so many turns later a round ends in any case. */
const ROUND = 1_000

/** The jobs of one operation. */
class Lane {
  /** Those that may be started, the oldest first, by account; the account whose turn was longest ago comes first. */
  readonly ready = new Map<string, Set<string>>()
  readonly running = new Map<string, number>()
  /** Accounts that had their turn in this round. */
  readonly served = new Set<string>()
  runningInAll = 0

  count(accountId: string, by: 1 | -1): void {
    this.runningInAll += by
    const now = (this.running.get(accountId) ?? 0) + by
    if (now === 0) this.running.delete(accountId)
    else this.running.set(accountId, now)
  }

  enter({ accountId, jobId }: Entry): void {
    const jobs = this.ready.get(accountId)
    if (jobs === undefined) this.ready.set(accountId, new Set([jobId]))
    else jobs.add(jobId)
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

export class Schedule {
  readonly #jobs = new Map<string, Entry>()
  readonly #lanes = new Map<string, Lane>()
  readonly #ofAccount = new Map<string, number>()
  /** Those that are not ready: running, or waiting for a time. */
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

  /** As it is now. */
  set(entry: Entry): void {
    this.remove(entry.jobId)
    this.#jobs.set(entry.jobId, entry)
    this.#ofAccount.set(entry.accountId, this.sizeOf(entry.accountId) + 1)
    this.#times.set({ key: entry.jobId, dueAt: entry.startFrom, payload: "" })
    if (entry.runner !== null) this.#lane(entry.operation).count(entry.accountId, 1)
  }

  /** It has ended. */
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
      if (entry.runner !== null) lane.count(entry.accountId, -1)
    }
  }

  /** The job whose turn it is; its account then waits for the others. Undefined when nothing may be started now. */
  next({ now, limits, taken, among = 1, pick = () => 0 }: Request): Entry | undefined {
    this.#ripen(now)
    const soon = this.#takenOnly(taken)
    for (const [operation, lane] of this.#lanes) {
      const limit = limits(operation)
      const ours = soon.get(operation)
      if (limit === undefined || lane.runningInAll + (ours?.inAll ?? 0) >= limit.atOnce) continue
      const isFree = (accountId: string) =>
        (lane.running.get(accountId) ?? 0) + (ours?.of.get(accountId) ?? 0) < limit.atOnceOfAccount &&
        (ours?.of.get(accountId) ?? 0) < (lane.ready.get(accountId)?.size ?? 0)
      const accountId = turn(lane, isFree)
      if (accountId === undefined) continue
      const choices: Array<string> = []
      for (const jobId of lane.ready.get(accountId) ?? []) {
        if (choices.length === among) break
        if (!taken.has(jobId)) choices.push(jobId)
      }
      const entry = this.#jobs.get(choices[pick(choices.length)] ?? "")
      if (entry === undefined) continue
      lane.serve(accountId)
      this.#lanes.delete(operation)
      this.#lanes.set(operation, lane)
      return entry
    }
    return undefined
  }

  /** When the next one may be started that may not now; infinity where there is none. */
  nextTime(now: number): number {
    this.#ripen(now)
    return this.#times.at(now).next
  }

  #lane(operation: string): Lane {
    let lane = this.#lanes.get(operation)
    if (lane === undefined) {
      lane = new Lane()
      this.#lanes.set(operation, lane)
    }
    return lane
  }

  #isReady({ accountId, jobId, operation }: Entry): boolean {
    return this.#lane(operation).ready.get(accountId)?.has(jobId) === true
  }

  /** A lease that ran out counts as nobody's. */
  #ripen(now: number): void {
    for (const { key } of this.#times.at(now).due) {
      const entry = this.#jobs.get(key)
      this.#times.clear(key)
      if (entry === undefined) continue
      const lane = this.#lane(entry.operation)
      if (entry.runner !== null) lane.count(entry.accountId, -1)
      lane.enter(entry)
    }
  }

  /** Taken jobs that still count as ready. */
  #takenOnly(taken: Iterable<string>): ReadonlyMap<string, { inAll: number; readonly of: Map<string, number> }> {
    const counts = new Map<string, { inAll: number; readonly of: Map<string, number> }>()
    for (const jobId of taken) {
      const entry = this.#jobs.get(jobId)
      if (entry === undefined || !this.#isReady(entry)) continue
      const { accountId, operation } = entry
      const count = counts.get(operation) ?? { inAll: 0, of: new Map() }
      count.inAll++
      count.of.set(accountId, (count.of.get(accountId) ?? 0) + 1)
      counts.set(operation, count)
    }
    return counts
  }
}

/** Whose turn it is: the first that had none in this round, or, when all that are free had theirs, the first of a new one. */
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
