/** Recorded jobs and their states: text that must be the same in every release. See `test/golden/addJob.ts`. */
import { Job } from "@millrace/core"
import { decodeWith, type RecordedLine } from "../ledger/Golden.ts"

export const { codec } = Job.Job

export const decodeLog = (log: ReadonlyArray<RecordedLine>) => decodeWith(codec, log)

/** The state of the job after each of its events, as lines of JSON. */
export const replay = (log: ReadonlyArray<RecordedLine>): string => {
  let job: Job.Job = Job.Job.initial
  return decodeLog(log)
    .map(({ at, event }) => {
      job = Job.Job.evolve(job, event, at)
      return `${JSON.stringify(sorted(job))}\n`
    })
    .join("")
}

/** Sorts fields by name. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, value]) => [name, sorted(value)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1))
  )
}
