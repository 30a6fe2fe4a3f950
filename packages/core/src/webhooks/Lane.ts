/**
 * A lane: the deliveries of one webhook, as the host that delivers them knows them. Lanes do not wait for each other. What a restart must
 * know of a lane is in the space `webhookLanes`.
 */
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Option, Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import * as Delivery from "./Delivery.ts"

export interface Lane {
  readonly webhook: string
  /** Deliveries in the state store; at most so many, because those of other processes are not counted at once. */
  waiting: number
  dead: number
  /**
   * What happened after this position waits in the log, because the webhook is disabled or has too many deliveries that wait. Undefined
   * while all that was fed is in the state store.
   */
  behind: EventStore.Position | undefined
  /** When the first attempt since the last success failed: milliseconds since 1970. */
  failingSince: Timestamp | undefined
  lastAttemptAt: Timestamp
  /** Nothing is sent before: the receiver asked for it. */
  pausedUntil: Timestamp
  /** When the lane may have something to send. */
  nextLook: Timestamp
  /** The keys of the deliveries that are being sent. */
  readonly sending: Set<string>
}

export const make = (webhook: string): Lane => ({
  webhook,
  waiting: 0,
  dead: 0,
  behind: undefined,
  failingSince: undefined,
  lastAttemptAt: 0,
  pausedUntil: 0,
  nextLook: 0,
  sending: new Set()
})

/** A delivery waits no more. Those that another process put there were not counted. */
export const left = (lane: Lane): void => {
  lane.waiting = Math.max(0, lane.waiting - 1)
}

const SPACE = "webhookLanes"
const Kept = Schema.Struct({ behind: Schema.NullOr(Schema.String), failingSince: Schema.NullOr(Schema.Int) })
const Row = Schema.fromJsonString(Kept)
const encode = Schema.encodeSync(Row)
const decode = Schema.decodeUnknownOption(Row)

const NOTHING_KEPT: typeof Kept.Type = { behind: null, failingSince: null }

/** Writes what a restart must know. */
export const keep = ({ behind, failingSince, webhook }: Lane): StateStore.Change => ({
  _tag: "put",
  space: SPACE,
  key: webhook,
  value: Buffer.from(encode({ behind: behind ?? null, failingSince: failingSince ?? null }))
})

export const forget = (webhook: string): StateStore.Change => ({ _tag: "remove", space: SPACE, key: webhook })

const keptOf = (entry: StateStore.Entry | undefined): typeof Kept.Type =>
  entry === undefined ? NOTHING_KEPT : Option.getOrElse(decode(Buffer.from(entry.value).toString()), () => NOTHING_KEPT)

/** What is kept of a webhook's lane. */
export const kept = (webhook: string) =>
  Effect.map(
    StateStore.StateStore.use((states) => states.get(SPACE, webhook)),
    keptOf
  )

const PAGE = 1_000

/** Visits all entries of a space, in pages. */
const visit = Effect.fnUntraced(function* (space: string, take: (entry: StateStore.Entry) => void) {
  const states = yield* StateStore.StateStore
  let after: string | undefined
  do {
    const page: ReadonlyArray<StateStore.Entry> = yield* states.list(space, { limit: PAGE, ...(after === undefined ? {} : { after }) })
    for (const entry of page) take(entry)
    after = page.length < PAGE ? undefined : page.at(-1)?.key
  } while (after !== undefined)
})

/** Reads all lanes from the state store. */
export const load = Effect.gen(function* () {
  const lanes = new Map<string, Lane>()
  const laneOf = (webhook: string): Lane => {
    const lane = lanes.get(webhook) ?? make(webhook)
    lanes.set(webhook, lane)
    return lane
  }
  yield* visit(Delivery.WAITING, ({ key }) => void laneOf(Delivery.webhookOf(key)).waiting++)
  yield* visit(Delivery.DEAD, ({ key }) => void laneOf(Delivery.webhookOf(key)).dead++)
  yield* visit(SPACE, (entry) => {
    const { behind, failingSince } = keptOf(entry)
    const lane = laneOf(entry.key)
    lane.behind = behind === null ? undefined : EventStore.position(behind)
    lane.failingSince = failingSince ?? undefined
  })
  return lanes
})
