/**
 * A reaction: does something about each event, such as carrying a job's end to the ledger. It reads the log in order from its
 * checkpoint, one event at a time, at one host at a time, and never steps over an event: what fails is tried until it is done.
 */
import { Effect, Schema, type Scope } from "effect"
import type { Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import * as EventHandlers from "./EventHandlers.ts"
import { type Batch, start as beginning, EventStore, type Position, position as positionOf, type RecordedEvent } from "./EventStore.ts"
import { backOff, follow, insist, reasonOf, type Selection, selects, type Trouble } from "./Following.ts"
import * as Lease from "./Lease.ts"
import { StateStore } from "./StateStore.ts"

export interface Definition<E = never, R = never> extends Selection {
  /** Names its checkpoint and its lease. Never changes. */
  readonly name: string
  /**
   * Must be idempotent: an event comes again after a crash, and may come to two hosts at once when a lease runs out.
   * A failure or a defect is tried again, for ever, later and later, up to ten seconds apart.
   */
  readonly react: (event: RecordedEvent) => Effect.Effect<void, E, R>
  /** Where it begins when it has no checkpoint yet: with the first event, with the next one, or after a position. */
  readonly start: "beginning" | "now" | Position
}

/** Typed handlers of a decider's events. Spread the result into a {@link Definition}. */
export const of = <Event extends Tagged, E = never, R = never>(
  decider: Pick<Decider<never, Event>, "category" | "codec">,
  handlers: EventHandlers.Handlers<Event, [], Effect.Effect<void, E, R>>
): Required<Selection> & Pick<Definition<E, R>, "react"> => {
  const { categories, dispatch, types } = EventHandlers.of(decider, handlers)
  return { categories, types, react: (event) => Effect.suspend(() => dispatch(event) ?? Effect.void) }
}

export interface Options extends Lease.Options {
  /** The checkpoint is written after so many events were done, 1 by default: as many may come again after a crash. */
  readonly checkpointEvery?: number
}

/** The event it cannot get past for now. */
export interface Failing extends Trouble {
  readonly position: Position
  readonly stream: string
  readonly revision: number
  readonly type: string
}

export interface Status {
  /** Up to where all is done, as far as this process knows; nothing while it never led. */
  readonly position: Position | undefined
  /** Whether this process is the one that reacts. */
  readonly leader: boolean
  readonly failing: Failing | undefined
  /** A store that cannot be reached. It is tried again. */
  readonly trouble: Trouble | undefined
}

export interface Reaction {
  readonly status: Effect.Effect<Status>
}

const SPACE = "reactions"

/** Events of no concern after which the checkpoint is written all the same, so that they are not read again for ever. */
const SKIPPED = 1_000

const Checkpoint = Schema.fromJsonString(Schema.Struct({ position: Schema.String }))
const encodeCheckpoint = Schema.encodeSync(Checkpoint)
const decodeCheckpoint = Schema.decodeUnknownEffect(Checkpoint)

/** Begins to react, in the background, for as long as the scope is open. */
export const make = <E, R>(
  definition: Definition<E, R>,
  { checkpointEvery = 1, ...leaseOptions }: Options = {}
): Effect.Effect<Reaction, never, EventStore | StateStore | Scope.Scope | R> =>
  Effect.gen(function* () {
    const { name, react, start } = definition
    const events = yield* EventStore
    const states = yield* StateStore
    const concerns = selects(definition)

    let position: Position | undefined
    let leader = false
    let failing: Failing | undefined
    let trouble: Trouble | undefined
    const told = (now: Trouble | undefined) => {
      trouble = now
    }

    const checkpoint = Effect.gen(function* () {
      const entry = yield* states.get(SPACE, name)
      if (entry === undefined) return start === "beginning" ? beginning : start === "now" ? yield* events.head : start
      const { position } = yield* decodeCheckpoint(Buffer.from(entry.value).toString())
      // Past the end: the log was restored from a backup. What it holds now may not have been reacted to
      return position <= (yield* events.head) ? positionOf(position) : beginning
    })

    /** Only success or an interruption ends it. */
    const done = (event: RecordedEvent) =>
      Effect.gen(function* () {
        for (let attempts = 1; ; attempts++) {
          const cause = yield* Effect.as(react(event), undefined).pipe(Effect.catchCause((cause) => Effect.succeed(cause)))
          if (cause === undefined) break
          const { position, stream, revision, type } = event
          failing = { position, stream, revision, type, reason: reasonOf(cause), attempts }
          yield* backOff(attempts)
        }
        failing = undefined
      })

    const lead = (lease: Lease.Held) =>
      Effect.gen(function* () {
        let at = yield* insist(checkpoint, told)
        let finished = 0
        let skipped = 0
        position = at
        leader = true

        // In one with a renewal of the lease, so that a deposed holder cannot move it back
        const write = Effect.suspend(() =>
          lease.write([{ _tag: "put", space: SPACE, key: name, value: Buffer.from(encodeCheckpoint({ position: at })) }])
        )
        const save = Effect.flatten(
          insist(
            write.pipe(
              Effect.as(Effect.void),
              Effect.catchTag("LeaseLost", (lost) => Effect.succeed(Effect.fail(lost)))
            ),
            told
          )
        )
        const take = (batch: Batch) =>
          Effect.gen(function* () {
            for (const event of batch.events) {
              if (concerns(event)) {
                yield* done(event)
                finished++
              } else skipped++
              at = event.position
              position = at
              if (finished < checkpointEvery && skipped < SKIPPED) continue
              yield* save
              finished = 0
              skipped = 0
            }
          })
        // Also the very first, or "now" would be a later one after a restart
        yield* save
        const saveOnLeaving = Effect.suspend(() => (finished + skipped === 0 ? Effect.void : write)).pipe(
          Effect.timeoutOption("5 seconds"),
          Effect.exit
        )
        return yield* Effect.ensuring(
          follow(() => at, take, told),
          saveOnLeaving
        )
      }).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            leader = false
            failing = undefined
          })
        )
      )

    yield* Effect.forkScoped(Lease.keep(`reaction/${name}`, leaseOptions)(lead))

    return { status: Effect.sync(() => ({ position, leader, failing, trouble })) }
  })
