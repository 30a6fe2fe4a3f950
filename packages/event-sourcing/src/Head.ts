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
    return this.until(() => this.position > position)
  }

  /** Waits until the condition holds, at which it looks whenever the end moves. */
  until(condition: () => boolean): Effect.Effect<void> {
    return this.#moved.until(condition)
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

  override until(condition: () => boolean): Effect.Effect<void> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => {
        this.#waiting++
        if (this.#isWatched) return Effect.void
        this.#isWatched = true
        const watch = Effect.provideContext(this.#watch, this.#store)
        return Effect.asVoid(Effect.forkIn(watch, Context.get(this.#store, Scope.Scope)))
      }),
      () => super.until(condition),
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

/** Skips the newest events after a position, if a follower need not see them. Returns the position of the last one, or undefined. */
export type Skip = (after: Position) => Position | undefined

const never: Skip = () => undefined

/**
 * Reads page after page. After an empty page, which marks the end, it waits until the head moves. What `skip` skips is not read, and does
 * not end the wait.
 */
export const follow = <E>(
  after: Position,
  head: Head,
  page: (after: Position) => Effect.Effect<ReadonlyArray<RecordedEvent>, E>,
  skip: Skip = never
): Stream.Stream<Batch, E> => followPages(after, head, (seen) => Effect.map(page(seen), (events) => ({ events })), skip)

/** As {@link follow}, for pages that may leave out events. */
export const followPages = <E>(
  after: Position,
  head: Head,
  page: (after: Position) => Effect.Effect<Pick<Batch, "events" | "position">, E>,
  skip: Skip = never
): Stream.Stream<Batch, E> => {
  type Seen = { readonly position: Position; readonly live: boolean }
  const next = (seen: Seen): Effect.Effect<readonly [Batch, Seen], E> => {
    let { position } = seen
    const isNew = () => {
      while (head.position > position) {
        const skipped = skip(position)
        if (skipped === undefined) return true
        position = skipped
      }
      return false
    }
    const newer = seen.live ? Effect.flatMap(head.until(isNew), () => page(position)) : page(position)
    return Effect.flatMap(newer, (read) => {
      const end = endOf(read)
      if (end === undefined && seen.live) return next({ position, live: true })
      const live = seen.live || end === undefined
      return Effect.succeed([
        { ...read, live },
        { position: end ?? position, live }
      ] as const)
    })
  }
  return Stream.unfold({ position: after, live: false } as Seen, next)
}
