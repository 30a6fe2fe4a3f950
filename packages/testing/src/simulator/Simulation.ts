/** One simulation: its options and its parts. */
import type { Operation } from "@millrace/core"
import type { StateStore } from "@millrace/event-sourcing"
import type { Effect } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { FaultsEnded, Records, Report } from "./Evidence.ts"
import type { Faults } from "./Faults.ts"
import type { Blobs } from "./FaultyStores.ts"
import type { Host } from "./Host.ts"
import type { Files } from "./HostProcess.ts"
import type { SimulatedGateway } from "./payments/Gateway.ts"
import type { SimulatedRelay } from "./people/Endpoints.ts"
import type { Terms } from "./proxies/Endpoints.ts"
import type { Receivers } from "./Receivers.ts"
import type { AnyWorkload } from "./Workload.ts"
import type { World } from "./World.ts"

export interface SimulationOptions {
  readonly world: World
  readonly steps: number
  /** Called before each step, with its number from 1. */
  readonly onStep: (step: number) => void
  /** Probability that a caller uses an idempotency key. */
  readonly keys: number
  /** Probability that a step opens an account by the host's own id. */
  readonly opens: number
  /** Probability that a step does something to webhooks. Without it hosts deliver none. */
  readonly webhooks: number
  /** Probability that a step does something to inboxes, or sends mail to them. Without it hosts have none. */
  readonly inboxes: number
  /** Probability that a step waits for a verification code, or sends a text message. Without it hosts have no public numbers. */
  readonly codes: number
  /** Probability that a step opens a proxy session, or uses one. Without it hosts have no proxy nodes. */
  readonly proxies: number
  /** Probability that a step does something to payments. Without it hosts take none. */
  readonly payments: number
  /** Probability that a step does something to subscriptions. Without it hosts have no plans. */
  readonly subscriptions: number
  /** Probability that a step does something that people do. Without it nobody can sign in. */
  readonly people: number
  /** Accounts that begin with a trial, beside those that are verified. */
  readonly trials: number
  /** Whether one host leads each account. */
  readonly leading: boolean
  readonly workload: AnyWorkload
  readonly faults: Faults
  readonly random: SeededRandom
  readonly report: Report
  /** False once something was reported. */
  readonly goOn: () => boolean
}

export interface Simulation extends SimulationOptions {
  readonly hosts: ReadonlyArray<Host>
  /** A host that has never run: it starts in the final phase. */
  readonly fresh: Host
  readonly accounts: ReadonlyArray<string>
  /** The operations of the workload by their keys. */
  readonly operations: ReadonlyMap<string, Operation.Any>
  readonly records: Records
  /** The state store, without faults. */
  readonly states: StateStore.StateStore["Service"]
  /** What all hosts stored, and the hashes of the files in it. */
  readonly blobs: Blobs
  readonly files: Files
  readonly receivers: Receivers
  readonly sessionTerms: Terms
  readonly gateway: SimulatedGateway
  readonly relay: SimulatedRelay
  /** Numbers what senders send: another number each time. */
  readonly serial: () => number
  /** Waits until an attempt at the job has delivered its work. */
  readonly awaitDelivery: (jobId: string) => Effect.Effect<void>
  readonly endFaults: () => FaultsEnded
  /** Whether faults have ended: then callers stop retrying. */
  readonly isOver: () => boolean
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
export const pickHost = ({ hosts }: Simulation, random: SeededRandom): Host | undefined => {
  const up = hosts.filter((host) => host.isUp)
  return pickAny(random, up)
}
