/** The operations that callers of a simulation call, with their inputs, prices and services. */
import type { BlobStore, Catalog, Jobs, MasterKey, Millrace, Operation, OperationError, RateLimit, Replies, Usage } from "@millrace/core"
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import type { Layer } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { AnyExpectations, Expectations } from "./Expectations.ts"
import type { Source } from "./PastedTest.ts"
import type { Input } from "./Records.ts"

/**
 * Services that every simulated host provides; a workload's operations may use them. They are those of a real host: its stores, with faults,
 * the services for administrators (`Ledger`, `Registration`, `KeyRing`, `Payments`, `PriceBook`, `Vault`), and those of calls and jobs.
 */
export type HostServices =
  | Millrace.Administration
  | Jobs
  | Replies
  | RateLimit
  | Usage.UsageBook
  | Catalog.Catalog
  | BlobStore.BlobStore
  | MasterKey
  | EventStore.EventStore
  | StateStore.StateStore

/** What a workload must provide. Nothing for an operation whose type hides what it needs, as those of the package `millrace` do. */
type OwnServices<Op> = 0 extends 1 & Operation.Services<Op> ? never : Exclude<Operation.Services<Op>, HostServices>

/** One operation of a workload. */
export type Offer<Op extends Operation.Any> = Op extends Operation.Any
  ? {
      readonly operation: Op
      /** Draws an input. `jobs`: the ids of all jobs created so far, oldest first, for operations that take a job. */
      readonly input: (random: SeededRandom, jobs: ReadonlyArray<string>) => Operation.InputOf<Op>
      /** The first unit price in thousandths of a credit. Administrators publish other prices during the simulation. */
      readonly price: number
    }
  : never

/**
 * Operations, the services they need, and what must be true of them. The services are fakes of upstreams. A fake uses time and randomness only through Effect's services, and
 * waits for nothing outside them. The simulator injects the failures. Hosts run the jobs; the simulator adds operations by which callers
 * read, cancel and download them.
 */
export interface Workload<Op extends Operation.Any> {
  readonly offers: readonly [Offer<Op>, ...ReadonlyArray<Offer<Op>>]
  /** Built anew by each host; state that hosts share lives outside the layer. */
  readonly services: Layer.Layer<OwnServices<Op>>
  /** What the printed test of a failure imports: by default `workload`, or the function's name, from `./workload.ts`. */
  readonly source?: Partial<Source>
  /** What must be true of the operations. A violation carries seed and trace like those that the simulator finds by itself. */
  readonly expect?: Expectations<Op>
}

/** An operation as a simulated host runs it: its own services are provided, and faults are injected into its upstream. */
export type SimulatedOperation = Operation.Any<OperationError, HostServices>

/** An offer and a workload of any operations, as the simulator uses them. */
export interface AnyOffer {
  readonly operation: Operation.Any
  readonly input: (random: SeededRandom, jobs: ReadonlyArray<string>) => Input
  readonly price: number
}
export interface AnyWorkload {
  readonly offers: readonly [AnyOffer, ...ReadonlyArray<AnyOffer>]
  readonly services: Layer.Layer<never>
  readonly source?: Partial<Source>
  readonly expect?: AnyExpectations
  /** The standard workload: some of its runs have webhooks, some inboxes, and some codes, unless a setting says how many. */
  readonly isStandard?: boolean
}
