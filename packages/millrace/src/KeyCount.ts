/**
 * How many keys of the vault were destroyed, and why: for `doctor` and `audit`, which say the same. The state store knows the keys, and the
 * log does not.
 */
import { statSync } from "node:fs"
import { Vault } from "@millrace/core"
import { PostgresStateStore } from "@millrace/event-store-postgres"
import { SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer } from "effect"
import * as StateUrl from "./StateUrl.ts"
import * as StoreUrl from "./StoreUrl.ts"

/** Keys of the vault. Each belongs to an account, to something of an account, such as a job or an inbox, or to the host. */
export interface KeyCount {
  /** Keys that were not destroyed. A job's key is of no use once that of its account is destroyed. */
  readonly present: number
  readonly destroyed: number
  /** Destroyed because their accounts were erased. */
  readonly erasedAccounts: number
  /** Destroyed because their jobs were deleted, ended their retention, or were never accepted. */
  readonly purgedJobs: number
  /** Destroyed for anything else: an inbox, a webhook, the text messages of an hour, or a subject of the host's own. */
  readonly others: number
}

const isJob = (subject: string): boolean => subject.startsWith("job:")
const isAccount = (subject: string): boolean => subject.startsWith(Vault.ofAccount(""))

/** Counts the subjects of a vault. */
export const of = ({ alive, destroyed }: Effect.Success<typeof Vault.census>): KeyCount => {
  const erasedAccounts = destroyed.filter(isAccount).length
  const purgedJobs = destroyed.filter(isJob).length
  const others = destroyed.length - erasedAccounts - purgedJobs
  return { present: alive.length, destroyed: destroyed.length, erasedAccounts, purgedJobs, others }
}

const count = (n: number, one: string, many: string): string => `${n} ${n === 1 ? one : many}`

/** The count as a part of a sentence: `2 keys, and 1 was destroyed: of 1 erased account`. */
export const text = ({ destroyed, erasedAccounts, others, present, purgedJobs }: KeyCount): string => {
  const reasons = [
    ...(erasedAccounts === 0 ? [] : [count(erasedAccounts, "erased account", "erased accounts")]),
    ...(purgedJobs === 0 ? [] : [count(purgedJobs, "purged job", "purged jobs")]),
    ...(others === 0 ? [] : [count(others, "other subject", "other subjects")])
  ]
  const why = reasons.length === 0 ? "" : `: of ${reasons.join(", ")}`
  return `${count(present, "key", "keys")}, and ${count(destroyed, "was destroyed", "were destroyed")}${why}`
}

/** The state of a store, to be read without the master key; undefined where there is none, as beside the log of a backup. */
const stateLayer = (url: string) =>
  Effect.gen(function* () {
    const state: StateUrl.StateUrl = StoreUrl.isPostgres(url)
      ? { _tag: "Postgres", url }
      : StoreUrl.isKurrentDb(url)
        ? yield* StateUrl.needed
        : { _tag: "Sqlite", filename: (yield* StoreUrl.filesOf(url)).state }
    if (state._tag === "Postgres") return PostgresStateStore.layer({ url: state.url, readOnly: true })
    const size = statSync(state.filename, { throwIfNoEntry: false })?.size ?? 0
    return size === 0 ? undefined : SqliteStateStore.layer({ filename: state.filename, readOnly: true })
  })

/** The keys of a store; null where its state cannot be read, which an audit does not need. */
export const find = (url: string) =>
  Effect.gen(function* () {
    const state = yield* stateLayer(url)
    if (state === undefined) return null
    const census = yield* Vault.census.pipe(Effect.provide(Layer.fresh(state)))
    return of(census)
  }).pipe(Effect.catch(() => Effect.succeed(null)))
