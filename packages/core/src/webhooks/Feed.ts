/**
 * The feed: makes deliveries of the notices in the log. The deliveries of an event and the checkpoint after it are one write, so none is
 * lost or made twice. A webhook that is disabled, or has too many deliveries that wait, falls behind: it catches up from the log later.
 */
import { EventStore, Following, type Lease, type Projection, StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, HashMap, Stream } from "effect"
import * as Notices from "../notices/Notices.ts"
import * as Delivery from "./Delivery.ts"
import * as Endpoints from "./Endpoints.ts"
import * as Lane from "./Lane.ts"
import type { Outbox } from "./Outbox.ts"
import { Webhook } from "./Webhook.ts"

const SPACE = "webhookFeed"
const KEY = "position"

/** Changes in one write, and events after which the checkpoint is written though nothing was made of them. */
const CHANGES = 500
const SKIPPED = 1_000

const checkpoint = (position: EventStore.Position): StateStore.Change => ({
  _tag: "put",
  space: SPACE,
  key: KEY,
  value: Buffer.from(position)
})

/**
 * Where to read on. Without a checkpoint, or where the log is shorter than it was because it was restored, that is where the first webhook
 * was added: receivers know a repetition by its id.
 */
export const start = (webhooks: Projection.Projection<Endpoints.Endpoints>) =>
  Effect.gen(function* () {
    // Before the webhooks are read: what happens to one that is added meanwhile comes after it
    const head = yield* EventStore.EventStore.use((events) => events.head)
    const { state: endpoints } = yield* webhooks.caughtUp()
    const entry = yield* StateStore.StateStore.use((states) => states.get(SPACE, KEY))
    const position = entry && EventStore.position(Buffer.from(entry.value).toString())
    return position === undefined || position > head ? (Endpoints.earliest(endpoints) ?? head) : position
  })

/** The wanted notices of an event. A store that is away, and an event of a newer release, are waited for. */
const noticesOf = (event: EventStore.RecordedEvent, wanted: (name: string) => boolean, report: Following.Report) =>
  Notices.mayTell(event)
    ? Following.retryForever(
        Effect.suspend(() => Notices.of(event, wanted)),
        report
      )
    : Effect.succeed([])

/** Reads the log for all webhooks until the lease is lost. */
export const run = (outbox: Outbox): Effect.Effect<never, Lease.LeaseLost, EventStore.EventStore | Notices.Sources> =>
  Effect.gen(function* () {
    let skipped = 0
    const take = Effect.fnUntraced(function* ({ events }: EventStore.Batch) {
      const last = events.at(-1)
      if (last === undefined) return
      const endpoints = yield* outbox.endpointsAt(last.position)
      const wanted = Endpoints.wanting(endpoints)
      const now = yield* Clock.currentTimeMillis
      let changes: Array<StateStore.Change> = []
      const save = Effect.suspend(() => {
        const written = outbox.save([checkpoint(outbox.fed), ...changes])
        changes = []
        skipped = 0
        return Effect.map(written, () => outbox.woken.openUnsafe())
      })
      for (const event of events) {
        for (const notice of yield* noticesOf(event, wanted, outbox.report)) changes.push(...offer(outbox, endpoints, notice, now))
        outbox.fed = event.position
        skipped++
        if (event.stream.startsWith(`${Webhook.category}-`)) outbox.woken.openUnsafe()
        if (changes.length >= CHANGES || skipped >= SKIPPED) yield* save
      }
      if (changes.length > 0) yield* save
    })
    yield* outbox.save([checkpoint(outbox.fed)])
    return yield* Following.follow(
      () => outbox.fed,
      (batch) => outbox.turn.withPermit(take(batch)),
      outbox.report
    )
  })

/** The changes that a notice brings to the state store. */
const offer = (outbox: Outbox, endpoints: Endpoints.Endpoints, notice: Notices.Notice, now: number): ReadonlyArray<StateStore.Change> =>
  [...HashMap.entries(endpoints)].flatMap(([id, endpoint]) => {
    if (!Endpoints.selects(endpoint, notice)) return []
    const lane = outbox.laneOf(id)
    if (lane.behind !== undefined) return []
    if (endpoint.status === "disabled" || lane.waiting >= outbox.policy.waitingLimit) {
      // The position before this event
      lane.behind = outbox.fed
      return [Lane.keep(lane)]
    }
    lane.waiting++
    lane.nextLook = 0
    return [Delivery.put(Delivery.make(id, notice, now))]
  })

/** Events that a lane which catches up reads at a time. */
const PAGE = 1_000

/** Makes deliveries of what a lane missed, as far as there is room and at most for a page of the log. */
export const catchUp = (outbox: Outbox, lane: Lane.Lane): Effect.Effect<void, Lease.LeaseLost, EventStore.EventStore | Notices.Sources> =>
  outbox.turn.withPermit(
    Effect.gen(function* () {
      const behind = lane.behind
      if (behind === undefined) return
      const endpoint = Endpoints.find(yield* outbox.endpointsAt(outbox.fed), lane.webhook)
      if (endpoint?.status !== "enabled") return
      const events = yield* EventStore.EventStore
      const page = yield* Following.retryForever(
        Stream.runCollect(
          Stream.take(
            Stream.takeWhile(events.readAll(behind), ({ position }) => position <= outbox.fed),
            PAGE
          )
        ),
        outbox.report
      )
      const wants = Endpoints.wanting(HashMap.make([lane.webhook, endpoint]))
      const now = yield* Clock.currentTimeMillis
      const changes: Array<StateStore.Change> = []
      let at = behind
      let isFull = false
      for (const event of page) {
        const wanted = (yield* noticesOf(event, wants, outbox.report)).filter((notice) => Endpoints.selects(endpoint, notice))
        isFull = wanted.length > 0 && lane.waiting >= outbox.policy.waitingLimit
        if (isFull) break
        for (const notice of wanted) changes.push(Delivery.put(Delivery.make(lane.webhook, notice, now)))
        lane.waiting += wanted.length
        at = event.position
      }
      lane.behind = isFull || page.length === PAGE ? at : undefined
      lane.nextLook = 0
      yield* outbox.save([Lane.keep(lane), ...changes])
    })
  )
