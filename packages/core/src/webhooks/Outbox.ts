/**
 * What the host that delivers webhooks shares between reading the log and sending. Every write to the state store renews its lease, so a
 * host that lost the lease changes nothing any more.
 */
import { type EventStore, Following, Lease, type Projection, type StateStore } from "@millrace/event-sourcing"
import { type Array, Effect, Latch, Semaphore } from "effect"
import type { Endpoints } from "./Endpoints.ts"
import * as Lane from "./Lane.ts"
import type { Policy } from "./Policy.ts"

export class Outbox {
  readonly policy: Policy
  readonly lanes: Map<string, Lane.Lane>
  /** Opened when there may be something to send. */
  readonly woken = Latch.makeUnsafe(true)
  /** Held while deliveries are made of notices: by the feed, and by a lane that catches up. */
  readonly turn = Semaphore.makeUnsafe(1)
  readonly report: Following.Report
  /** The position up to which the log was read for all lanes. */
  fed: EventStore.Position
  readonly #lease: Lease.Held
  readonly #endpoints: Projection.Projection<Endpoints>

  constructor(
    held: { readonly lease: Lease.Held; readonly lanes: Map<string, Lane.Lane>; readonly fed: EventStore.Position },
    endpoints: Projection.Projection<Endpoints>,
    policy: Policy,
    report: Following.Report
  ) {
    this.#lease = held.lease
    this.lanes = held.lanes
    this.fed = held.fed
    this.#endpoints = endpoints
    this.policy = policy
    this.report = report
  }

  laneOf(webhook: string): Lane.Lane {
    const lane = this.lanes.get(webhook) ?? Lane.make(webhook)
    this.lanes.set(webhook, lane)
    return lane
  }

  /** The webhooks as of a position at least. Waits until they are known. */
  endpointsAt(position: EventStore.Position): Effect.Effect<Endpoints> {
    const read = Effect.map(this.#endpoints.read({ atLeast: position }), ({ state }) => state)
    return Following.retryForever(read, this.report)
  }

  /** Writes all changes or none. Retries until they are written or the lease is lost. */
  save(changes: Array.NonEmptyReadonlyArray<StateStore.Change>): Effect.Effect<void, Lease.LeaseLost> {
    const written = this.#lease.write(changes).pipe(
      Effect.as(Effect.void),
      Effect.catchIf(
        (error) => error instanceof Lease.LeaseLost,
        (lost) => Effect.succeed(Effect.fail(lost))
      )
    )
    return Effect.flatten(Following.retryForever(written, this.report))
  }
}
