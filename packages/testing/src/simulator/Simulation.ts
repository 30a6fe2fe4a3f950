import type { Effect } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Records, Report } from "./Evidence.ts"
import type { Blobs } from "./FaultyStores.ts"
import type { Host } from "./Host.ts"
import type { Files } from "./HostProcess.ts"
import type { AnyWorkload } from "./Workload.ts"
import type { World } from "./World.ts"

export interface Simulation {
  readonly world: World
  readonly hosts: ReadonlyArray<Host>
  readonly accounts: ReadonlyArray<string>
  readonly workload: AnyWorkload
  readonly records: Records
  /** What all hosts stored, and the hashes of the files in it. */
  readonly blobs: Blobs
  readonly files: Files
  /** Waits until an attempt at the job has delivered its work. */
  readonly awaitDelivery: (jobId: string) => Effect.Effect<void>
  /** Probability that a caller uses an idempotency key. */
  readonly keys: number
  /** Probability that a caller hangs up; 0 once faults have ended. */
  readonly hangUps: () => number
  /** Whether faults have ended: then callers stop retrying. */
  readonly isOver: () => boolean
  readonly report: Report
}

/** The elements, at least one. */
export const nonEmpty = <A>(all: ReadonlyArray<A>): readonly [A, ...ReadonlyArray<A>] => {
  const [first, ...rest] = all
  if (first === undefined) throw new Error("A simulation needs at least one host and one account")
  return [first, ...rest]
}

/** Draws one of the elements; undefined if there are none. Draws once in any case. */
export const pickAny = <A>(random: SeededRandom, all: ReadonlyArray<A>): A | undefined => all[random.below(Math.max(1, all.length))]

/** Draws one of the hosts that are up. */
export const pickHost = ({ hosts }: Simulation, random: SeededRandom): Host | undefined =>
  pickAny(
    random,
    hosts.filter((host) => host.isUp)
  )

/** The family of jobs that an operation belongs to; undefined for other operations. */
export const familyOf = ({ workload }: Simulation, key: string): string | undefined => {
  const operation = workload.offers.find(({ operation }) => operation.key === key)?.operation
  return operation?._tag === "Job" ? operation.family.name : undefined
}
