/**
 * The subscription of a store. All followers of the log share it, because a connection takes only 100 calls. It resumes after any failure
 * from the last position or checkpoint, and reports how far behind it is. Followers that are far from the end of the log read pages until
 * they are close.
 */
import { type EventStore, Following, Head, type Skip } from "@millrace/event-sourcing"
import { Cause, Clock, Effect, Option, Semaphore, type Types } from "effect"
import type { Clients } from "./Clients.ts"
import { Fault, type Filter, type Message, type Recorded } from "./Driver.ts"
import { decode, type KurrentLog } from "./KurrentLog.ts"
import { type LogPosition, placeOf, textOf } from "./Position.ts"
import { Recent } from "./Recent.ts"
import * as Turns from "./Turns.ts"

export interface Status {
  /** The last event that was received; undefined until the first follower. */
  readonly position: EventStore.Position | undefined
  /** Whether the node has confirmed the subscription. */
  readonly connected: boolean
  /** Bytes of log after `position` at the last comparison with the end of the log. */
  readonly behind: number
  /** When the subscription fell behind or failed, in milliseconds since 1970. */
  readonly behindSince: number | undefined
  /** The last failure, and the number of failures since the node last confirmed the subscription. */
  readonly trouble: Following.Retrying | undefined
}

export type Feed = Effect.Success<ReturnType<typeof make>>

/** The pause between attempts doubles this many times, up to about 1.5 seconds. */
const DOUBLINGS = 5

/** `look`: milliseconds between two comparisons with the end of the log. */
export const make = (clients: Clients, log: KurrentLog, filter: Filter, look: number) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const once = yield* Semaphore.make(1)
    // At the start of a host, most followers read the log from the same position
    const readAfter = Turns.shared(log.after)
    let seen: Seen | undefined
    const begin = once.withPermit(
      Effect.suspend(() => {
        if (seen !== undefined) return Effect.succeed(seen.head)
        return Effect.flatMap(log.head, (end) =>
          // Uninterruptible, or the next follower could wait for a subscription that nobody began
          Effect.uninterruptible(
            Effect.suspend(() => {
              seen = new Seen(end, log.isOurs)
              return Effect.as(Effect.forkIn(follow(clients, log, filter, look, seen), scope), seen.head)
            })
          )
        )
      })
    )
    return {
      /** Starts the subscription unless it runs already. Returns the end of the log as far as it was received. */
      begin,
      /** The next events after a position, from memory if possible, else from the server. */
      after: (position: EventStore.Position) =>
        Effect.suspend(() => {
          const events = seen?.recent.after(position) ?? []
          return events.length > 0 ? Effect.succeed(events) : readAfter(position)
        }),
      /** Skips the events in memory after a position, if none of them is selected. */
      skipBy: ({ skip, ...selection }: EventStore.Subscription): Skip | undefined => {
        if (skip === undefined) return undefined
        const matches = Following.selects(selection)
        return (after) => {
          const events = seen?.recent.after(after) ?? []
          const end = events.at(-1)?.position
          return end !== undefined && !events.some(matches) && skip(after, end) ? end : undefined
        }
      },
      status: Effect.sync(() => seen?.status ?? NOT_BEGUN)
    }
  })

const NOT_BEGUN: Status = { position: undefined, connected: false, behind: 0, behindSince: undefined, trouble: undefined }

/** What the subscription has received of the log, and its state. */
class Seen {
  readonly head: Head
  readonly recent = new Recent()
  readonly #isOurs: (event: Recorded) => boolean
  readonly #status: Types.Mutable<Omit<Status, "position">> = { connected: false, behind: 0, behindSince: undefined, trouble: undefined }
  /** Where to resume: after the last event or checkpoint. */
  at: LogPosition | undefined
  #failures = 0
  /** The subscription's position at the last comparison, if it was behind then. */
  #stood: EventStore.Position | undefined

  constructor(end: EventStore.Position, isOurs: (event: Recorded) => boolean) {
    this.head = new Head(end)
    this.at = placeOf(end)
    this.recent.begin(end)
    this.#isOurs = isOurs
  }

  get status(): Status {
    return { position: this.head.position, ...this.#status }
  }

  take(message: Message): void {
    switch (message._tag) {
      case "event":
        return this.#takeEvent(message.event)
      case "checkpoint":
        this.at = message.position
        return
      case "confirmed":
        this.#failures = 0
        this.#status.connected = true
        this.#status.trouble = undefined
    }
  }

  /** Records a failure. Returns the number of failures since the node last confirmed the subscription. */
  failed(cause: Cause.Cause<Fault>, now: number): number {
    this.#stood = undefined
    this.#status.behindSince ??= now
    const error = Cause.squash(cause)
    this.#status.connected = false
    this.#status.trouble = { reason: error instanceof Error ? error.message : String(error), attempts: ++this.#failures }
    return this.#failures
  }

  /** Compares with the end of the log. Returns true if the subscription is behind and has not moved since the last comparison. */
  standsStill(end: EventStore.Position, now: number): boolean {
    const { position } = this.head
    const isBehind = end > position
    this.#status.behind = isBehind ? bytesBetween(position, end) : 0
    this.#status.behindSince = isBehind ? (this.#status.behindSince ?? now) : undefined
    const stood = this.#stood
    this.#stood = isBehind ? position : undefined
    return isBehind && stood === position
  }

  #takeEvent(event: Recorded): void {
    if (event.position === undefined) return
    const position = textOf(event.position)
    // A subscription starts after its position. This check tolerates a server that starts one event early
    if (this.at !== undefined && position <= textOf(this.at)) return
    this.at = event.position
    if (!this.#isOurs(event)) return
    try {
      this.recent.add(decode(event))
    } catch {
      // Followers read this event from the log, and their read fails
      this.recent.begin(position)
    }
    this.head.advance(position)
  }
}

/** Subscribes again after each failure, until it is interrupted. */
const follow = (clients: Clients, log: KurrentLog, filter: Filter, look: number, seen: Seen): Effect.Effect<never> =>
  Effect.gen(function* () {
    const noSubscription = new Fault({ kind: "noAnswer", message: `No subscription within ${clients.deadline} ms` })
    const standsStill = new Fault({ kind: "noAnswer", message: "The subscription delivers nothing although the log has grown" })
    const unconfirmed = Effect.delay(
      Effect.suspend(() => (seen.status.connected ? Effect.never : Effect.fail(noSubscription))),
      clients.deadline
    )
    const compare = Effect.gen(function* () {
      for (;;) {
        yield* Effect.sleep(look)
        const end = yield* Effect.option(log.head)
        if (Option.isSome(end) && seen.standsStill(end.value, yield* Clock.currentTimeMillis)) return yield* Effect.fail(standsStill)
      }
    })
    for (;;) {
      const subscription = clients.hold((driver) =>
        Effect.raceAllFirst([driver.follow(seen.at, filter, (message) => seen.take(message)), unconfirmed, compare])
      )
      const cause = yield* Effect.flip(Effect.sandbox(subscription))
      yield* Following.backOff(Math.min(seen.failed(cause, yield* Clock.currentTimeMillis), DOUBLINGS))
    }
  })

const bytesBetween = (from: EventStore.Position, to: EventStore.Position): number =>
  Number((placeOf(to)?.commit ?? 0n) - (placeOf(from)?.commit ?? 0n))
