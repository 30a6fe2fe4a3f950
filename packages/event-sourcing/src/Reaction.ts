/**
 * A reaction: an effect for each event, such as settling a job's hold when the job ends. It reads the log in order from its checkpoint, one
 * event at a time, at one host at a time. It never skips an event: a failure is retried until it succeeds.
 */
import { Effect, Schema, type Scope, type Types } from "effect"
import type { Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import * as EventHandlers from "./EventHandlers.ts"
import {
  type Batch,
  start as beginning,
  EventStore,
  endOf,
  type Position,
  position as positionOf,
  type RecordedEvent
} from "./EventStore.ts"
import { backOff, follow, type Report, type Retrying, reasonOf, retryForever, type Selection, selects } from "./Following.ts"
import * as Lease from "./Lease.ts"
import { StateStore } from "./StateStore.ts"

export interface Definition<E = never, R = never> extends Selection {
  /** Names its checkpoint and its lease. Never changes. */
  readonly name: string
  /**
   * Must be idempotent: an event comes again after a crash, and may come to two hosts at once when a lease expires.
   * A failure or a defect is retried for ever, at growing intervals of up to ten seconds.
   */
  readonly react: (event: RecordedEvent) => Effect.Effect<void, E, R>
  /** Where to begin without a checkpoint: at the first event, at the next one, or after a position. */
  readonly start: "beginning" | "now" | Position
}

/** Handlers of events, with what they select. */
export type Handling<E = never, R = never> = Required<Selection> & Pick<Definition<E, R>, "react">

/** Typed handlers of a decider's events. Spread the result into a {@link Definition}. */
export const of = <Event extends Tagged, E = never, R = never>(
  decider: Pick<Decider<never, Event>, "category" | "codec">,
  handlers: EventHandlers.Handlers<Event, [], Effect.Effect<void, E, R>>
): Handling<E, R> => {
  const { categories, dispatch, types } = EventHandlers.of(decider, handlers)
  return { categories, types, react: (event) => Effect.suspend(() => dispatch(event) ?? Effect.void) }
}

/** Combines the handlers of several deciders. */
export const all = <E1 = never, R1 = never, E2 = never, R2 = never, E3 = never, R3 = never>(
  ...reactions: readonly [Handling<E1, R1>, Handling<E2, R2>, Handling<E3, R3>?]
): Handling<E1 | E2 | E3, R1 | R2 | R3> => {
  const given = reactions.filter((reaction) => reaction !== undefined)
  return {
    categories: given.flatMap(({ categories }) => categories),
    types: given.flatMap(({ types }) => types),
    react: (event) =>
      Effect.forEach(given, ({ react }) => react(event) as Effect.Effect<void, E1 | E2 | E3, R1 | R2 | R3>, { discard: true })
  }
}

export interface Options extends Lease.Options {
  /** The checkpoint is written after this many events: 1 by default. After a crash, as many may come again. */
  readonly checkpointEvery?: number
}

/** The event that is being retried. */
export interface Failing extends Retrying {
  readonly position: Position
  readonly stream: string
  readonly revision: number
  readonly type: string
}

export interface Status {
  /** The position of the last handled event that this process knows; undefined if it never held the lease. */
  readonly position: Position | undefined
  /** Whether this process holds the lease and reacts. */
  readonly leader: boolean
  readonly failing: Failing | undefined
  /** The last failure of a store, which is retried. */
  readonly trouble: Retrying | undefined
}

export interface Reaction {
  readonly status: Effect.Effect<Status>
}

const SPACE = "reactions"

/** The checkpoint is also written after this many unselected events, so that a restart does not read all of them again. */
const SKIPPED = 1_000

const Checkpoint = Schema.fromJsonString(Schema.Struct({ position: Schema.String }))
const encodeCheckpoint = Schema.encodeSync(Checkpoint)
const decodeCheckpoint = Schema.decodeUnknownEffect(Checkpoint)

/** Reacts in the background until the scope closes. */
export const make = <E, R>(
  definition: Definition<E, R>,
  { checkpointEvery = 1, ...leaseOptions }: Options = {}
): Effect.Effect<Reaction, never, EventStore | StateStore | Scope.Scope | R> =>
  Effect.gen(function* () {
    const reactor = new Reactor(definition, checkpointEvery)
    yield* Effect.forkScoped(Lease.keep(`reaction/${definition.name}`, leaseOptions)((lease) => reactor.lead(lease)))
    return { status: Effect.sync(() => ({ ...reactor.status })) }
  })

class Reactor<E, R> {
  readonly status: Types.Mutable<Status> = { position: undefined, leader: false, failing: undefined, trouble: undefined }
  readonly #definition: Definition<E, R>
  readonly #checkpointEvery: number

  constructor(definition: Definition<E, R>, checkpointEvery: number) {
    this.#definition = definition
    this.#checkpointEvery = checkpointEvery
  }

  readonly #report: Report = (trouble) => {
    this.status.trouble = trouble
  }

  /** Reacts while the lease is held. */
  lead(lease: Lease.Held): Effect.Effect<never, Lease.LeaseLost, R | EventStore | StateStore> {
    return Effect.gen({ self: this }, function* () {
      const concerns = selects(this.#definition)
      let at = yield* retryForever(this.#loadCheckpoint, this.#report)
      let done = 0
      let skipped = 0
      this.status.position = at
      this.status.leader = true
      const write = Effect.suspend(() => this.#writeCheckpoint(lease, at))
      const reach = (position: Position): Effect.Effect<void, Lease.LeaseLost> => {
        at = position
        this.status.position = at
        if (done < this.#checkpointEvery && skipped < SKIPPED) return Effect.void
        done = 0
        skipped = 0
        return this.#save(write)
      }
      /** Moves past events that it does not select. A checkpoint is written only after a batch. */
      const skip = (after: Position, position: Position): boolean => {
        if (after !== at || skipped + 1 >= SKIPPED) return false
        at = position
        this.status.position = at
        skipped++
        return true
      }
      const take = (batch: Batch) =>
        Effect.gen({ self: this }, function* () {
          for (const event of batch.events) {
            if (concerns(event)) {
              yield* this.#react(event)
              done++
            } else skipped++
            yield* reach(event.position)
          }
          const end = endOf(batch)
          if (end === undefined || end <= at) return
          // The events that were left out count as one: the store reads past them quickly after a restart
          skipped++
          yield* reach(end)
        })
      // The first checkpoint is stored at once, because after a restart "now" would be a later position
      yield* this.#save(write)
      const saveOnLeaving = Effect.suspend(() => (done + skipped === 0 ? Effect.void : write)).pipe(
        Effect.timeoutOption("5 seconds"),
        Effect.exit
      )
      return yield* Effect.ensuring(
        follow(() => at, take, this.#report, { ...this.#definition, skip }),
        saveOnLeaving
      )
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          this.status.leader = false
          this.status.failing = undefined
        })
      )
    )
  }

  get #loadCheckpoint() {
    return Effect.gen({ self: this }, function* () {
      const { name, start } = this.#definition
      const { head } = yield* EventStore
      const entry = yield* (yield* StateStore).get(SPACE, name)
      if (entry === undefined) return start === "beginning" ? beginning : start === "now" ? yield* head : start
      const { position } = yield* decodeCheckpoint(Buffer.from(entry.value).toString())
      // Past the end: the log was restored from a backup, and its new events may not have been reacted to
      return position <= (yield* head) ? positionOf(position) : beginning
    })
  }

  /** Writes the checkpoint in one write with a renewal of the lease, so that a former holder cannot move the checkpoint back. */
  #writeCheckpoint(lease: Lease.Held, position: Position) {
    const value = Buffer.from(encodeCheckpoint({ position }))
    return lease.write([{ _tag: "put", space: SPACE, key: this.#definition.name, value }])
  }

  /** Retries until the checkpoint is written or the lease is lost. */
  #save<A, Failure>(write: Effect.Effect<A, Failure | Lease.LeaseLost>): Effect.Effect<void, Lease.LeaseLost> {
    const written = write.pipe(
      Effect.as(Effect.void),
      Effect.catchIf(
        (error) => error instanceof Lease.LeaseLost,
        (lost) => Effect.succeed(Effect.fail(lost))
      )
    )
    return Effect.flatten(retryForever(written, this.#report))
  }

  /** Retries until the effect succeeds or is interrupted. */
  #react(event: RecordedEvent, attempts = 1): Effect.Effect<void, never, R> {
    return Effect.matchCauseEffect(
      Effect.suspend(() => this.#definition.react(event)),
      {
        onSuccess: () => {
          this.status.failing = undefined
          return Effect.void
        },
        onFailure: (cause) => {
          const { position, stream, revision, type } = event
          this.status.failing = { position, stream, revision, type, reason: reasonOf(cause), attempts }
          return Effect.flatMap(backOff(attempts), () => this.#react(event, attempts + 1))
        }
      }
    )
  }
}
