/**
 * An aggregate: commands on streams of one category, each decided on the newest state by the one writer that the stream has in this
 * process. Nothing is answered from memory alone: an answer follows the append, or the store's word on where the stream ends.
 */
import { Clock, type Duration, Effect, Exit, Result, Scheduler } from "effect"
import type { Command, Committed, Metadata } from "./CommandBatch.ts"
import type { Decide, Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import { EventIds } from "./EventIds.ts"
import { type AppendInDoubt, type AppendTooLarge, EventStore, StoreUnavailable } from "./EventStore.ts"
import * as StreamName from "./StreamName.ts"
import { type Current, type Durable, makeReader, type SnapshotOptions, Snapshots, type StreamRefused } from "./StreamState.ts"
import { Busy, LiveStream, StreamWriter } from "./StreamWriter.ts"

export type { Committed, Metadata } from "./CommandBatch.ts"
export {
  type Current,
  MAX_SNAPSHOT_FACTOR,
  SNAPSHOT_CHARS,
  type SnapshotOptions,
  StreamRefused,
  savedSchema,
  snapshotCategory
} from "./StreamState.ts"
export { Busy } from "./StreamWriter.ts"

/** Why a command or a read has no answer. Only `AppendInDoubt` leaves open whether something was written. */
export type Failure = Busy | StreamRefused | AppendInDoubt | AppendTooLarge | StoreUnavailable

export interface Options<State> {
  /** Commands that may wait for one stream; the next fails with `Busy`. 10,000 by default. */
  readonly queueLimit?: number
  /** Commands decided for one append: 500 by default. */
  readonly batchLimit?: number
  /** A stream leaves memory when nobody used it for this long, at the latest after twice this: one minute by default. */
  readonly idleAfter?: Duration.Input
  readonly snapshots?: SnapshotOptions<State>
}

export interface Aggregate<State, Event> {
  /**
   * Decides on the newest state and answers when all that led to the answer is durable, a refusal likewise.
   * `decide` may run again after a conflict. A caller interrupted while waiting leaves the queue; once its decision is on the
   * way to the store, it happens.
   */
  readonly execute: <E>(
    id: string,
    decide: Decide<State, Event, E>,
    metadata?: Metadata
  ) => Effect.Effect<Committed<State, Event>, E | Failure>
  /** The stream as the store has it now, whoever wrote it. */
  readonly read: (id: string) => Effect.Effect<Current<State>, Failure>
  /**
   * The newest durable state in memory, which may be older than what the store holds. Undefined when the stream is not in memory.
   * Synchronous, and does not keep the stream in memory: for hints and measurements, never for a decision.
   */
  readonly known: (id: string) => State | undefined
  /** The streams that this host cannot read at present, for `/ready`. */
  readonly refused: () => ReadonlyArray<StreamRefused>
  /** The streams in memory whose newest snapshot could not be stored: reading them again takes longer. For `/ready` and metrics. */
  readonly unsaved: () => ReadonlyArray<StreamName.StreamName>
  /** How many streams are in memory. */
  readonly live: () => number
}

/** How long closing waits for the store to answer what was sent. */
const DRAIN = "10 seconds"

const readOnly = () => Result.succeed([])

/** The streams in memory: those used in this period, and those used in the period before it. */
const liveStreams = <State, Event>(category: string, onForget: (stream: LiveStream<State, Event>) => void) => {
  let recent = new Map<string, LiveStream<State, Event>>()
  let older = new Map<string, LiveStream<State, Event>>()
  /** Without counting as a use. */
  const peek = (id: string): LiveStream<State, Event> | undefined => recent.get(id) ?? older.get(id)
  return {
    peek,
    use: (id: string): LiveStream<State, Event> => {
      const found = peek(id) ?? new LiveStream(StreamName.make(category, id))
      recent.set(id, found)
      return found
    },
    forget: (stream: LiveStream<State, Event>): void => {
      const id = StreamName.id(stream.name)
      recent.delete(id)
      older.delete(id)
      onForget(stream)
    },
    /** Begins a period: forgets the streams that were not used in the last one. */
    turn: (): void => {
      for (const [id, stream] of older) {
        if (stream.awake) recent.set(id, stream)
        else if (!recent.has(id)) onForget(stream)
      }
      older = recent
      recent = new Map()
    },
    size: (): number => new Set([...recent.keys(), ...older.keys()]).size
  }
}

export const make = Effect.fnUntraced(function* <State, Event extends Tagged>(
  decider: Decider<State, Event>,
  { queueLimit = 10_000, batchLimit = 500, idleAfter = "1 minute", ...options }: Options<State> = {}
) {
  const store = yield* EventStore
  const newId = yield* EventIds
  const clock = yield* Clock.Clock
  const dispatcher = (yield* Scheduler.Scheduler).makeDispatcher()
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const snapshots = options.snapshots && new Snapshots(store, decider.category, options.snapshots)
  const reader = makeReader(store, decider, snapshots)
  const streams = liveStreams<State, Event>(decider.category, ({ name }) => snapshots?.unsaved.delete(name))
  const onEmpty = (stream: LiveStream<State, Event>) => streams.forget(stream)
  const writer = new StreamWriter({ decider, store, reader, snapshots, newId, clock, dispatcher, run, batchLimit, onEmpty })
  let closed = false

  yield* Effect.forkScoped(
    Effect.forever(
      Effect.delay(
        Effect.sync(() => streams.turn()),
        idleAfter
      )
    )
  )
  yield* Effect.addFinalizer(() => {
    closed = true
    return Effect.timeoutOption(Effect.interruptible(writer.allResting), DRAIN)
  })

  const execute: Aggregate<State, Event>["execute"] = (id, decide, metadata) =>
    Effect.callback((resume) => {
      if (closed) return resume(Effect.fail(new StoreUnavailable({ reason: "closed" })))
      const stream = streams.use(id)
      if (stream.waiting.length >= queueLimit) return resume(Effect.fail(new Busy({ stream: stream.name })))
      const answer = () => Exit.die("not decided")
      const command = { decide, metadata, resume: resume as Command<State, Event>["resume"], dropped: false, answer }
      stream.waiting.push(command)
      if (!stream.awake) writer.wake(stream)
      return Effect.sync(() => {
        command.dropped = true
      })
    })

  const asOfNow = ({ state, revision, position, at }: Durable<State>): Current<State> => ({
    state,
    revision,
    position,
    at: Math.max(clock.currentTimeMillisUnsafe(), at)
  })

  /** A stream without waiting commands needs no turn in the queue: only the store's word that it ends where it ends in memory. */
  const read: Aggregate<State, Event>["read"] = (id) =>
    Effect.suspend(() => {
      const stream = streams.use(id)
      const { durable } = stream
      if (durable === undefined || stream.awake || closed) return execute(id, readOnly)
      return Effect.flatMap(store.lastRevision(stream.name), (last) =>
        (last === "noStream" ? -1 : last) === durable.revision ? Effect.succeed(asOfNow(durable)) : execute(id, readOnly)
      )
    })

  const aggregate: Aggregate<State, Event> = {
    execute,
    read,
    known: (id) => streams.peek(id)?.durable?.state,
    refused: () => [...writer.refusals.values()],
    unsaved: () => [...(snapshots?.unsaved ?? [])],
    live: streams.size
  }
  return aggregate
})
