/** What the upstreams of all operations have in common: how bad they are at the moment, and who is told of what they did. */
import { type Context, Effect } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"
import type { Attempted } from "./JobUpstream.ts"
import type { OfHost } from "./Workload.ts"
import type { Process, World } from "./World.ts"

/** Work that an upstream truly delivered. */
export interface Delivery {
  readonly requestId: string
  readonly reservationId: string
  readonly data: string
  /** Undefined: all that was asked for. */
  readonly quantity: number | undefined
}

export interface Weather extends Climate {
  /** The host that asks. */
  readonly process: Process
}

/** The weather at all hosts. */
export interface Climate {
  readonly world: World
  readonly random: SeededRandom.SeededRandom
  /** Events in the log. */
  readonly place: () => number
  /** Probability that anything is wrong with a run; nothing ever, when it is calm. */
  readonly rate: () => number
  /** Told of what was delivered: of a reservation, at most once. */
  readonly delivered: (delivery: Delivery) => void
  /** Told of each attempt at a job, as it begins. */
  readonly attempted: (attempt: Attempted) => void
  /** Told when the work of a job was delivered. */
  readonly done: (jobId: string) => void
}

/** A fault that is a bug of the upstream's client: it dies of it. */
export const BUG = "the upstream's client has a bug"

/** With all it needs but what its host has. */
export const within = <A, E, R>(effect: Effect.Effect<A, E, R | OfHost>, services: Context.Context<R>): Effect.Effect<A, E, OfHost> =>
  Effect.provideContext(effect, services) as Effect.Effect<A, E, OfHost>
