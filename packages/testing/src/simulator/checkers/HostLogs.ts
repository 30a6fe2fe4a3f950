/** Decides which warnings of a host's log are expected under its faults. */
import { AFTERMATH, type FaultsEnded } from "../Evidence.ts"
import { areHostsUndisturbed, type Faults } from "../Faults.ts"
import { TIME_LIMIT } from "../Receivers.ts"
import type { AttemptRecord } from "../Records.ts"

interface Circumstances {
  readonly faults: Faults
  readonly faultsEnded: FaultsEnded | undefined
  readonly attempts: ReadonlyArray<AttemptRecord>
  readonly now: number
  /** When time last skipped; 0 if it did not. */
  readonly skippedTo: number
}

/** A host may warn of an upstream that fails, a lost lease, a store that does not answer, and an operation with a defect. */
export const isExpectedWarning = (message: string, { attempts, faults, faultsEnded, now, skippedTo }: Circumstances): boolean => {
  const { clocks, delay } = faults
  const isOver = faultsEnded !== undefined && now - faultsEnded.at > AFTERMATH
  const failed = /^Job (?<jobId>job_\w+) failed/u.exec(message)?.groups?.["jobId"]
  if (failed !== undefined)
    return attempts.some(({ jobId, outcome, rejectedAs }) => jobId === failed && (outcome === "Defect" || rejectedAs === "Defect"))
  if (message.startsWith("No snapshot of ")) return !isOver && !areHostsUndisturbed(faults)
  // What the receivers of webhooks answer; a removal may come between. If time skips while one is sent, its time is over
  if (/^A webhook (?:failed|was given up|was disabled) /u.test(message))
    return (skippedTo > 0 && now - skippedTo < TIME_LIMIT) || (!isOver && (faults.receivers > 0 || !areHostsUndisturbed(faults)))
  if (message.startsWith("A webhook could not be sent now"))
    return message.endsWith("WebhookNotFound") || (!isOver && !areHostsUndisturbed(faults))
  // The relay refuses mail as upstreams fail
  if (message.startsWith("A sign-in link was not mailed")) return !isOver && faults.upstreams > 0
  // Other checkers judge these attempts and calls
  if (/^(?:An upstream failed|An operation is faulty|An attempt at a job failed)/u.test(message)) return true
  // An attempt that cannot be interrupted finds only at its end that it lost its lease
  const isEndOfUninterruptible = attempts.some(({ isUninterruptible, stopped }) => isUninterruptible && stopped?.at === now)
  if (message.startsWith("A job's lease was lost") && isEndOfUninterruptible) return true
  // The job was cancelled, and its key destroyed, while it succeeded
  if (/^The end of a job was not recorded SubjectDestroyed/u.test(message)) return true
  if (/^(?:A job's lease was lost|A job could not be claimed|The end of a job was not recorded)/u.test(message))
    return !isOver && (!areHostsUndisturbed(faults) || (clocks > 0 && delay > 0))
  return false
}
