/**
 * A projection of the log into a text index. Several processes may share the index: each follows the log, and the first one that has folded
 * a batch writes it. An index that is ahead of the log, because the log was restored from a backup, is derived anew.
 */
import { type Duration, Effect, Schema, type Scope } from "effect"
import { Conditions } from "./Conditions.ts"
import { type Batch, EventStore, endOf, type Position, type RecordedEvent, type StoreUnavailable, start } from "./EventStore.ts"
import { follow, type Report, type Retrying, retryForever, type Selection, selects } from "./Following.ts"
import { ProjectionBehind } from "./Projection.ts"
import { type Document, type Index, type Query, TextIndex, TextIndexUnavailable } from "./TextIndex.ts"

/** The documents that an event may change, by id. */
export type Documents = Map<string, Document>

export interface Definition extends Selection {
  /** Names the index. Never changes. */
  readonly name: string
  /** Raised whenever the documents are derived differently. All are then derived anew. */
  readonly version: number
  /** The ids of the documents that the event may change. */
  readonly touches: (event: RecordedEvent) => ReadonlyArray<string>
  /** Changes the documents that the event touches. Must be pure but for that: a batch may be folded twice. */
  readonly evolve: (event: RecordedEvent, documents: Documents) => void
}

/** Events without a change after which the position is stored, so that the next start does not read them again. */
const STORE_EVERY = 10_000

/** The fold threw at this event. The fix is a release whose fold handles the event, with a new `version`. */
export class TextProjectionStopped extends Schema.TaggedError<TextProjectionStopped>()("TextProjectionStopped", {
  projection: Schema.String,
  position: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `The text index ${this.projection} stopped at ${this.position}: ${this.reason}`
  }
}

export interface Status {
  readonly position: Position
  readonly caughtUp: boolean
  /** The last failure, which is retried. */
  readonly behind: Retrying | undefined
  readonly stopped: TextProjectionStopped | undefined
}

export interface TextProjection {
  /** Searches what was folded so far. */
  readonly search: (query: Query) => Effect.Effect<ReadonlyArray<Document>, TextIndexUnavailable | TextProjectionStopped>
  /** The documents of these ids, as far as the log is folded. */
  readonly get: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Document>, TextIndexUnavailable | TextProjectionStopped>
  /** Waits until every event written before the call is folded: for 5 seconds by default. */
  readonly caughtUp: (within?: Duration.Input) => Effect.Effect<void, ProjectionBehind | TextProjectionStopped | StoreUnavailable>
  readonly status: Effect.Effect<Status>
}

/**
 * Follows the log in the background until the scope closes. An index that cannot be opened, such as one whose file is broken, is tried again
 * and again; until then every search fails.
 */
export const make = (definition: Definition): Effect.Effect<TextProjection, never, EventStore | TextIndex | Scope.Scope> =>
  Effect.gen(function* () {
    const events = yield* EventStore
    const projector = new Projector(definition)
    yield* Effect.forkScoped(projector.run)
    return {
      search: (query) => projector.reading((index) => index.search(query)),
      get: (ids) => projector.reading((index) => index.get(ids)),
      caughtUp: (within) => Effect.flatMap(events.head, (head) => projector.reach(head, within)),
      status: Effect.sync(() => projector.status)
    }
  })

const NOT_OPEN = Effect.fail(new TextIndexUnavailable({ reason: "it is not open yet" }))

/** Stands for an index that is not open. */
const UNOPENED: Index = { position: NOT_OPEN, get: () => NOT_OPEN, write: () => NOT_OPEN, search: () => NOT_OPEN, clear: NOT_OPEN }

class Projector {
  readonly #definition: Definition
  #index = UNOPENED
  readonly #concerns: (event: RecordedEvent) => boolean
  readonly #conditions = new Conditions()
  /** Everything up to here is folded. */
  #position: Position = start
  /** The position of the index, as this process knows it. */
  #stored: Position = start
  #unstored = 0
  #caughtUp = false
  #behind: Retrying | undefined
  #stopped: TextProjectionStopped | undefined

  constructor(definition: Definition) {
    this.#definition = definition
    this.#concerns = selects(definition)
  }

  get status(): Status {
    return { position: this.#position, caughtUp: this.#caughtUp, behind: this.#behind, stopped: this.#stopped }
  }

  reading<A>(
    read: (index: Index) => Effect.Effect<A, TextIndexUnavailable>
  ): Effect.Effect<A, TextIndexUnavailable | TextProjectionStopped> {
    return Effect.suspend(
      (): Effect.Effect<A, TextIndexUnavailable | TextProjectionStopped> =>
        this.#stopped === undefined ? read(this.#index) : Effect.fail(this.#stopped)
    )
  }

  reach(asked: Position, within: Duration.Input = "5 seconds"): Effect.Effect<void, ProjectionBehind | TextProjectionStopped> {
    const late = Effect.suspend(() =>
      Effect.fail(new ProjectionBehind({ projection: this.#definition.name, position: this.#position, asked }))
    )
    const reached = this.#conditions.until(() => this.#stopped !== undefined || this.#position >= asked)
    const isStopped = Effect.suspend(() => (this.#stopped === undefined ? Effect.void : Effect.fail(this.#stopped)))
    return Effect.andThen(Effect.timeoutOrElse(reached, { duration: within, orElse: () => late }), isStopped)
  }

  get run() {
    const report: Report = (behind) => {
      this.#behind = behind
      if (behind !== undefined) this.#caughtUp = false
    }
    // A failure of the index ends the subscription, which is retried from the index's own position
    const following = Effect.andThen(
      this.#restore,
      follow(
        () => this.#position,
        (batch) => this.#take(batch),
        report,
        { ...this.#definition, skip: (after, position) => this.#skip(after, position) }
      )
    )
    const untilStopped = Effect.catchTag(following, "TextProjectionStopped", (stopped) => Effect.sync(() => this.#stop(stopped)))
    return retryForever(untilStopped, report)
  }

  get #restore() {
    return Effect.gen({ self: this }, function* () {
      const { name, version } = this.#definition
      const texts = yield* TextIndex
      if (this.#index === UNOPENED) this.#index = yield* texts.open(name, version)
      const head = yield* EventStore.use(({ head }) => head)
      if ((yield* this.#index.position) > head) yield* this.#index.clear
      this.#advance(yield* this.#index.position)
      this.#position = this.#stored
      this.#conditions.check()
    })
  }

  #stop(stopped: TextProjectionStopped): void {
    this.#stopped = stopped
    this.#caughtUp = false
    this.#conditions.check()
  }

  #advance(stored: Position): void {
    this.#stored = stored
    this.#unstored = 0
    if (stored > this.#position) this.#position = stored
  }

  /** Moves past events that it does not select. Whole batches are needed from time to time, because only they have the position stored. */
  #skip(after: Position, position: Position): boolean {
    if (after !== this.#position || this.#unstored + 1 >= STORE_EVERY) return false
    this.#position = position
    this.#unstored++
    this.#conditions.check()
    return true
  }

  #take(batch: Batch): Effect.Effect<void, TextProjectionStopped | TextIndexUnavailable> {
    return Effect.gen({ self: this }, function* () {
      const { events, live } = batch
      const last = endOf(batch)
      while (last !== undefined && last > this.#position)
        yield* this.#write(
          events.filter(({ position }) => position > this.#position),
          last
        )
      this.#caughtUp = live
      this.#conditions.check()
    })
  }

  /** Folds the events and writes the changes. If another process was first, only the known position changes. */
  #write(events: ReadonlyArray<RecordedEvent>, position: Position) {
    return Effect.gen({ self: this }, function* (): Effect.fn.Return<void, TextProjectionStopped | TextIndexUnavailable> {
      const own = events.filter(this.#concerns)
      this.#unstored += Math.max(1, events.length)
      if (own.length === 0 && this.#unstored < STORE_EVERY) {
        this.#position = position
        return
      }
      const changes = yield* this.#fold(own)
      if (changes !== undefined && (yield* this.#index.write({ after: this.#stored, position, ...changes }))) return this.#advance(position)
      const stored = yield* this.#index.position
      // The events before this batch have to be read again
      if (stored < this.#stored) return yield* new TextIndexUnavailable({ reason: "another process began it anew" })
      this.#advance(stored)
    })
  }

  /** The changes of the events; undefined if another process has written since this one last knew the index. */
  #fold(events: ReadonlyArray<RecordedEvent>) {
    return Effect.gen({ self: this }, function* () {
      let at: Position = this.#position
      const { evolve, name, touches } = this.#definition
      try {
        const touched = events.flatMap((event) => {
          at = event.position
          return touches(event)
        })
        const ids = [...new Set(touched)]
        const documents = new Map(yield* this.#index.get(ids))
        // After the documents: if they have what another process wrote, the position has it, too
        if ((yield* this.#index.position) !== this.#stored) return undefined
        for (const event of events) {
          at = event.position
          evolve(event, documents)
        }
        return { put: [...documents.values()], remove: ids.filter((id) => !documents.has(id)) }
      } catch (cause) {
        return yield* new TextProjectionStopped({ projection: name, position: at, reason: String(cause) })
      }
    })
  }
}
