/** The end of a growing log, and subscriptions that follow it. */
import { Context, type Duration, Effect, Scope, Stream } from "effect"
import { Conditions } from "./Conditions.ts"
import { type Batch, endOf, type Position, type RecordedEvent } from "./EventStore.ts"

export class Head {
  position: Position
  readonly #moved = new Conditions()

  constructor(position: Position) {
    this.position = position
  }

  advance(position: Position): void {
    if (position <= this.position) return
    this.position = position
    this.#moved.check()
  }

  /** Waits until an event after `position` is written. */
  past(position: Position): Effect.Effect<void> {
    return this.#moved.until(() => this.position > position)
  }
}

/** The end of a log that other processes also write to. It is polled only while a follower waits. */
export class WatchedHead extends Head {
  /** Polls the end once. A failure is ignored: followers keep waiting, and readers get the failure from their own reads. */
  readonly look: Effect.Effect<void>
  readonly #every: Duration.Input
  readonly #store: Context.Context<Scope.Scope>
  #waiting = 0
  #isWatched = false

  /**
   * `end`: reads the end of the log. `every`: the time between two polls. `store`: the context in which the store was made. Polls have its
   * scope and its clock, whoever follows first.
   */
  constructor(position: Position, end: Effect.Effect<Position, unknown>, every: Duration.Input, store: Context.Context<Scope.Scope>) {
    super(position)
    this.look = Effect.ignore(Effect.map(end, (found) => this.advance(found)))
    this.#every = every
    this.#store = store
  }

  override past(position: Position): Effect.Effect<void> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => {
        this.#waiting++
        if (this.#isWatched) return Effect.void
        this.#isWatched = true
        const watch = Effect.provideContext(this.#watch, this.#store)
        return Effect.asVoid(Effect.forkIn(watch, Context.get(this.#store, Scope.Scope)))
      }),
      () => super.past(position),
      () => Effect.sync(() => this.#waiting--)
    )
  }

  readonly #watch: Effect.Effect<void> = Effect.suspend(() => Effect.sleep(this.#every)).pipe(
    Effect.andThen(
      Effect.suspend(() => {
        this.#isWatched = this.#waiting > 0
        return this.#isWatched ? Effect.andThen(this.look, this.#watch) : Effect.void
      })
    )
  )
}

/** Reads page after page. After an empty page, which marks the end, it waits until the head moves. */
export const follow = <E>(
  after: Position,
  head: Head,
  page: (after: Position) => Effect.Effect<ReadonlyArray<RecordedEvent>, E>
): Stream.Stream<Batch, E> => followPages(after, head, (seen) => Effect.map(page(seen), (events) => ({ events })))

/** As {@link follow}, for pages that may leave out events. */
export const followPages = <E>(
  after: Position,
  head: Head,
  page: (after: Position) => Effect.Effect<Pick<Batch, "events" | "position">, E>
): Stream.Stream<Batch, E> => {
  type Seen = { readonly position: Position; readonly live: boolean }
  const next = (seen: Seen): Effect.Effect<readonly [Batch, Seen], E> => {
    const newer = seen.live ? Effect.andThen(head.past(seen.position), page(seen.position)) : page(seen.position)
    return Effect.flatMap(newer, (read) => {
      const end = endOf(read)
      if (end === undefined && seen.live) return next(seen)
      const live = seen.live || end === undefined
      return Effect.succeed([
        { ...read, live },
        { position: end ?? seen.position, live }
      ] as const)
    })
  }
  return Stream.unfold({ position: after, live: false } as Seen, next)
}
