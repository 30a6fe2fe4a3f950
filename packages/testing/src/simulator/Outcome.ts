/** What a simulation returns: its trace, its log, and statistics of what happened. */
import { createHash } from "node:crypto"
import type { EventStore } from "@millrace/event-sourcing"
import type { Evidence } from "./Evidence.ts"
import type { JobHistory } from "./LogRecorder.ts"
import { type AttemptRecord, type Call, summaryOf } from "./Records.ts"
import type { World } from "./World.ts"

/** What a caller was answered, in a few words. */
export interface CallSummary {
  readonly requestId: string
  readonly operation: string
  readonly key: string | undefined
  readonly answer: string
}

export interface Outcome {
  /** A line for everything that happened: milliseconds since the beginning, who, what. */
  readonly trace: ReadonlyArray<string>
  /** The whole log. */
  readonly events: ReadonlyArray<EventStore.RecordedEvent>
  /** SHA-256 of trace and log, base64url. */
  readonly hash: string
  readonly calls: ReadonlyArray<CallSummary>
  /** Counts of answers, events and faults. */
  readonly stats: Readonly<Record<string, number>>
}

export const outcomeOf = (evidence: Evidence, { tasks, trace }: World): Outcome => {
  const { log } = evidence
  const calls = evidence.calls.map(summarize)
  return { trace, events: log, hash: hashOf(trace, log), calls, stats: { ...statsOf(evidence, calls), tasks } }
}

const summarize = ({ hungUp, intent, requestId, response }: Call): CallSummary => {
  const answer = response === undefined ? (hungUp ? "hung up" : "nothing") : summaryOf(response.answer)
  return { requestId, operation: intent.operation, key: intent.key, answer }
}

const statsOf = (evidence: Evidence, calls: ReadonlyArray<CallSummary>): Record<string, number> => {
  const { log, records, recorder } = evidence
  const stats: Record<string, number> = {}
  const count = (what: string) => {
    stats[what] = (stats[what] ?? 0) + 1
  }
  for (const { answer } of calls) count(`told ${answer.split(/[ ,:]/u, 1)[0]}`)
  for (const { data, type } of log) {
    count(type)
    if (data.includes(`"lateOf"`)) count("charged late")
  }
  for (const { answer } of records.openings) count(`opens: ${answer ?? "nothing"}`)
  for (const { answer, kind } of records.observations) count(`${kind}: ${answer.split(" ", 1)[0]}`)
  for (const job of recorder.jobs.values()) for (const turn of turnsOf(job, evidence.attemptsAt(job.jobId))) count(`job ${turn}`)
  for (const { accepted } of records.posts) count(accepted ? "webhook accepted" : "webhook not accepted")
  for (const { answer } of records.mailings) count(`mail ${answer?.told ?? "not answered"}`)
  for (const { answer } of records.textings) count(`text ${answer?.told ?? "not answered"}`)
  for (const { answer } of records.admissions) count(`client ${answer?.told ?? "not answered"}`)
  for (const { answer } of records.countings) count(`count ${answer?.told ?? "not answered"}`)
  for (const { events } of recorder.subscriptions.byId.values())
    for (const { event } of events) {
      if (event._tag === "SubscriptionEnded") count(`subscription ended: ${event.reason}`)
      if (event._tag === "SubscriptionPeriodBegan" && event.period > 0) count("subscription renewed")
    }
  for (const act of records.people.acts) count(`people ${"answer" in act ? `${act._tag} ${act.answer}` : act._tag}`)
  for (const act of records.people.keyActs) count(`people key ${act._tag}${act._tag === "Used" ? ` ${act.answer}` : ""}`)
  stats["promises"] = records.promised.size
  return stats
}

/** What happened to a job beyond its events. */
const turnsOf = ({ events, states }: JobHistory, attempts: ReadonlyArray<AttemptRecord>): ReadonlyArray<string> => {
  const delivered = attempts.filter((attempt) => attempt.delivered !== undefined).length
  const turns = events.flatMap(({ event }, i) => {
    if (event._tag === "JobFailed") return [`failed: ${event.failure}`]
    if (event._tag === "JobStarted" && states[i - 1]?.status === "running") return ["taken over"]
    if (event._tag === "JobReleased" && event.failure === undefined) return ["handed back"]
    return event._tag === "JobCancelled" && delivered > 0 ? ["delivered, and cancelled"] : []
  })
  return delivered > 1 ? [...turns, "delivered twice"] : turns
}

const hashOf = (trace: ReadonlyArray<string>, log: ReadonlyArray<EventStore.RecordedEvent>): string => {
  const sha = createHash("sha256")
  for (const line of trace) sha.update(`${line}\n`)
  for (const { stream, revision, id, type, data, metadata } of log) sha.update(`${stream} ${revision} ${id} ${type} ${data} ${metadata}\n`)
  return sha.digest("base64url")
}
