/** Sends the deliveries that are due, each webhook's in its own lane, and records how each attempt ended. */
import { EventStore, Lease, type Projection, type StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, FiberSet, HashMap, Result } from "effect"
import type { Registration } from "../accounts/Registration.ts"
import * as Notices from "../notices/Notices.ts"
import * as Body from "./Body.ts"
import * as Delivery from "./Delivery.ts"
import * as Endpoints from "./Endpoints.ts"
import * as Feed from "./Feed.ts"
import * as Lane from "./Lane.ts"
import type { Outbox } from "./Outbox.ts"
import * as Policy from "./Policy.ts"
import type { Answer } from "./WebhookSender.ts"
import type { Webhooks } from "./Webhooks.ts"

/** How an attempt ended: `failed` is tried again, `dead` is not. */
export type Outcome = "delivered" | "failed" | "dead"

export interface Sending {
  readonly outbox: Outbox
  readonly webhooks: Webhooks["Service"]
  readonly fibers: FiberSet.FiberSet<void, never>
  readonly count: (outcome: Outcome) => void
}

/** How often all lanes are looked at: another process may have put a delivery back. */
const POLL = 5_000
/** While a receiver fails and notices wait in the log, it is tried at least so often. */
const PROBE = 300_000
/** A lane rests so long if a delivery cannot be prepared, because a store is away. */
const REST = 5_000

/** Sends until the lease is lost. */
export const run = Effect.fnUntraced(function* (
  sending: Sending
): Effect.fn.Return<
  never,
  Lease.LeaseLost | StateStore.StateUnavailable | Projection.ProjectionBehind | Projection.ProjectionStopped,
  EventStore.EventStore | StateStore.StateStore | Notices.Sources | Registration
> {
  const { outbox, webhooks } = sending
  for (;;) {
    // Closed before anything is read, so that no wake is lost
    outbox.woken.closeUnsafe()
    // Before the webhooks are read: a lane without a webhook is one that was removed, not one that is new
    const lanes = [...outbox.lanes.keys()]
    const { state: endpoints } = yield* webhooks.endpoints.read()
    const ids = new Set([...HashMap.keys(endpoints), ...lanes])
    for (const id of ids) yield* serve(sending, outbox.laneOf(id), Endpoints.find(endpoints, id))
    const now = yield* Clock.currentTimeMillis
    const next = Math.min(...Array.from(outbox.lanes.values(), ({ nextLook, pausedUntil }) => Math.max(nextLook, pausedUntil)), now + POLL)
    yield* Effect.raceFirst(outbox.woken.await, Effect.sleep(Math.max(1, next - now)))
  }
})

/** Starts the deliveries of a lane that are due and have room. */
const serve = Effect.fnUntraced(function* (sending: Sending, lane: Lane.Lane, endpoint: Endpoints.Endpoint | undefined) {
  const { outbox } = sending
  if (endpoint === undefined) return yield* clear(outbox, lane)
  const now = yield* Clock.currentTimeMillis
  if (endpoint.status === "disabled") {
    lane.nextLook = now + POLL
    return
  }
  if (lane.behind !== undefined && lane.waiting <= outbox.policy.waitingLimit / 2) yield* Feed.catchUp(outbox, lane)
  if (Math.max(lane.nextLook, lane.pausedUntil) > now) return
  const room = outbox.policy.concurrency - lane.sending.size
  lane.nextLook = now + POLL
  if (room <= 0) return
  const rows = yield* Delivery.first(Delivery.WAITING, lane.webhook, outbox.policy.concurrency + lane.sending.size)
  if (rows.length === 0) lane.waiting = 0
  let started = 0
  for (const row of rows) {
    if (lane.sending.has(row.key) || started >= room) continue
    const delivery = Delivery.of(row)
    const dueAt = Math.min(delivery.nextAt, earlyAt(lane))
    if (dueAt > now) {
      lane.nextLook = Math.min(lane.nextLook, dueAt)
      break
    }
    started++
    yield* start(sending, lane, delivery)
  }
})

/** When the next delivery of a lane that is behind may be sent before its time: at once while the receiver answers, else now and then. */
const earlyAt = ({ behind, failingSince, lastAttemptAt }: Lane.Lane): number => {
  if (behind === undefined) return Number.POSITIVE_INFINITY
  return failingSince === undefined ? 0 : lastAttemptAt + PROBE
}

const start = Effect.fnUntraced(function* (sending: Sending, lane: Lane.Lane, delivery: Delivery.Delivery) {
  const key = Delivery.keyOf(delivery)
  lane.sending.add(key)
  lane.lastAttemptAt = yield* Clock.currentTimeMillis
  const attempted = attempt(sending, lane, delivery).pipe(
    Effect.catchIf(
      (error) => error instanceof Lease.LeaseLost,
      // Another host sends it
      () => Effect.void
    ),
    Effect.catchCause((cause) => {
      lane.pausedUntil = lane.lastAttemptAt + REST
      return Effect.logWarning("A webhook could not be sent now", { webhook: lane.webhook, notice: delivery.notice.id }, cause)
    }),
    Effect.ensuring(
      Effect.sync(() => {
        lane.sending.delete(key)
        lane.nextLook = 0
        sending.outbox.woken.openUnsafe()
      })
    )
  )
  yield* FiberSet.run(sending.fibers, attempted)
})

/** Sends a delivery once, and records how that ended. */
const attempt = Effect.fn("Webhooks.deliver")(function* (
  { count, outbox, webhooks }: Sending,
  lane: Lane.Lane,
  delivery: Delivery.Delivery
) {
  const { account, at, facts, id, name, position } = delivery.notice
  // The webhook may have changed since the delivery was made. What was known before that may lack the change that selected its notice
  const endpoint = Endpoints.find(yield* outbox.endpointsAt(EventStore.position(position)), lane.webhook)
  if (endpoint?.status !== "enabled") return
  if (!Endpoints.selects(endpoint, delivery.notice as Notices.Notice)) {
    Lane.left(lane)
    return yield* outbox.save([Delivery.remove(delivery)])
  }
  const reference = yield* Notices.referenceOf(account)
  const now = yield* Clock.currentTimeMillis
  const body = Body.encode(name, at, { account, ...(reference === undefined ? {} : { reference }), ...facts })
  const answer = yield* webhooks.post(lane.webhook, { id, at: now, body })
  const isDelivered = Result.isSuccess(answer) && answer.success.status >= 200 && answer.success.status < 300
  if (isDelivered) {
    Lane.left(lane)
    lane.failingSince = undefined
    count("delivered")
    return yield* outbox.save([Delivery.remove(delivery), Lane.keep(lane)])
  }
  const error = Result.isSuccess(answer) ? `it answered with status ${answer.success.status}` : answer.failure.reason
  const ended = Result.isSuccess(answer) ? answer.success : undefined
  const failed = { ...delivery, attempts: delivery.attempts + 1, last: { at: now, status: ended?.status ?? null, error } }
  yield* Effect.logWarning("A webhook failed", { webhook: lane.webhook, notice: id, attempt: failed.attempts, error })
  const outcome = yield* record(outbox, lane, delivery, failed, now, ended)
  count(outcome)
  const reason = ended?.status === 410 ? "gone" : now - (lane.failingSince ?? now) >= outbox.policy.disableAfter ? "failing" : undefined
  if (reason !== undefined) yield* disable(webhooks, lane, reason)
})

/** Disables a webhook. Its lane rests until this host sees that, so that nothing more is sent. */
const disable = Effect.fnUntraced(function* (webhooks: Webhooks["Service"], lane: Lane.Lane, reason: "gone" | "failing") {
  lane.pausedUntil = Number.POSITIVE_INFINITY
  yield* Effect.logWarning("A webhook was disabled", { webhook: lane.webhook, reason })
  yield* webhooks.disable(lane.webhook, reason, { actor: "webhooks", reason }).pipe(
    Effect.andThen(webhooks.endpoints.caughtUp()),
    Effect.ensuring(
      Effect.sync(() => {
        lane.pausedUntil = 0
      })
    )
  )
})

/** Puts a failed delivery off, or with the dead letters. */
const record = Effect.fnUntraced(function* (
  outbox: Outbox,
  lane: Lane.Lane,
  before: Delivery.Delivery,
  failed: Delivery.Delivery,
  now: number,
  answer: Answer | undefined
) {
  lane.failingSince ??= now
  const rest = answer?.status === 410 ? Number.POSITIVE_INFINITY : Policy.rest(answer?.status ?? 0, answer?.retryAfter)
  lane.pausedUntil = Math.max(lane.pausedUntil, now + rest)
  // A webhook that is gone is disabled: what waits for it goes on waiting
  const pause = answer?.status === 410 ? 0 : yield* Policy.pauseAfter(outbox.policy, failed.attempts, answer?.retryAfter)
  if (pause !== undefined) {
    yield* outbox.save([Lane.keep(lane), ...Delivery.replace(before, { ...failed, nextAt: now + pause })])
    return "failed" as const
  }
  const dropped = yield* dropOldest(outbox, lane)
  Lane.left(lane)
  lane.dead++
  const buried = Delivery.bury(failed, now + outbox.policy.keepDeadLetters)
  yield* outbox.save([Lane.keep(lane), Delivery.remove(before), ...dropped, buried])
  yield* Effect.logError("A webhook was given up", { webhook: lane.webhook, notice: failed.notice.id, attempts: failed.attempts })
  return "dead" as const
})

/** The removal of a tenth of the dead letters, where a lane has too many of them. */
const dropOldest = Effect.fnUntraced(function* (outbox: Outbox, lane: Lane.Lane) {
  const { deadLetterLimit } = outbox.policy
  if (lane.dead < deadLetterLimit) return []
  // Some may have expired, or been sent again by another process
  const rows = yield* Delivery.first(Delivery.DEAD, lane.webhook, deadLetterLimit)
  const over = rows.length < deadLetterLimit ? 0 : Math.ceil(deadLetterLimit / 10)
  lane.dead = rows.length - over
  if (over > 0) yield* Effect.logError("Dead letters of a webhook were dropped", { webhook: lane.webhook, dropped: over })
  return rows.slice(0, over).map(({ key }): StateStore.Change => ({ _tag: "remove", space: Delivery.DEAD, key }))
})

const PAGE = 500

/**
 * Removes what is kept of a webhook that was removed. It takes turns with what makes deliveries: one that was made before the removal was
 * known is written by then, and none is made afterwards.
 */
const clear = (outbox: Outbox, lane: Lane.Lane) =>
  outbox.turn.withPermit(
    Effect.gen(function* () {
      // What is being sent is recorded when it ends, and must not be recorded after its removal
      lane.nextLook = Number.POSITIVE_INFINITY
      if (lane.sending.size > 0) return
      for (const space of [Delivery.WAITING, Delivery.DEAD] as const) {
        const rows = yield* Delivery.first(space, lane.webhook, PAGE)
        const [first, ...rest] = rows.map(({ key }): StateStore.Change => ({ _tag: "remove", space, key }))
        if (first === undefined) continue
        yield* outbox.save([first, ...rest])
        // There may be more
        outbox.woken.openUnsafe()
        return
      }
      yield* outbox.save([Lane.forget(lane.webhook)])
      outbox.lanes.delete(lane.webhook)
    })
  )
