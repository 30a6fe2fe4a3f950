/**
 * The state of a running projection, and the loops that update and store it. It follows the log while it is needed: always, or while it is
 * read or kept.
 */
import { type Duration, Effect, Option, Schema, Stream, type Types } from "effect"
import { Conditions } from "./Conditions.ts"
import { type Batch, EventStore, endOf, type Position, type StoreUnavailable, start } from "./EventStore.ts"
import { type Definition, type Folded, folder, ProjectionStopped } from "./Fold.ts"
import { follow, type Report, type Retrying, retryForever } from "./Following.ts"
import { Need } from "./Need.ts"
import type { StateUnavailable } from "./StateStore.ts"
import { load, save } from "./StoredProjection.ts"

export interface Options {
  /** The state is stored after this many events: 10,000 by default. During catch-up only `storeWithin` applies. */
  readonly storeEvery?: number
  /** The longest time until a changed state is stored: one minute by default. */
  readonly storeWithin?: Duration.Input
  /**
   * The projection sleeps when nobody has read or kept it for this time: it does not follow the log, and has no state in memory. The next
   * read waits until it has loaded the stored state and reached the end of the log. So at each time some process should keep it, which
   * stores the state for all. By default it never sleeps.
   */
  readonly idleAfter?: Duration.Input
}

/** The projection did not reach the requested position in time. */
export class ProjectionBehind extends Schema.TaggedError<ProjectionBehind>()("ProjectionBehind", {
  projection: Schema.String,
  position: Schema.String,
  asked: Schema.String
}) {
  override get message(): string {
    return `The projection ${this.projection} is at ${this.position} and did not reach ${this.asked} in time`
  }
}

export interface Status {
  readonly position: Position
  /** Whether the state has reached the end of the log. A projection that sleeps is not behind. */
  readonly caughtUp: boolean
  readonly rebuilding: boolean
  /** The last failure to read the event store or to load the stored state, which is retried. */
  readonly behind: Retrying | undefined
  /** The last failure to store the state, which is retried. Until then, the next start takes longer. */
  readonly unstored: Retrying | undefined
  readonly stopped: ProjectionStopped | undefined
}

export interface ReadOptions {
  /** The position that the state must contain at least, such as that of the caller's own write. */
  readonly atLeast?: Position
  /** How long to wait for the position: 5 seconds by default. */
  readonly within?: Duration.Input
}

export class Projector<State> {
  readonly #definition: Definition<State>
  readonly #codec: Schema.Codec<State, unknown>
  readonly #fold: ReturnType<typeof folder<State>>
  readonly #conditions = new Conditions()
  readonly need = new Need()
  readonly #idleAfter: Duration.Input | undefined
  #live: Folded<State>
  #loaded = false
  /** Whether the state has reached the end of the log since it was loaded. */
  #reached = false
  readonly #status: Types.Mutable<Omit<Status, "position">> = {
    caughtUp: false,
    rebuilding: false,
    behind: undefined,
    unstored: undefined,
    stopped: undefined
  }
  /** Events folded since the state was stored. */
  #ahead = 0
  #storedAt: Position | undefined

  constructor(definition: Definition<State>, idleAfter: Duration.Input | undefined) {
    this.#definition = definition
    this.#idleAfter = idleAfter
    this.#codec = Schema.toCodecJson(definition.state)
    this.#fold = folder(definition)
    this.#live = this.#fresh
  }

  get #fresh(): Folded<State> {
    return { state: this.#definition.initial(), position: start }
  }

  get status(): Status {
    const { caughtUp, ...status } = this.#status
    const sleeps = this.#idleAfter !== undefined && !this.need.isNow
    return { position: this.#live.position, ...status, caughtUp: caughtUp || sleeps }
  }

  // reading

  /** The state, if a {@link read} would answer at once. */
  readNow(): Folded<State> | undefined {
    this.need.ask()
    return this.#status.stopped === undefined && this.#isCurrent ? this.#live : undefined
  }

  read({ atLeast = start, within = "5 seconds" }: ReadOptions = {}): Effect.Effect<Folded<State>, ProjectionBehind | ProjectionStopped> {
    return Effect.suspend(() => {
      this.need.ask()
      const isReady = () => this.#status.stopped !== undefined || (this.#isCurrent && this.#live.position >= atLeast)
      if (isReady()) return this.#answer
      const late = Effect.suspend(() =>
        Effect.fail(new ProjectionBehind({ projection: this.#definition.name, position: this.#live.position, asked: atLeast }))
      )
      return this.#conditions
        .until(isReady)
        .pipe(Effect.timeoutOrElse({ duration: within, orElse: () => late }), Effect.andThen(this.#answer))
    })
  }

  /** What was stored while the projection slept may be old. */
  get #isCurrent(): boolean {
    return this.#loaded && (this.#reached || this.#idleAfter === undefined)
  }

  until(condition: (folded: Folded<State>) => boolean): Effect.Effect<void, ProjectionStopped> {
    const isOver = () => this.#status.stopped !== undefined || condition(this.#live)
    return Effect.asVoid(Effect.andThen(this.#conditions.until(isOver), this.#answer))
  }

  readonly #answer = Effect.suspend(() => {
    const { stopped } = this.#status
    return stopped === undefined ? Effect.succeed(this.#live) : Effect.fail(stopped)
  })

  // following the log

  /** Follows the log while it is needed. */
  run(store: Effect.Effect<void, StateUnavailable>) {
    const idleAfter = this.#idleAfter
    if (idleAfter === undefined) return this.#follow
    const idle = Effect.gen({ self: this }, function* () {
      for (;;) {
        yield* this.need.over(idleAfter)
        yield* Effect.exit(store)
        if (this.need.isNow) continue
        this.#drop()
        return
      }
    })
    return Effect.forever(Effect.andThen(this.need.begun, Effect.raceFirst(this.#follow, idle)))
  }

  #drop(): void {
    this.#loaded = false
    this.#reached = false
    this.#live = { ...this.#fresh, position: this.#live.position }
    this.#ahead = 0
    Object.assign(this.#status, { caughtUp: false, behind: undefined, unstored: undefined, stopped: undefined })
  }

  get #follow() {
    const report: Report = (behind) => {
      this.#status.behind = behind
      if (behind !== undefined) this.#status.caughtUp = false
    }
    const follows = follow(
      () => this.#live.position,
      (batch) => this.#take(batch),
      report,
      { ...this.#definition, skip: (after, position) => this.#skip(after, position) }
    )
    // A stopped projection waits for a rebuild
    const following = Effect.andThen(
      Effect.ignore(follows),
      this.#conditions.until(() => this.#status.stopped === undefined)
    )
    return Effect.andThen(retryForever(this.#restore, report), Effect.forever(following))
  }

  get #restore() {
    return Effect.gen({ self: this }, function* () {
      const { name, version } = this.#definition
      const { head } = yield* EventStore
      const stored = yield* load(name, version)
      const state = stored && Option.getOrUndefined(Schema.decodeUnknownOption(Schema.fromJsonString(this.#codec))(stored.json))
      // A position past the end belongs to another log, or to this log before it was restored from a backup
      const isOfThisLog = stored !== undefined && stored.position <= (yield* head)
      this.#live = isOfThisLog && state !== undefined ? { state, position: stored.position } : this.#fresh
      this.#storedAt = this.#live.position
      this.#loaded = true
      this.#conditions.check()
    })
  }

  #take(batch: Batch): Effect.Effect<void, ProjectionStopped> {
    return Effect.suspend(() => {
      if (!this.#loaded) return Effect.void
      const folded = this.#fold(this.#live, batch)
      if (folded instanceof ProjectionStopped) {
        // Recorded at once, because the fold may have changed half of the state before it threw
        this.#status.stopped = folded
        this.#status.caughtUp = false
        this.#conditions.check()
        return Effect.fail(folded)
      }
      this.#live = folded
      this.#status.caughtUp = batch.live
      this.#reached ||= batch.live
      // A batch without selected events moves the position, which is worth storing as well
      if (endOf(batch) !== undefined) this.#ahead += Math.max(1, batch.events.length)
      this.#conditions.check()
      return Effect.void
    })
  }

  /** Moves past events that it does not select. */
  #skip(after: Position, position: Position): boolean {
    const { position: reached, state } = this.#live
    if (!this.#loaded || this.#status.stopped !== undefined || after > reached) return false
    if (position > reached) this.#live = { state, position }
    this.#ahead++
    this.#conditions.check()
    return true
  }

  // rebuilding it

  /** Allows one rebuild at a time. */
  rebuild({ subscribe }: EventStore["Service"]): Effect.Effect<void, ProjectionStopped | StoreUnavailable> {
    const rebuilding = Effect.suspend(() => {
      let fresh: Folded<State> = { state: this.#definition.initial(), position: start }
      this.#status.rebuilding = true
      return Stream.runForEachWhile(subscribe(start, this.#definition), (batch) =>
        Effect.suspend(() => {
          const folded = this.#fold(fresh, batch)
          if (folded instanceof ProjectionStopped) return Effect.fail(folded)
          fresh = folded
          if (!batch.live || fresh.position < this.#live.position) return Effect.succeed(true)
          this.#swapIn(fresh)
          return Effect.succeed(false)
        })
      )
    })
    const ended = Effect.sync(() => {
      this.#status.rebuilding = false
    })
    return Effect.andThen(
      this.#conditions.until(() => this.#loaded),
      Effect.ensuring(rebuilding, ended)
    )
  }

  #swapIn(fresh: Folded<State>): void {
    this.#live = fresh
    this.#status.stopped = undefined
    this.#storedAt = undefined
    this.#ahead++
    this.#conditions.check()
  }

  // storing the state

  get store() {
    return Effect.suspend(() => {
      const { state, position } = this.#live
      const folded = this.#ahead
      if (!this.#loaded || this.#status.stopped !== undefined) return Effect.void
      if (position === this.#storedAt) {
        this.#ahead = 0
        return Effect.void
      }
      const { name, version } = this.#definition
      return Effect.map(save(name, version, { position, json: JSON.stringify(Schema.encodeSync(this.#codec)(state)) }), () => {
        this.#storedAt = position
        // It may have gone to sleep meanwhile
        this.#ahead = Math.max(0, this.#ahead - folded)
      })
    })
  }

  storeNowAndThen(store: Effect.Effect<void, StateUnavailable>, { storeEvery = 10_000, storeWithin = "1 minute" }: Options) {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        yield* this.#conditions.until(() => this.#ahead > 0 && this.#status.stopped === undefined)
        // During catch-up, storing after every few events would cost more than it saves
        yield* Effect.raceFirst(
          Effect.sleep(storeWithin),
          this.#conditions.until(() => this.#status.caughtUp && this.#ahead >= storeEvery)
        )
        yield* retryForever(store, (unstored) => {
          this.#status.unstored = unstored
        })
      }
    })
  }
}
