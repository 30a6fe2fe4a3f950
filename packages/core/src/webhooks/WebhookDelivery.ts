/**
 * Delivers webhooks in the background, at one host at a time: each notice that a webhook selects, at least once, or it becomes a dead letter.
 */

import { type EventStore, Following, Lease, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, FiberSet, Layer } from "effect"
import type { Registration } from "../accounts/Registration.ts"
import type * as Notices from "../notices/Notices.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Feed from "./Feed.ts"
import * as Lane from "./Lane.ts"
import { Outbox } from "./Outbox.ts"
import * as Policy from "./Policy.ts"
import * as Sending from "./Sending.ts"
import { Webhooks } from "./Webhooks.ts"

export interface Options extends Policy.DeliveryOptions, Lease.Options {}

export interface Status {
  /** Whether this process holds the lease and delivers. */
  readonly leader: boolean
  /** Deliveries that wait at this process, if it is the leader. */
  readonly waiting: number
  /** The last failure of a store, which is retried. */
  readonly trouble: Following.Retrying | undefined
}

const make = Effect.fnUntraced(function* (options: Options = {}) {
  const webhooks = yield* Webhooks
  const policy = Policy.of(options)
  const count = yield* Metrics.countWebhooks
  let outbox: Outbox | undefined
  let trouble: Following.Retrying | undefined
  const report: Following.Report = (retrying) => {
    trouble = retrying
  }
  const waiting = () => [...(outbox?.lanes.values() ?? [])].reduce((sum, lane) => sum + lane.waiting, 0)
  yield* Metrics.waitingWebhooks(waiting)

  const lead = (lease: Lease.Held) =>
    Effect.gen(function* () {
      const begun = yield* Following.retryForever(
        Effect.gen(function* () {
          return { lease, lanes: yield* Lane.load, fed: yield* Feed.start(webhooks.endpoints) }
        }),
        report
      )
      const opened = new Outbox(begun, webhooks.endpoints, policy, report)
      outbox = opened
      const fibers = yield* FiberSet.make<void, never>()
      // Runs before those that still send are interrupted
      yield* Effect.addFinalizer(() => Effect.timeoutOption(FiberSet.awaitEmpty(fibers), policy.drain))
      const sending = { outbox: opened, webhooks, fibers, count }
      return yield* Effect.raceFirst(Feed.run(opened), Following.retryForever(Sending.run(sending), report))
    }).pipe(
      Effect.scoped,
      Effect.ensuring(
        Effect.sync(() => {
          outbox = undefined
        })
      )
    )

  yield* Effect.forkScoped(Lease.keep("webhooks", options)(lead))
  return { status: Effect.sync((): Status => ({ leader: outbox !== undefined, waiting: waiting(), trouble })) }
})

export class WebhookDelivery extends Context.Service<WebhookDelivery, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/core/webhooks/WebhookDelivery"
) {
  static readonly layer = (
    options?: Options
  ): Layer.Layer<WebhookDelivery, never, Webhooks | Notices.Sources | Registration | EventStore.EventStore | StateStore.StateStore> =>
    Layer.effect(this, make(options))
}
