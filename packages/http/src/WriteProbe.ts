/**
 * Whether a store takes writes. A store on a full or read-only disk still answers reads, so `/ready` writes something small to it.
 * Nothing is written to the log: the event store saves a snapshot that nobody reads, the state store overwrites one entry.
 */
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import { Clock, Duration, Effect, Semaphore } from "effect"

/** `true` while writes succeed. A result is cached for a while, and concurrent calls share a write. */
export type WriteProbe = Effect.Effect<boolean>

/** How long a success and a failure hold. A failure is short, so that a host is ready soon after there is space again. */
const SUCCESS_HOLDS = Duration.toMillis("5 seconds")
const FAILURE_HOLDS = Duration.toMillis("1 second")

/** About as much as a call appends, so that a disk with less room than that counts as full: characters. */
const SIZE = 4_096

/** Another text each time: SQLite does not write a page whose content stays the same. */
const content = Effect.map(Clock.currentTimeMillis, (now) => String(now).padEnd(SIZE, "x"))

export const ofEvents = (store: EventStore.EventStore["Service"]) =>
  Effect.flatMap(content, (text) => store.saveSnapshot("readinessSnapshot.v1-probe", { revision: 0, data: JSON.stringify(text) }))

export const ofState = (store: StateStore.StateStore["Service"]) =>
  Effect.flatMap(content, (text) => store.write([{ _tag: "put", space: "readiness", key: "probe", value: Buffer.from(text) }]))

/** `write` succeeds or fails within bounded time; the caller sets the limit. */
export const make = (write: Effect.Effect<boolean>): Effect.Effect<WriteProbe> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const permit = yield* Semaphore.make(1)
    let known = { works: true, until: 0 }
    return permit.withPermit(
      Effect.suspend(() => {
        if (clock.currentTimeMillisUnsafe() < known.until) return Effect.succeed(known.works)
        return Effect.map(write, (works) => {
          known = { works, until: clock.currentTimeMillisUnsafe() + (works ? SUCCESS_HOLDS : FAILURE_HOLDS) }
          return works
        })
      })
    )
  })
