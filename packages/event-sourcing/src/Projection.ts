/**
 * A projection: a fold over the whole log, for queries across streams. Its state is in memory and follows the log. The state is stored
 * regularly with its position, so that the next start does not read the whole log. A stored state of another version or another log is
 * ignored.
 */
import { Effect, type Scope, Semaphore } from "effect"
import type { Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import * as EventHandlers from "./EventHandlers.ts"
import { EventStore, type Position, type StoreUnavailable } from "./EventStore.ts"
import type { Definition, Folded, ProjectionStopped } from "./Fold.ts"
import type { Selection } from "./Following.ts"
import { type Options, type ProjectionBehind, Projector, type ReadOptions, type Status } from "./Projector.ts"
import type { StateStore, StateUnavailable } from "./StateStore.ts"

export { type Definition, type Folded, ProjectionStopped } from "./Fold.ts"
export { type Options, ProjectionBehind, type ReadOptions, type Status } from "./Projector.ts"

/**
 * Typed handlers of a decider's events: each folds its event into the state. Events without a handler do not change the state. Spread the
 * result into a {@link Definition}.
 */
export const of = <State, Event extends Tagged>(
  decider: Pick<Decider<never, Event>, "category" | "codec">,
  handlers: EventHandlers.Handlers<Event, [state: State], State>
): Required<Selection> & Pick<Definition<State>, "evolve"> => {
  const { categories, dispatch, types } = EventHandlers.of(decider, handlers)
  return { categories, types, evolve: (state, event) => dispatch(event, state) ?? state }
}

export interface Projection<State> {
  /** The current state, or the state once it contains the requested position. */
  readonly read: (options?: ReadOptions) => Effect.Effect<Folded<State>, ProjectionBehind | ProjectionStopped>
  /** The current state, if `read` would answer at once. */
  readonly readNow: () => Folded<State> | undefined
  /** The state once it contains every event written before the call. */
  readonly caughtUp: (
    options?: Pick<ReadOptions, "within">
  ) => Effect.Effect<Folded<State>, ProjectionBehind | ProjectionStopped | StoreUnavailable>
  /** Follows the log while the effect runs, also if nobody reads. */
  readonly keep: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Waits without a limit until an event after `position` is folded. A sleeping projection must be kept meanwhile. */
  readonly past: (position: Position) => Effect.Effect<void, ProjectionStopped>
  /**
   * Waits without a limit until the condition holds. It looks at each change of the state or the position, so the condition should be cheap;
   * it must not throw. A sleeping projection must be kept meanwhile.
   */
  readonly until: (condition: (folded: Folded<State>) => boolean) => Effect.Effect<void, ProjectionStopped>
  /**
   * Folds the log from the start while the live state still answers, and replaces the live state once the new one has caught up. It also
   * restarts a stopped projection. If it fails, nothing changes.
   */
  readonly rebuild: Effect.Effect<void, ProjectionStopped | StoreUnavailable>
  /** Stores the state now, unless a newer one is stored. */
  readonly store: Effect.Effect<void, StateUnavailable>
  readonly status: Effect.Effect<Status>
}

/** Follows the log in the background until the scope closes. Then it stores the state. */
export const make = <State>(
  definition: Definition<State>,
  options: Options = {}
): Effect.Effect<Projection<State>, never, EventStore | StateStore | Scope.Scope> =>
  Effect.gen(function* () {
    const events = yield* EventStore
    const services = yield* Effect.context<EventStore | StateStore>()
    const storing = yield* Semaphore.make(1)
    const rebuilding = yield* Semaphore.make(1)
    const projector = new Projector(definition, options.idleAfter)
    const store = storing.withPermit(Effect.provideContext(projector.store, services))
    // Registered first, so that it runs last. If this state cannot be stored, the next start folds the events again
    yield* Effect.addFinalizer(() => store.pipe(Effect.timeoutOption("5 seconds"), Effect.exit))
    yield* Effect.forkScoped(projector.run(store))
    yield* Effect.forkScoped(projector.storeNowAndThen(store, options))
    return {
      read: (options) => projector.read(options),
      readNow: () => projector.readNow(),
      keep: (effect) => projector.need.keep(effect),
      caughtUp: (options) => Effect.flatMap(events.head, (head) => projector.read({ ...options, atLeast: head })),
      past: (position) => projector.until((folded) => folded.position > position),
      until: (condition) => projector.until(condition),
      rebuild: rebuilding.withPermit(projector.need.keep(projector.rebuild(events))),
      store,
      status: Effect.sync(() => projector.status)
    }
  })
