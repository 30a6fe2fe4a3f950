/** The faults of upstreams, and their effects on the work of a call or of an attempt at a job. */
import { InvalidInput, NotFound, type OperationError, UpstreamNotConfigured, UpstreamUnavailable } from "@millrace/core"
import { Effect } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Records, Report } from "./Evidence.ts"
import type { World } from "./World.ts"

const MALFORMED = ["malformed", "tooMany", "fraction", "negative"] as const

export const callFaults = [
  ...(["invalid", "missing", "down", "unconfigured", "answerLost", "hang", "late", "uninterruptible", "bug"] as const),
  ...MALFORMED
] as const

/** Transient failures are the most frequent, for only they are retried. */
export const jobFaults = [
  ...(["down", "invalid", "missing", "unconfigured", "bug"] as const),
  ...MALFORMED,
  ...([
    "down",
    "down",
    "down",
    "answerLost",
    "answerLost",
    "afterCheckpoint",
    "afterCheckpoint",
    "hang",
    "late",
    "uninterruptible"
  ] as const)
] as const

/**
 * - `fine`: none
 * - `invalid`, `missing`, `down`, `unconfigured`: it fails with `InvalidInput`, `NotFound`, `UpstreamUnavailable`, `UpstreamNotConfigured`
 * - `answerLost`: it does the work, but the answer is lost
 * - `afterCheckpoint`: it fails once a checkpoint was recorded
 * - `hang`: it never answers
 * - `late`: it answers after the timeout
 * - `uninterruptible`: it ignores interruption
 * - `bug`: its client dies of a defect
 * - `malformed`: it answers data that the schema refuses
 * - `tooMany`, `fraction`, `negative`: it counts more units than were requested, half a unit, or a negative number
 */
export type UpstreamFault = "fine" | (typeof jobFaults)[number]

/** The faults whose result the runner of a job must reject. */
export const REJECTED: ReadonlySet<UpstreamFault> = new Set(MALFORMED)

/** What fault injection shares between all hosts. */
export interface FaultInjector {
  readonly world: World
  readonly random: SeededRandom
  /** Gets the deliveries for calls, and the attempts at jobs. */
  readonly records: Pick<Records, "recorder" | "deliveries" | "attempts" | "ignoring">
  /** Probability of a fault now; 0 once faults have ended. */
  readonly rate: () => number
  /** Whether faults have ended. */
  readonly isOver: () => boolean
  readonly report: Report
  /** Whether nothing but upstreams can make an operation wait: no faults of hosts and stores. */
  readonly isUndisturbed: boolean
  /** Signals that the work of a job was delivered. */
  readonly jobDelivered: (jobId: string) => void
}

/** The message of the defect that the fault `bug` dies with. */
export const BUG = "the upstream's client has a bug"

interface Outcome {
  readonly data: unknown
  readonly quantity?: number
}

interface Work<A extends Outcome, E, R> {
  readonly upstream: string
  /** The work itself. */
  readonly deliver: Effect.Effect<A, E, R>
  readonly random: SeededRandom
  /** Milliseconds until a failure is answered, until the call times out, and for which interruption is ignored. */
  readonly takes: number
  readonly timeout: number
  readonly ignores: () => number
  /** A quantity beyond what was requested. */
  readonly tooMany: () => number
}

/** The work with a fault. */
export const inject = <A extends Outcome, E, R>(
  fault: UpstreamFault,
  work: Work<A, E, R>
): Effect.Effect<A | Outcome, E | OperationError, R> => {
  const { deliver, ignores, random, takes, timeout, tooMany, upstream } = work
  const later = <E>(error: E) => Effect.delay(Effect.fail(error), takes)
  const unavailable = new UpstreamUnavailable({ upstream, reason: fault })
  switch (fault) {
    case "fine":
    case "afterCheckpoint":
      return deliver
    case "invalid":
      return later(new InvalidInput({ field: "n", message: fault }))
    case "missing":
      return later(new NotFound({ resource: "thing" }))
    case "down":
      return later(unavailable)
    case "unconfigured":
      return later(new UpstreamNotConfigured({ upstream }))
    case "answerLost":
      return Effect.andThen(deliver, Effect.fail(unavailable))
    case "hang":
      return Effect.never
    case "late":
      return Effect.delay(deliver, timeout + random.below(60_000) - 5)
    case "uninterruptible":
      return Effect.uninterruptible(Effect.delay(deliver, ignores()))
    case "bug":
      return Effect.delay(Effect.die(new Error(BUG)), takes)
    case "malformed":
      return Effect.map(deliver, () => ({ data: undefined }))
    case "tooMany":
      return Effect.map(deliver, ({ data }) => ({ data, quantity: tooMany() }))
    case "fraction":
      return Effect.map(deliver, ({ data }) => ({ data, quantity: 0.5 }))
    case "negative":
      return Effect.map(deliver, ({ data }) => ({ data, quantity: -1 }))
  }
}
