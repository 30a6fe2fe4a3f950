/** The end of a growing log, and how a subscription follows it. */
import { type Duration, Effect, type Scope, Stream } from "effect"
import { Conditions } from "./Conditions.ts"
import type { Batch, Position, RecordedEvent } from "./EventStore.ts"

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

  /** Waits until something was written after `position`. */
  past(position: Position): Effect.Effect<void> {
    return this.#moved.until(() => this.position > position)
  }
}

/** The end of a log to which other processes write, too. It is looked for only while somebody waits for it. */
export class WatchedHead extends Head {
  /** Looks for the end once. A failure is not told: followers go on waiting, and readers get the failure themselves. */
  readonly look: Effect.Effect<void>
  readonly #every: Duration.Input
  readonly #scope: Scope.Scope
  #waiting = 0
  #isWatched = false

  /** `end`: where the log ends now. It is asked `every` so often, in the scope. */
  constructor(position: Position, end: Effect.Effect<Position, unknown>, every: Duration.Input, scope: Scope.Scope) {
    super(position)
    this.look = Effect.ignore(Effect.map(end, (found) => this.advance(found)))
    this.#every = every
    this.#scope = scope
  }

  override past(position: Position): Effect.Effect<void> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => {
        this.#waiting++
        if (this.#isWatched) return Effect.void
        this.#isWatched = true
        return Effect.asVoid(Effect.forkIn(this.#watch, this.#scope))
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

/** Reads page after page. After an empty page, which is the end, it waits for the head to move. */
export const follow = <E>(
  after: Position,
  head: Head,
  page: (after: Position) => Effect.Effect<ReadonlyArray<RecordedEvent>, E>
): Stream.Stream<Batch, E> => {
  type Seen = { readonly position: Position; readonly live: boolean }
  const next = (seen: Seen): Effect.Effect<readonly [Batch, Seen], E> => {
    const newer = seen.live ? Effect.andThen(head.past(seen.position), page(seen.position)) : page(seen.position)
    return Effect.flatMap(newer, (events) => {
      const last = events.at(-1)
      if (last === undefined && seen.live) return next(seen)
      const live = seen.live || last === undefined
      return Effect.succeed([
        { events, live },
        { position: last?.position ?? seen.position, live }
      ] as const)
    })
  }
  return Stream.unfold({ position: after, live: false } as Seen, next)
}
