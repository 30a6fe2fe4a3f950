/**
 * An aggregate: commands on the streams of one category. Each stream has one writer in this process, which decides commands on the newest
 * state. No answer comes from memory alone: it follows an append, or the store's confirmation of the stream's end.
 */
import { Clock, type Duration, Effect, Exit, Latch, Result, Scheduler } from "effect"
import { Command, type Committed, type Metadata } from "./CommandBatch.ts"
import type { Decide, Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import { EventIds } from "./EventIds.ts"
import {
  type AppendInDoubt,
  type AppendTooLarge,
  type Condition,
  type ConditionFailed,
  EventStore,
  type ExpectedRevision,
  revisionOf,
  StoreUnavailable
} from "./EventStore.ts"
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

/** Why a command or a read failed. Only after `AppendInDoubt` may events have been written. */
export type Failure = Busy | StreamRefused | AppendInDoubt | AppendTooLarge | StoreUnavailable

export interface Options<State> {
  /** The most commands that wait for one stream; the next one fails with `Busy`. 10,000 by default. */
  readonly queueLimit?: number
  /** The most commands decided for one append: 500 by default. */
  readonly batchLimit?: number
  /** How long an unused stream stays in memory, at most twice this: one minute by default. */
  readonly idleAfter?: Duration.Input
  readonly snapshots?: SnapshotOptions<State>
}

export interface Aggregate<State, Event> {
  /**
   * {@link execute} by callback, for a caller without a fiber. `told` is called once, never before `submit` returns its handle, unless the
   * command was refused at once, and must not throw. A command whose handle is `dropped` before it was decided leaves the queue.
   */
  readonly submit: <E>(
    id: string,
    decide: Decide<State, Event, E>,
    metadata: Metadata | undefined,
    told: (exit: Exit.Exit<Committed<State, Event>, E | Failure>) => void
  ) => { dropped: boolean }
  /**
   * {@link submit} for a decision that also rests on other streams. Fails with `ConditionFailed` if one of them does not end where it is
   * expected, and nothing was written: the store checks that in one step with the append, or right before it where it cannot.
   */
  readonly submitIf: <E>(
    conditions: ReadonlyArray<Condition>,
    id: string,
    decide: Decide<State, Event, E>,
    metadata: Metadata | undefined,
    told: (exit: Exit.Exit<Committed<State, Event>, E | Failure | ConditionFailed>) => void
  ) => { dropped: boolean }
  /**
   * Decides on the newest state. Answers and refusals are returned when all events that led to them are durable.
   * `decide` may run again after a conflict. A caller that is interrupted while it waits leaves the queue. Once its events were sent to the
   * store, they are written nevertheless.
   */
  readonly execute: <E>(
    id: string,
    decide: Decide<State, Event, E>,
    metadata?: Metadata
  ) => Effect.Effect<Committed<State, Event>, E | Failure>
  /**
   * As `execute`, for a stream that probably has no events, because its id was just made: the store is not asked for them. If the stream has
   * events after all, the append is refused, and the command is decided again on them.
   */
  readonly begin: Aggregate<State, Event>["execute"]
  /** The stream as it is in the store now, including events of other processes. */
  readonly read: (id: string) => Effect.Effect<Current<State>, Failure>
  /**
   * {@link read} at once: the state in memory, if the store confirms without waiting that it is the newest. Undefined if the stream is not in
   * memory, or the store has to be waited for.
   */
  readonly readNow: (id: string) => Current<State> | undefined
  /**
   * The state in memory, unconfirmed: for a decision by `submitIf` of another aggregate, with its revision as a condition. Undefined if the
   * stream is not in memory.
   */
  readonly assume: (id: string) => Current<State> | undefined
  /**
   * The newest durable state in memory, which may be older than the store's. Undefined if the stream is not in memory.
   * Synchronous, and does not keep the stream in memory. For hints and metrics, never for a decision.
   */
  readonly known: (id: string) => State | undefined
  /** The streams that this host cannot read now, for `/ready`. */
  readonly refused: () => ReadonlyArray<StreamRefused>
  /** The streams in memory whose newest snapshot could not be stored, so that reading them takes longer. For `/ready` and metrics. */
  readonly unsaved: () => ReadonlyArray<StreamName.StreamName>
  /** How many streams are in memory. */
  readonly live: () => number
}

/** How long closing waits for the store to answer the appends under way. */
const DRAIN = "10 seconds"

const readOnly = () => Result.succeed([])

/** A copy with memory of its own. A text that was cut out of another keeps that one in memory, and a joined text keeps its parts. */
const copyOf = (text: string): string => Buffer.from(text).toString()

/** The streams in memory: those used in this period, and those last used in the period before it. */
const liveStreams = <State, Event>(category: string, onForget: (stream: LiveStream<State, Event>) => void) => {
  let recent = new Map<string, LiveStream<State, Event>>()
  let older = new Map<string, LiveStream<State, Event>>()
  const occupied = Latch.makeUnsafe(false)
  /** Returns the stream without counting this as a use. */
  const peek = (id: string): LiveStream<State, Event> | undefined => recent.get(id) ?? older.get(id)
  return {
    peek,
    use: (id: string): LiveStream<State, Event> => {
      const used = recent.get(id)
      if (used !== undefined) return used
      const found = older.get(id) ?? new LiveStream(StreamName.make(category, id))
      older.delete(id)
      recent.set(copyOf(id), found)
      if (recent.size === 1) occupied.openUnsafe()
      return found
    },
    /** Waits until there is a stream in memory. A process that uses none has no timer. */
    occupied: occupied.await,
    forget: (stream: LiveStream<State, Event>): void => {
      const id = StreamName.id(stream.name)
      recent.delete(id)
      older.delete(id)
      onForget(stream)
    },
    /** Begins a period, and drops the streams that were not used in the last one. */
    turn: (): void => {
      for (const [id, stream] of older) {
        if (stream.awake) recent.set(id, stream)
        else if (!recent.has(id)) onForget(stream)
      }
      older = recent
      recent = new Map()
      if (older.size === 0) occupied.closeUnsafe()
    },
    size: (): number => new Set([...recent.keys(), ...older.keys()]).size
  }
}

/** Reads of streams in memory. `use`: the stream, unless the aggregate is closed. `load`: a read by the writer, which skips no command. */
const readsOf = <State, Event>(
  { lastRevision }: EventStore["Service"],
  clock: Clock.Clock,
  use: (id: string) => LiveStream<State, Event> | undefined,
  load: (id: string) => Effect.Effect<Current<State>, Failure>
): Pick<Aggregate<State, Event>, "read" | "readNow" | "assume"> => {
  const asOfNow = ({ state, revision, position, at }: Durable<State>): Current<State> => ({
    state,
    revision,
    position,
    at: Math.max(clock.currentTimeMillisUnsafe(), at)
  })

  /** The state in memory, if it is as new as the end that the store tells. */
  const confirmed = ({ durable }: LiveStream<State, Event>, last: ExpectedRevision): Current<State> | undefined =>
    durable !== undefined && durable.revision >= revisionOf(last) ? asOfNow(durable) : undefined

  return {
    // A read skips the queue: it needs only the store's confirmation that the state in memory is the newest
    readNow: (id) => {
      const stream = use(id)
      if (stream?.durable === undefined) return undefined
      const last = lastRevision.now?.(stream.name)
      return last === undefined ? undefined : confirmed(stream, last)
    },
    assume: (id) => {
      const durable = use(id)?.durable
      return durable && asOfNow(durable)
    },
    read: (id) =>
      Effect.suspend(() => {
        const stream = use(id)
        if (stream?.durable === undefined) return load(id)
        const answer = (last: ExpectedRevision): Effect.Effect<Current<State>, Failure> => {
          const current = confirmed(stream, last)
          return current === undefined ? load(id) : Effect.succeed(current)
        }
        const now = lastRevision.now?.(stream.name)
        return now === undefined ? Effect.flatMap(lastRevision(stream.name), answer) : answer(now)
      })
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

  const turn = Effect.sync(() => streams.turn())
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(streams.occupied, Effect.delay(turn, idleAfter))))
  yield* Effect.addFinalizer(() => {
    closed = true
    return Effect.timeoutOption(Effect.interruptible(writer.allResting), DRAIN)
  })

  const submitIf = <E>(
    conditions: ReadonlyArray<Condition> | undefined,
    id: string,
    decide: Decide<State, Event, E>,
    metadata: Metadata | undefined,
    told: (exit: Exit.Exit<Committed<State, Event>, E | Failure>) => void
  ): { dropped: boolean } => {
    const tell = told as ConstructorParameters<typeof Command<State, Event>>[2]
    const command = new Command<State, Event>(decide, metadata, tell, conditions)
    const stream = streams.use(id)
    if (closed) told(Exit.fail(new StoreUnavailable({ reason: "closed" })))
    else if (stream.waiting.length >= queueLimit) told(Exit.fail(new Busy({ stream: stream.name })))
    else writer.add(stream, command)
    return command
  }

  const submit: Aggregate<State, Event>["submit"] = (id, decide, metadata, told) => submitIf(undefined, id, decide, metadata, told)

  const execute: Aggregate<State, Event>["execute"] = (id, decide, metadata) =>
    Effect.callback((resume) => {
      const command = submit(id, decide, metadata, resume)
      return Effect.sync(() => {
        command.dropped = true
      })
    })

  const begin: Aggregate<State, Event>["begin"] = (id, decide, metadata) =>
    Effect.suspend(() => {
      const stream = streams.use(id)
      // A guess: an append confirms it, and so does the store where nothing is appended
      if (!stream.awake) stream.durable ??= reader.empty(stream.name)
      return execute(id, decide, metadata)
    })

  const reads = readsOf(
    store,
    clock,
    (id) => (closed ? undefined : streams.use(id)),
    (id) => execute(id, readOnly)
  )
  const aggregate: Aggregate<State, Event> = {
    submit,
    submitIf,
    execute,
    begin,
    ...reads,
    known: (id) => streams.peek(id)?.durable?.state,
    refused: () => [...writer.refusals.values()],
    unsaved: () => [...(snapshots?.unsaved ?? [])],
    live: streams.size
  }
  return aggregate
})
