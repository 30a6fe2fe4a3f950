/** The operations that callers of a simulation call, with their inputs, prices and services. */
import type { BlobStore, Jobs, Operation, OperationError } from "@millrace/core"
import type { Layer } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"

/** Services that every simulated host provides; a workload's operations may use them. */
export type HostServices = Jobs | BlobStore.BlobStore

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
 * Operations and the services they need: fakes of their upstreams. A fake uses time and randomness only through Effect's services, and
 * waits for nothing outside them. The simulator injects the failures. Hosts run the jobs; the simulator adds operations by which callers
 * read, cancel and download them.
 */
export interface Workload<Op extends Operation.Any> {
  readonly offers: readonly [Offer<Op>, ...ReadonlyArray<Offer<Op>>]
  /** Built anew by each host; state that hosts share lives outside the layer. */
  readonly services: Layer.Layer<Exclude<Operation.Services<Op>, HostServices>>
}

/** An operation as a simulated host runs it: its own services are provided, and faults are injected into its upstream. */
export type SimulatedOperation = Operation.Any<OperationError, HostServices>

// biome-ignore lint/suspicious/noExplicitAny: what any operation takes
export type Input = any

/** An offer and a workload of any operations, as the simulator uses them. */
export interface AnyOffer {
  readonly operation: Operation.Any
  readonly input: (random: SeededRandom, jobs: ReadonlyArray<string>) => Input
  readonly price: number
}
export interface AnyWorkload {
  readonly offers: readonly [AnyOffer, ...ReadonlyArray<AnyOffer>]
  readonly services: Layer.Layer<never>
}
