/** The operations that callers of a simulation call, with their inputs, prices and services. */
import type { BlobStore, Jobs, Operation, OperationError } from "@millrace/core"
import type { Layer, Schema } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"

/** Services that every simulated host provides; a workload's operations may use them. */
export type HostServices = Jobs | BlobStore.BlobStore

/** One operation of a workload. */
export type Offer<Op extends Operation.Any> = Op extends Operation.Any
  ? {
      readonly operation: Op
      /** Draws an input. `jobs`: the ids of all jobs created so far, oldest first, for operations that take a job. */
      readonly input: (random: SeededRandom.SeededRandom, jobs: ReadonlyArray<string>) => Parameters<Op["run"]>[0]
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

type Fields = Schema.Struct.Fields

/** An operation as a simulated host runs it: its own services are provided, and faults are injected into its upstream. */
export type SimulatedOperation = Operation.Operation<
  string,
  string,
  `/${string}`,
  Fields,
  Fields,
  Fields,
  Schema.Codec<unknown, unknown>,
  OperationError,
  HostServices
>

export type Input = Parameters<SimulatedOperation["run"]>[0]

/** An offer and a workload of any operations, as the simulator uses them. */
export interface AnyOffer {
  readonly operation: Operation.Any
  readonly input: (random: SeededRandom.SeededRandom, jobs: ReadonlyArray<string>) => Input
  readonly price: number
}
export interface AnyWorkload {
  readonly offers: readonly [AnyOffer, ...ReadonlyArray<AnyOffer>]
  readonly services: Layer.Layer<never>
}
