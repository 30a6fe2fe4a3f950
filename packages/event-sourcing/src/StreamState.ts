/** The state of a stream, replayed from its newest snapshot and the events after it. */
import { Effect, Option, Result, Schema, Stream } from "effect"
import type { Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import * as EventCodec from "./EventCodec.ts"
import { type EventStore, type Position, type RecordedEvent, type Revision, type StoreUnavailable, start } from "./EventStore.ts"
import { reasonOf } from "./Following.ts"
import * as HashChain from "./HashChain.ts"
import * as StreamName from "./StreamName.ts"

/** This host cannot read an event of the stream: its type or data is unknown, or the hash chain is broken. All commands are refused. */
export class StreamRefused extends Schema.TaggedError<StreamRefused>()("StreamRefused", {
  stream: Schema.String,
  revision: Schema.Int,
  reason: Schema.String
}) {
  override get message(): string {
    return `Stream ${this.stream} cannot be read at revision ${this.revision}: ${this.reason}`
  }
}

/** A stream at the time of the answer. `state` is an immutable value. */
export interface Current<State> {
  readonly state: State
  /** -1 if the stream has no event. */
  readonly revision: Revision
  readonly position: Position
  /** The time of the answer, never before the stream's last event: milliseconds since 1970. */
  readonly at: number
}

/** The newest state of a stream that the store has confirmed. `at` and `hash` are of its last event. */
export interface Durable<State> extends Current<State> {
  readonly hash: HashChain.Hash
  /** Undefined until this host knows of a snapshot, or tries to store one. Most streams are too short for that. */
  readonly snapshot: SnapshotProgress | undefined
}

/** The snapshots of a stream in memory: one mutable object for all its later states. */
export interface SnapshotProgress {
  /** The revision of the newest stored snapshot that this host knows; -1 for none. */
  savedAt: Revision
  /** The revision from which the state is encoded again, to store it. */
  dueAt: Revision
}

/** Later times have no ISO 8601 text of 24 characters, so the next event could not be sealed. */
const LAST_TIME = Date.parse("9999-12-31T23:59:59.999Z")

export type StreamReader<State, Event extends Tagged> = ReturnType<typeof makeReader<State, Event>>

/** Reads streams. */
export const makeReader = <State, Event extends Tagged>(
  store: EventStore["Service"],
  decider: Decider<State, Event>,
  snapshots: Snapshots<State> | undefined
) => {
  const empty = (name: StreamName.StreamName): Durable<State> => ({
    state: decider.initial,
    revision: -1,
    position: start,
    hash: HashChain.start(name),
    at: 0,
    snapshot: undefined
  })

  /** The state after all events that the store has after `from`. */
  const advance = (name: StreamName.StreamName, from: Durable<State>): Effect.Effect<Durable<State>, StoreUnavailable | StreamRefused> => {
    let current = from
    return store.readStream(name, { from: from.revision + 1 }).pipe(
      Stream.runForEachArray((events) => {
        const next = foldAll(decider, current, events)
        if (next instanceof StreamRefused) return Effect.fail(next)
        current = next
        return Effect.void
      }),
      Effect.map(() => current)
    )
  }

  /** The state after these events; undefined unless they are the events right after `from`. */
  const follow = (from: Durable<State>, newer: ReadonlyArray<RecordedEvent>): Durable<State> | undefined => {
    const next = foldAll(decider, from, newer)
    return newer.length === 0 || next instanceof StreamRefused ? undefined : next
  }

  /** Reads the stream from the store. */
  const load = (name: StreamName.StreamName) =>
    snapshots === undefined
      ? advance(name, empty(name))
      : Effect.flatMap(snapshots.load(name), (snapshot) => advance(name, snapshot ?? empty(name)))

  return { advance, empty, follow, load }
}

/**
 * Folds the next events of a stream. Each step is done for all events before the next step begins, which takes less time than all steps for one
 * event after another: the code of a step stays in the processor's caches. What is wrong is told of the first event that is not right.
 */
const foldAll = <State, Event extends Tagged>(
  { codec, evolve }: Decider<State, Event>,
  from: Durable<State>,
  events: ReadonlyArray<RecordedEvent>
): Durable<State> | StreamRefused => {
  const hashes = link(from, events)
  const linked = events.slice(0, hashes.length)
  const parsed = linked.map(({ data }) => EventCodec.parse(data))
  const decoded = linked.map(({ type }, i) => codec.decodeParsed(type, parsed[i]))
  let { at, state } = from
  for (const [i, event] of linked.entries()) {
    const next = decoded[i]
    if (next === undefined) break
    at = HashChain.timeOf(event)
    if (!(at <= LAST_TIME)) return refused(event, "the time it was decided cannot be read")
    if (next instanceof EventCodec.UnreadableEvent) return refused(event, next.message)
    try {
      state = evolve(state, next, at)
    } catch (error) {
      return refused(event, error instanceof Error ? error.message : String(error))
    }
  }
  const broken = events[linked.length]
  if (broken !== undefined) return refused(broken, "the hash chain is broken")
  const [last, hash] = [linked.at(-1), hashes.at(-1)]
  if (last === undefined || hash === undefined) return from
  return { state, revision: last.revision, position: last.position, hash, at, snapshot: from.snapshot }
}

const refused = ({ revision, stream }: RecordedEvent, reason: string) => new StreamRefused({ stream, revision, reason })

/** The hashes of events that follow `from`, up to the first event that does not follow. */
const link = <State>({ hash, revision }: Durable<State>, events: ReadonlyArray<RecordedEvent>): ReadonlyArray<HashChain.Hash> => {
  const hashes: Array<HashChain.Hash> = []
  let before: HashChain.Hash | undefined = hash
  for (const event of events) {
    before = event.revision === ++revision ? HashChain.verified(before, event) : undefined
    if (before === undefined) break
    hashes.push(before)
  }
  return hashes
}

export interface SnapshotOptions<State> {
  /** The version of the fold: change it whenever `evolve` changes its result. Part of the name `{category}Snapshot.v{version}-{id}`. */
  readonly version: number
  /** Encodes the state. It may omit data that no decision needs. A bounded text keeps every replay short. */
  readonly state: Schema.Codec<State, unknown>
  /** Events between two snapshots: 1,000 by default. */
  readonly every?: number
}

/**
 * The most UTF-16 code units of a snapshot that is stored every `every` events. A state of up to n times this size is stored after n times
 * `every` events: it is encoded once to see its size, and not again until then. So the work and the bytes written for each event stay
 * bounded, and a replay reads at most n times `every` events, for the largest state since the last snapshot.
 */
export const SNAPSHOT_CHARS = 64 * 1024
/**
 * The largest snapshot is this many times {@link SNAPSHOT_CHARS}: 983,040, below the smallest limit of a store (1 MiB). A larger state is
 * not stored, so its replay has no bound.
 */
export const MAX_SNAPSHOT_FACTOR = 15

/** The category of the streams that hold the snapshots of one fold version. */
export const snapshotCategory = (category: string, version: number): string => `${category}Snapshot.v${version}`

/** The content of a snapshot: the state after an event, and the event's hash and time. */
export const savedSchema = <State>(state: Schema.Codec<State, unknown>) => Schema.Struct({ hash: Schema.String, at: Schema.Int, state })

type Saved<State> = Pick<Durable<State>, "hash" | "at" | "state">

/** Loads and stores snapshots. They are derived data: without one, all events are replayed. */
export class Snapshots<State> {
  /** The streams in memory whose newest snapshot could not be stored. Reading them again takes longer with each event. */
  readonly unsaved = new Set<StreamName.StreamName>()
  readonly #store: EventStore["Service"]
  readonly #category: string
  readonly #every: number
  readonly #encode: (saved: Saved<State>) => string
  readonly #decode: (data: string) => Option.Option<Saved<State>>

  constructor(store: EventStore["Service"], category: string, { version, state, every = 1_000 }: SnapshotOptions<State>) {
    const schema = Schema.fromJsonString(savedSchema(state))
    this.#store = store
    this.#category = snapshotCategory(category, version)
    this.#every = every
    this.#encode = Schema.encodeSync(schema)
    this.#decode = Schema.decodeUnknownOption(schema)
  }

  /** Undefined if there is no snapshot, it cannot be decoded, or it does not fit the stored stream. */
  load(name: StreamName.StreamName): Effect.Effect<Durable<State> | undefined, StoreUnavailable> {
    return Effect.flatMap(this.#store.loadSnapshot(this.#nameOf(name)), (stored) => {
      const saved = stored && Option.getOrUndefined(this.#decode(stored.data))
      if (stored === undefined || saved === undefined) return Effect.undefined
      const { revision } = stored
      return Effect.map(Stream.runHead(this.#store.readStream(name, { from: revision, limit: 1 })), (event) => {
        if (event._tag === "None" || HashChain.hashOf(event.value) !== saved.hash) return undefined
        if (saved.at !== HashChain.timeOf(event.value)) return undefined
        const snapshot: SnapshotProgress = { savedAt: revision, dueAt: revision + this.#every }
        return { ...saved, revision, position: event.value.position, snapshot } satisfies Durable<State>
      })
    })
  }

  /** The progress of a stream without a snapshot. */
  begin(): SnapshotProgress {
    return { savedAt: -1, dueAt: this.#every - 1 }
  }

  isDue(revision: Revision, progress: SnapshotProgress | undefined): boolean {
    return revision >= (progress?.dueAt ?? this.#every - 1)
  }

  /** Stores the state. After a failure, {@link unsaved} lists the stream until a later attempt succeeds. */
  save(name: StreamName.StreamName, { state, hash, at, revision }: Durable<State>, progress: SnapshotProgress): Effect.Effect<void> {
    progress.dueAt = revision + this.#every
    const note = (reason: string) =>
      Effect.suspend(() => {
        if (this.unsaved.has(name)) return Effect.void
        this.unsaved.add(name)
        return Effect.logWarning(`No snapshot of ${name} was stored at its event ${revision}: ${reason}`)
      })
    return Effect.suspend(() => {
      const data = Result.try(() => this.#encode({ state, hash, at }))
      if (Result.isFailure(data)) return note("its state cannot be encoded")
      const chars = data.success.length
      const factor = Math.ceil(chars / SNAPSHOT_CHARS)
      if (factor > MAX_SNAPSHOT_FACTOR)
        return note(`its state has ${chars} characters, at most ${MAX_SNAPSHOT_FACTOR * SNAPSHOT_CHARS} are stored`)
      const dueAt = progress.savedAt + factor * this.#every
      if (revision < dueAt) {
        progress.dueAt = dueAt
        return Effect.void
      }
      return Effect.map(this.#store.saveSnapshot(this.#nameOf(name), { revision, data: data.success }), () => {
        progress.savedAt = Math.max(progress.savedAt, revision)
        this.unsaved.delete(name)
      })
    }).pipe(Effect.catchCause((cause) => note(reasonOf(cause))))
  }

  #nameOf(name: StreamName.StreamName): StreamName.StreamName {
    return StreamName.make(this.#category, StreamName.id(name))
  }
}
