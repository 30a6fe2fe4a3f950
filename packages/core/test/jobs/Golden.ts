/** Recorded jobs, and what they come to: text that must stay the same on every release. See `test/golden/addJob.ts`. */
import { Job } from "@millrace/core"
import { EventCodec, EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import type { RecordedLine } from "../ledger/Golden.ts"

export const codec = EventCodec.make(Job.Job)

/** Verifies each event's link and decodes it. */
export const decodeLog = (log: ReadonlyArray<RecordedLine>) => {
  const first = log[0]
  if (first === undefined || !StreamName.isStreamName(first.stream)) throw new Error("No event of a stream")
  const { stream } = first
  let hash = HashChain.start(stream)
  return log.map((line, i) => {
    if (line.stream !== stream || line.revision !== i) throw new Error(`Revision ${i} of ${stream} is missing`)
    if (!HashChain.verify(hash, { ...line, stream, position: EventStore.start }))
      throw new Error(`Revision ${i} does not fit the hash chain`)
    hash = HashChain.hashOf(line)
    return { line, at: Date.parse(HashChain.atOf(line)), event: codec.decode(line.type, line.data) }
  })
}

/** The job after each of its events, one JSON text a line. */
export const replay = (log: ReadonlyArray<RecordedLine>): string => {
  let job: Job.Job = Job.Job.initial
  return decodeLog(log)
    .map(({ at, event }) => {
      job = Job.Job.evolve(job, event, at)
      return `${JSON.stringify(sorted(job))}\n`
    })
    .join("")
}

/** Fields by name: no order is left to chance. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, value]) => [name, sorted(value)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1))
  )
}
