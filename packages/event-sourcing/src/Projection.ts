/**
 * A projection: a fold over the whole log, for questions that no single stream answers. Its state is kept in memory and follows
 * the log; now and then it is stored with its position, so that a start does not read everything again. What is stored is derived:
 * it is thrown away whenever it does not fit.
 */
import { type Duration, Effect, Option, Schema, type Scope, Semaphore, Stream } from "effect"
import type { Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import * as EventHandlers from "./EventHandlers.ts"
import { type Batch, EventStore, type Position, type RecordedEvent, type StoreUnavailable, start } from "./EventStore.ts"
import { follow, insist, type Selection, selects, type Trouble } from "./Following.ts"
import type { StateStore, StateUnavailable } from "./StateStore.ts"
import { load, save } from "./StoredProjection.ts"

export interface Definition<State> extends Selection {
  /** Names it in the state store. Never changes. */
  readonly name: string
  /** Counts up whenever `evolve`, the selection or the schema change: what an older one stored is then folded anew. */
  readonly version: number
  /** How the state is stored, as JSON. */
  readonly state: Schema.Codec<State, unknown>
  /** A state of its own for each fold, so `evolve` may change what it is given in place. */
  readonly initial: () => State
  /** Must not throw: if it does, the projection stops at that event. */
  readonly evolve: (state: State, event: RecordedEvent) => State
}

/**
 * Typed handlers of a decider's events: each folds its event into the state. Spread the result into a {@link Definition}; events
 * without a handler leave the state as it is.
 */
export const of = <State, Event extends Tagged>(
  decider: Pick<Decider<never, Event>, "category" | "codec">,
  handlers: EventHandlers.Handlers<Event, [state: State], State>
): Required<Selection> & Pick<Definition<State>, "evolve"> => {
  const { categories, dispatch, types } = EventHandlers.of(decider, handlers)
  return { categories, types, evolve: (state, event) => dispatch(event, state) ?? state }
}

export interface Options {
  /** The state is stored after that many events, 10,000 by default, but while it catches up only by `storeWithin`. */
  readonly storeEvery?: number
  /** The state is stored when it has not been for so long and the log moved: one minute by default. */
  readonly storeWithin?: Duration.Input
}

/** A state that `evolve` changes in place is only lent: look at it before the next `yield*`, and do not keep it. */
export interface Folded<State> {
  readonly state: State
  readonly position: Position
}

/** The projection did not reach the position asked for in time. */
export class ProjectionBehind extends Schema.TaggedError<ProjectionBehind>()("ProjectionBehind", {
  projection: Schema.String,
  position: Schema.String,
  asked: Schema.String
}) {}

/** The fold threw at this event. A release with a fold that can take it, and a new `version`, sets it right. */
export class ProjectionStopped extends Schema.TaggedError<ProjectionStopped>()("ProjectionStopped", {
  projection: Schema.String,
  position: Schema.String,
  stream: Schema.String,
  revision: Schema.Int,
  reason: Schema.String
}) {}

export interface Status {
  readonly position: Position
  /** Whether everything was seen that was written up to a moment ago. */
  readonly caughtUp: boolean
  readonly rebuilding: boolean
  /** The event store cannot be read, or the stored state cannot be loaded. It is tried again. */
  readonly behind: Trouble | undefined
  /** The state could not be stored: a start would take longer. It is tried again. */
  readonly unstored: Trouble | undefined
  readonly stopped: ProjectionStopped | undefined
}

export interface ReadOptions {
  /** What the state must contain at the least, such as the position of one's own write. */
  readonly atLeast?: Position
  /** How long to wait for that: 5 seconds by default. */
  readonly within?: Duration.Input
}

export interface Projection<State> {
  /** The state as it is now, or as soon as it contains the position asked for. */
  readonly read: (options?: ReadOptions) => Effect.Effect<Folded<State>, ProjectionBehind | ProjectionStopped>
  /** The state as soon as it contains all that was written before this was asked. */
  readonly caughtUp: (
    options?: Pick<ReadOptions, "within">
  ) => Effect.Effect<Folded<State>, ProjectionBehind | ProjectionStopped | StoreUnavailable>
  /** Waits, however long, until something after `position` was folded. */
  readonly past: (position: Position) => Effect.Effect<void, ProjectionStopped>
  /**
   * Folds the log anew beside the live state, which goes on answering, and swaps the two once they are at one position. It sets a
   * stopped projection going again, too. When it fails, all is as before.
   */
  readonly rebuild: Effect.Effect<void, ProjectionStopped | StoreUnavailable>
  /** Stores the state now, unless a newer one is stored already. */
  readonly store: Effect.Effect<void, StateUnavailable>
  readonly status: Effect.Effect<Status>
}

/** Begins to follow the log, in the background, for as long as the scope is open; when it closes, the state is stored. */
export const make = <State>(
  definition: Definition<State>,
  { storeEvery = 10_000, storeWithin = "1 minute" }: Options = {}
): Effect.Effect<Projection<State>, never, EventStore | StateStore | Scope.Scope> =>
  Effect.gen(function* () {
    const { name, version, initial, evolve } = definition
    const events = yield* EventStore
    const services = yield* Effect.context<EventStore | StateStore>()
    const concerns = selects(definition)
    const codec = Schema.toCodecJson(definition.state)
    const encode = Schema.encodeSync(codec)
    const decode = Schema.decodeUnknownOption(Schema.fromJsonString(codec))
    const storing = yield* Semaphore.make(1)
    const rebuilds = yield* Semaphore.make(1)

    let live: Folded<State> = { state: initial(), position: start }
    let loaded = false
    let caughtUp = false
    let rebuilding = false
    let stopped: ProjectionStopped | undefined
    let behind: Trouble | undefined
    let unstored: Trouble | undefined
    /** Events folded since the state was stored. */
    let ahead = 0
    let storedAt: Position | undefined

    const waiting = new Set<() => void>()
    const wake = () => {
      for (const check of [...waiting]) check()
    }
    const until = (condition: () => boolean): Effect.Effect<void> =>
      Effect.callback((resume) => {
        if (condition()) return resume(Effect.void)
        const check = () => {
          if (condition() && waiting.delete(check)) resume(Effect.void)
        }
        waiting.add(check)
        return Effect.sync(() => waiting.delete(check))
      })

    const fold = (folded: Folded<State>, batch: Batch): Folded<State> | ProjectionStopped => {
      let { state, position } = folded
      for (const event of batch.events) {
        // A rebuilt state may be ahead of the subscription that it took over
        if (event.position <= position) continue
        try {
          if (concerns(event)) state = evolve(state, event)
        } catch (cause) {
          const { stream, revision } = event
          return new ProjectionStopped({ projection: name, position: event.position, stream, revision, reason: String(cause) })
        }
        position = event.position
      }
      return { state, position }
    }

    const restore = Effect.gen(function* () {
      const stored = yield* load(name, version)
      const state = stored && Option.getOrUndefined(decode(stored.json))
      // Past the end: of another log, or of this one before it was restored from a backup
      if (stored !== undefined && state !== undefined && stored.position <= (yield* events.head))
        live = { state, position: stored.position }
      storedAt = live.position
      loaded = true
      wake()
    })

    const store = Effect.suspend(() => {
      const { state, position } = live
      const folded = ahead
      if (!loaded || stopped !== undefined) return Effect.void
      if (position === storedAt) {
        ahead = 0
        return Effect.void
      }
      return Effect.map(save(name, version, { position, json: JSON.stringify(encode(state)) }), () => {
        storedAt = position
        ahead -= folded
      })
    }).pipe(storing.withPermit, Effect.provideContext(services))

    const storeNowAndThen = Effect.gen(function* () {
      for (;;) {
        yield* until(() => ahead > 0 && stopped === undefined)
        // While it catches up, storing each few events would cost more than it saves
        yield* Effect.raceFirst(
          Effect.sleep(storeWithin),
          until(() => caughtUp && ahead >= storeEvery)
        )
        yield* insist(store, (trouble) => {
          unstored = trouble
        })
      }
    })

    const told = (trouble: Trouble | undefined) => {
      behind = trouble
      if (trouble !== undefined) caughtUp = false
    }

    const take = (batch: Batch) =>
      Effect.suspend(() => {
        const folded = fold(live, batch)
        if (folded instanceof ProjectionStopped) {
          // Here and not later: from now on the state may be half-way through an event
          stopped = folded
          caughtUp = false
          wake()
          return Effect.fail(folded)
        }
        live = folded
        caughtUp = batch.live
        ahead += batch.events.length
        wake()
        return Effect.void
      })

    const run = Effect.gen(function* () {
      yield* insist(restore, told)
      for (;;) {
        // Stopped, until a rebuild sets it going again
        yield* Effect.flip(follow(() => live.position, take, told))
        yield* until(() => stopped === undefined)
      }
    })

    const rebuild = Effect.gen(function* () {
      yield* until(() => loaded)
      let fresh: Folded<State> = { state: initial(), position: start }
      rebuilding = true
      yield* Stream.runForEachWhile(events.subscribe(start), (batch) =>
        Effect.suspend(() => {
          const folded = fold(fresh, batch)
          if (folded instanceof ProjectionStopped) return Effect.fail(folded)
          fresh = folded
          if (!batch.live || fresh.position < live.position) return Effect.succeed(true)
          live = fresh
          stopped = undefined
          storedAt = undefined
          ahead++
          wake()
          return Effect.succeed(false)
        })
      )
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          rebuilding = false
        })
      ),
      rebuilds.withPermit
    )

    const answer = Effect.suspend(() => (stopped === undefined ? Effect.succeed(live) : Effect.fail(stopped)))

    const read: Projection<State>["read"] = ({ atLeast = start, within = "5 seconds" } = {}) =>
      Effect.suspend(() => {
        const ready = () => stopped !== undefined || (loaded && live.position >= atLeast)
        if (ready()) return answer
        const late = Effect.suspend(() => Effect.fail(new ProjectionBehind({ projection: name, position: live.position, asked: atLeast })))
        return until(ready).pipe(Effect.timeoutOrElse({ duration: within, orElse: () => late }), Effect.andThen(answer))
      })

    // First, so that it runs last. A state that cannot be stored now is folded again at the next start
    yield* Effect.addFinalizer(() => store.pipe(Effect.timeoutOption("5 seconds"), Effect.exit))
    yield* Effect.forkScoped(run)
    yield* Effect.forkScoped(storeNowAndThen)

    return {
      read,
      caughtUp: (options) => Effect.flatMap(events.head, (head) => read({ ...options, atLeast: head })),
      past: (position) =>
        Effect.asVoid(
          Effect.andThen(
            until(() => stopped !== undefined || live.position > position),
            answer
          )
        ),
      rebuild,
      store,
      status: Effect.sync(() => ({ position: live.position, caughtUp, rebuilding, behind, unstored, stopped }))
    }
  })
