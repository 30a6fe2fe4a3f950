/**
 * The batched decider. Each live stream has one writer in this process: commands queue, the writer takes all that wait, decides
 * them one after another on the state in memory, appends what follows as one append at the exact revision, and only then answers
 * each. So a busy stream gets faster under load, and any store will do.
 *
 * Nothing is answered from memory alone: a batch that appends nothing is answered after the store confirmed where the stream
 * ends, so what another process wrote counts at once.
 */
import { Array, Cause, Clock, type Duration, Effect, Exit, Random, Result, Schedule, Scheduler, Schema, Stream } from "effect"
import type { Decide, Decider } from "./Decider.ts"
import * as EventCodec from "./EventCodec.ts"
import { EventIds } from "./EventIds.ts"
import {
  type Appended,
  type AppendInDoubt,
  type AppendTooLarge,
  type EventData,
  EventStore,
  type Position,
  type RecordedEvent,
  type Revision,
  StoreUnavailable,
  start
} from "./EventStore.ts"
import * as HashChain from "./HashChain.ts"
import { toIso } from "./Iso.ts"
import * as StreamName from "./StreamName.ts"

/** Too many commands wait for this stream, or other processes kept winning it: nothing was written, come back later. */
export class Busy extends Schema.TaggedError<Busy>()("Busy", { stream: Schema.String }) {}

/** This host cannot read the stream: an event it does not know, or one that does not fit the hash chain. Nothing is decided on it. */
export class StreamRefused extends Schema.TaggedError<StreamRefused>()("StreamRefused", {
  stream: Schema.String,
  revision: Schema.Int,
  reason: Schema.String
}) {}

/** Why a command or a read has no answer, whatever was asked. Only `AppendInDoubt` leaves open whether something was written. */
export type Failure = Busy | StreamRefused | AppendInDoubt | AppendTooLarge | StoreUnavailable

/** What is recorded beside each event: the request, its cause, and for administrative acts who and why. */
export interface Metadata {
  readonly $correlationId?: string
  readonly $causationId?: string
  readonly actor?: string
  readonly reason?: string
  /** Why an upstream failed, sealed. */
  readonly failure?: string
}

/** A stream as it stood when the answer was given: `state` is a value. */
export interface Current<State> {
  readonly state: State
  /** -1 while the stream has no event. */
  readonly revision: Revision
  readonly position: Position
  /** The instant of the answer, never before the stream's last event: milliseconds since 1970. */
  readonly at: number
}

/** What became of a command: the events it led to, none when it was already done, and the stream right after them. */
export interface Committed<State, Event> extends Current<State> {
  readonly events: ReadonlyArray<Event>
}

export interface SnapshotOptions<State> {
  /** Version of the fold: change it whenever `evolve` would lead elsewhere. Names `{category}Snapshot.v{version}-{id}`. */
  readonly version: number
  readonly state: Schema.Codec<State, unknown>
  /** Events between two snapshots. */
  readonly every?: number
}

export interface Options<State> {
  /** Commands that may wait for one stream before the next is told `Busy`. */
  readonly queueLimit?: number
  /** Commands decided for one append. */
  readonly batchLimit?: number
  /** A stream leaves memory when it was not asked for this long, at the latest after twice this. */
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
  /** The stream as it is now, by whomever it was written. */
  readonly read: (id: string) => Effect.Effect<Current<State>, Failure>
  /** The streams that this host refuses at present, for `/ready`. */
  readonly refused: () => ReadonlyArray<StreamRefused>
  /** Streams in memory. */
  readonly live: () => number
}

/** Conflicts in a row after which a stream is too busy: someone else makes progress each time. */
const CONFLICTS = 200
/** After the third in a row up to 2 milliseconds, then 4 and so on up to 16: writers that keep meeting go in turn, each with more to write. */
const stepAside = (conflicts: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (random) => Effect.sleep(Math.ceil(random * Math.min(2 ** (conflicts - 2), 16))))
/** An append in doubt is sent again after this many milliseconds, then after twice as many, and so on: some five seconds in all. */
const RESEND_AFTER = 10
const RESENDS = 9
/** How long closing waits for the store to answer what was sent. */
const DRAIN = "10 seconds"
/** UTF-16 code units of one append: at most three bytes each, so it stays below what any store takes. */
const BATCH_CHARS = 300_000
/** Larger states are not worth a snapshot. */
const SNAPSHOT_CHARS = 64 * 1024

/** Later ones have no ISO 8601 text of 24 characters, nor has no number: the next event could not be sealed. */
const LAST_INSTANT = Date.parse("9999-12-31T23:59:59.999Z")

const NOTHING = Result.succeed([])

export const make = Effect.fnUntraced(function* <State, Event extends { readonly _tag: string }>(
  decider: Decider<State, Event>,
  { queueLimit = 10_000, batchLimit = 500, idleAfter = "1 minute", snapshots }: Options<State> = {}
) {
  const store = yield* EventStore
  const newId = yield* EventIds
  const clock = yield* Clock.Clock
  const tick = (yield* Scheduler.Scheduler).makeDispatcher()
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const codec = EventCodec.make(decider)
  const refusals = new Map<string, StreamRefused>()
  let closed = false

  const execute: Aggregate<State, Event>["execute"] = (id, decide, metadata) =>
    Effect.callback((resume) => {
      if (closed) return resume(Effect.fail(new StoreUnavailable({ reason: "closed" })))
      const stream = live(id)
      if (stream.waiting.length >= queueLimit) return resume(Effect.fail(new Busy({ stream: stream.name })))
      const command = new Command<State, Event>(decide, metadata, resume as Command<State, Event>["resume"])
      stream.waiting.push(command)
      if (!stream.awake) wake(stream)
      return Effect.sync(() => {
        command.dropped = true
      })
    })

  // The streams in memory: those asked for in this period, and those of the period before it

  let recent = new Map<string, Live<State, Event>>()
  let older = new Map<string, Live<State, Event>>()
  const live = (id: string): Live<State, Event> => {
    let found = recent.get(id)
    if (found === undefined) {
      found = older.get(id) ?? new Live(StreamName.make(decider.category, id))
      recent.set(id, found)
    }
    return found
  }
  const forget = ({ name }: Live<State, Event>): void => {
    const id = StreamName.id(name)
    recent.delete(id)
    older.delete(id)
  }
  const forgetIdle = Effect.sync(() => {
    for (const [id, stream] of older) if (stream.awake) recent.set(id, stream)
    older = recent
    recent = new Map()
  })
  yield* Effect.forkScoped(Effect.forever(Effect.delay(forgetIdle, idleAfter)))

  // The writer of a stream, awake while a command waits. Its steps are plain callbacks, for this is the hottest loop there is.
  // Writers woken in one tick step together at its end: the commands of a tick share an append.

  let writers = 0
  let lastRests = () => {}
  const allRest = Effect.callback<void>((resume) => {
    lastRests = () => resume(Effect.void)
    if (writers === 0) lastRests()
  })
  yield* Effect.addFinalizer(() => {
    closed = true
    return Effect.timeoutOption(Effect.interruptible(allRest), DRAIN)
  })

  let woken: Array<Live<State, Event>> = []
  const wake = (stream: Live<State, Event>): void => {
    if (!stream.awake) writers++
    stream.awake = true
    if (woken.push(stream) === 1) tick.scheduleTask(stepAll, 0)
  }

  const stepAll = (): void => {
    const streams = woken
    woken = []
    for (const stream of streams) step(stream)
  }

  const rest = (stream: Live<State, Event>): void => {
    if (stream.waiting.length > 0) return wake(stream)
    stream.awake = false
    // Callers make up names, such as those of keys that were never issued: a stream without events must not stay in memory
    if (stream.durable === undefined || stream.durable.revision < 0) forget(stream)
    if (--writers === 0) lastRests()
  }

  const step = (stream: Live<State, Event>): void => {
    const { durable, name, waiting } = stream
    if (durable === undefined) {
      return attempt(stream, load(name), waiting, (loaded) => {
        refusals.delete(name)
        stream.durable = loaded
        rest(stream)
      })
    }
    const taken = waiting.splice(0, batchLimit)
    const batch = decideAll(stream.name, durable, taken)
    if (batch.decided < taken.length) waiting.unshift(...taken.slice(batch.decided))
    if (batch.commands.length === 0) return rest(stream)
    if (!Array.isArrayNonEmpty(batch.events)) {
      return attempt(stream, store.lastRevision(name), batch.commands, (last) => {
        if ((last === "noStream" ? -1 : last) !== durable.revision) return conflict(stream, durable, batch)
        stream.conflicts = 0
        for (const command of batch.commands) command.tell(durable.position)
        rest(stream)
      })
    }
    attempt(stream, append(name, durable.revision, batch.events), batch.commands, (appended) => {
      if (appended === undefined) return conflict(stream, durable, batch)
      stream.conflicts = 0
      const { state, revision, hash, at } = batch
      stream.durable = { state, revision, hash, at, position: appended.position, savedAt: durable.savedAt }
      for (const command of batch.commands) command.tell(appended.position)
      save(stream, stream.durable)
      rest(stream)
    })
  }

  /** Decides one after another as if all before had happened, as many as one append takes. */
  const decideAll = (name: StreamName.StreamName, durable: Durable<State>, commands: ReadonlyArray<Command<State, Event>>) => {
    const at = Math.max(clock.currentTimeMillisUnsafe(), durable.at)
    const batch: Batch<State, Event> = {
      name,
      iso: toIso(at),
      commands: [],
      decided: 0,
      events: [],
      chars: 0,
      state: durable.state,
      revision: durable.revision,
      hash: durable.hash,
      at
    }
    for (const command of commands) {
      if (!command.dropped) {
        const before = batch.events.length
        const { state, revision, hash, chars } = batch
        decideOne(command, batch)
        const isTooMuch = batch.chars > BATCH_CHARS && batch.events.length > before
        if (isTooMuch && batch.commands.length > 0) {
          // Too much with this one: it goes first in the next append
          batch.events.length = before
          Object.assign(batch, { state, revision, hash, chars })
          return batch
        }
        batch.commands.push(command)
        if (isTooMuch) {
          // Too much by itself: it goes alone, for no store may take it
          batch.decided++
          return batch
        }
      }
      batch.decided++
    }
    return batch
  }

  const decideOne = (command: Command<State, Event>, batch: Batch<State, Event>): void => {
    const before = batch.events.length
    let { state, revision, hash, chars } = batch
    try {
      const decision = command.decide(state, batch.at)
      if (Result.isFailure(decision)) return command.reject(Exit.fail(decision.failure))
      const metadata = command.metadata === undefined ? "{}" : JSON.stringify(command.metadata)
      for (const event of decision.success) {
        const { type, data } = codec.encode(event)
        const sealed = HashChain.seal(hash, batch.name, ++revision, { id: newId(batch.at), type, data }, batch.iso, metadata)
        batch.events.push(sealed)
        chars += data.length + sealed.metadata.length + 100
        state = decider.evolve(state, event, batch.at)
        hash = HashChain.hashOf(sealed)
      }
      batch.state = state
      batch.revision = revision
      batch.hash = hash
      batch.chars = chars
      command.accept(decision.success, state, revision, batch.at)
    } catch (defect) {
      batch.events.length = before
      command.reject(Exit.die(defect))
    }
  }

  /** Undefined when another writer was first. */
  const append = (
    name: StreamName.StreamName,
    revision: Revision,
    events: Array.NonEmptyArray<EventData>
  ): Effect.Effect<Appended | undefined, AppendInDoubt | AppendTooLarge | StoreUnavailable> => {
    const send = store.append(name, revision < 0 ? "noStream" : revision, events)
    // The identical append settles a doubt; until then the first may still be on its way, whatever becomes of the second
    const settle = (doubt: AppendInDoubt): Effect.Effect<Appended | undefined, AppendInDoubt> =>
      send.pipe(
        Effect.delay(RESEND_AFTER),
        Effect.retry({ while: (error) => error._tag !== "WrongRevision", schedule: Schedule.exponential(RESEND_AFTER), times: RESENDS }),
        Effect.catch((error) => (error._tag === "WrongRevision" ? readBack(doubt) : Effect.fail(doubt)))
      )
    // Whoever stands there may be ourselves, at a store that tells a repeated append no better
    const readBack = (doubt: AppendInDoubt) =>
      Stream.runCollect(store.readStream(name, { from: revision + 1, limit: events.length })).pipe(
        Effect.map((there) =>
          there.length === events.length && there.every(({ id }, i) => id === events[i]?.id) ? there.at(-1) : undefined
        ),
        Effect.mapError(() => doubt)
      )
    return Effect.catch(send, (error): Effect.Effect<Appended | undefined, AppendInDoubt | AppendTooLarge | StoreUnavailable> => {
      switch (error._tag) {
        case "WrongRevision":
          return Effect.undefined
        case "AppendInDoubt":
          return settle(error)
        default:
          return Effect.fail(error)
      }
    })
  }

  const conflict = (stream: Live<State, Event>, durable: Durable<State>, batch: Batch<State, Event>): void => {
    if (++stream.conflicts > CONFLICTS) return refuse(stream, batch.commands, Cause.fail(new Busy({ stream: stream.name })))
    const newest = advance(stream.name, durable)
    attempt(stream, stream.conflicts < 3 ? newest : Effect.andThen(stepAside(stream.conflicts), newest), batch.commands, (newer) => {
      stream.durable = newer
      stream.waiting.unshift(...batch.commands)
      rest(stream)
    })
  }

  const attempt = <A, E>(
    stream: Live<State, Event>,
    effect: Effect.Effect<A, E>,
    commands: Array<Command<State, Event>>,
    then: (a: A) => void
  ): void => {
    run(effect, { uninterruptible: true }).addObserver((exit) =>
      Exit.isSuccess(exit) ? then(exit.value) : refuse(stream, commands, exit.cause)
    )
  }

  /** What is in memory may not be what is stored: it goes, and the next command reads the stream again. */
  const refuse = (stream: Live<State, Event>, commands: Array<Command<State, Event>>, cause: Cause.Cause<unknown>): void => {
    stream.conflicts = 0
    stream.durable = undefined
    for (const reason of cause.reasons) {
      if (reason._tag !== "Fail" || !(reason.error instanceof StreamRefused)) continue
      if (!refusals.has(stream.name)) run(tellOf(reason.error))
      refusals.set(stream.name, reason.error)
    }
    for (const command of commands.splice(0)) command.resume(Exit.failCause(cause))
    rest(stream)
  }

  // Reading streams and their snapshots

  const load = Effect.fnUntraced(function* (name: StreamName.StreamName) {
    const snapshot = yield* loadSnapshot(name)
    return yield* advance(name, snapshot ?? empty(name))
  })

  const empty = (name: StreamName.StreamName): Durable<State> => ({
    state: decider.initial,
    revision: -1,
    position: start,
    hash: HashChain.start(name),
    at: 0,
    savedAt: -1
  })

  /** Folds what was appended since, by whomever. */
  const advance = (name: StreamName.StreamName, from: Durable<State>): Effect.Effect<Durable<State>, StoreUnavailable | StreamRefused> => {
    let current = from
    return store.readStream(name, { from: from.revision + 1 }).pipe(
      Stream.runForEachArray((events) => {
        for (const event of events) {
          const next = fold(current, event)
          if (next instanceof StreamRefused) return Effect.fail(next)
          current = next
        }
        return Effect.void
      }),
      Effect.map(() => current)
    )
  }

  const fold = ({ state, revision, hash, savedAt }: Durable<State>, event: RecordedEvent): Durable<State> | StreamRefused => {
    const refusal = (reason: string) => new StreamRefused({ stream: event.stream, revision: event.revision, reason })
    if (event.revision !== revision + 1 || !HashChain.verify(hash, event)) return refusal("the hash chain is broken")
    const at = Date.parse(HashChain.atOf(event))
    if (!(at <= LAST_INSTANT)) return refusal("the time it was decided cannot be read")
    try {
      return {
        state: decider.evolve(state, codec.decode(event.type, event.data), at),
        revision: event.revision,
        position: event.position,
        hash: HashChain.hashOf(event),
        at,
        savedAt
      }
    } catch (error) {
      return refusal(error instanceof Error ? error.message : String(error))
    }
  }

  const Saved = snapshots && Schema.fromJsonString(savedSchema(snapshots.state))
  const decodeSaved = Saved && Schema.decodeUnknownOption(Saved)
  const encodeSaved = Saved && Schema.encodeSync(Saved)
  const every = snapshots?.every ?? 1_000
  const snapshotName = (name: StreamName.StreamName) =>
    StreamName.make(snapshotCategory(decider.category, snapshots?.version ?? 0), StreamName.id(name))

  /** Undefined when there is none, it cannot be read, or it is not of the stream that stands there: then the events decide. */
  const loadSnapshot = Effect.fnUntraced(function* (name: StreamName.StreamName) {
    if (decodeSaved === undefined) return undefined
    const stored = yield* store.loadSnapshot(snapshotName(name))
    if (stored === undefined) return undefined
    const saved = decodeSaved(stored.data)
    if (saved._tag === "None") return undefined
    const [event] = yield* Stream.runCollect(store.readStream(name, { from: stored.revision, limit: 1 }))
    if (event === undefined || HashChain.hashOf(event) !== saved.value.hash) return undefined
    const { state, hash, at } = saved.value
    if (at !== Date.parse(HashChain.atOf(event))) return undefined
    return { state, hash, at, revision: stored.revision, position: event.position, savedAt: stored.revision } satisfies Durable<State>
  })

  const save = (stream: Live<State, Event>, durable: Durable<State>): void => {
    if (encodeSaved === undefined || durable.revision - durable.savedAt < every) return
    const { state, hash, at, revision } = durable
    stream.durable = { ...durable, savedAt: revision }
    // Derived and replaceable: a snapshot that could not be made or saved is made again later
    const saved = Effect.suspend(() => {
      const data = encodeSaved({ state, hash, at })
      return data.length <= SNAPSHOT_CHARS ? store.saveSnapshot(snapshotName(stream.name), { revision, data }) : Effect.void
    })
    run(Effect.ignoreCause(saved))
  }

  /** A stream at rest needs no turn in its queue: only that the store says it ends where we think. */
  const read: Aggregate<State, Event>["read"] = (id) =>
    Effect.suspend(() => {
      const stream = live(id)
      const { durable } = stream
      if (durable === undefined || stream.awake || closed) return execute(id, readOnly)
      return Effect.flatMap(store.lastRevision(stream.name), (last) =>
        (last === "noStream" ? -1 : last) === durable.revision ? Effect.succeed(asOfNow(durable)) : execute(id, readOnly)
      )
    })

  const asOfNow = ({ state, revision, position, at }: Durable<State>): Current<State> => ({
    state,
    revision,
    position,
    at: Math.max(clock.currentTimeMillisUnsafe(), at)
  })

  const aggregate: Aggregate<State, Event> = {
    execute,
    read,
    refused: () => [...refusals.values()],
    live: () => new Set([...recent.keys(), ...older.keys()]).size
  }
  return aggregate
})

/** The category of the streams that hold the snapshots of one fold version. */
export const snapshotCategory = (category: string, version: number): string => `${category}Snapshot.v${version}`

/** What a snapshot says: the state after an event, and that event's hash and time. */
export const savedSchema = <State>(state: Schema.Codec<State, unknown>) => Schema.Struct({ hash: Schema.String, at: Schema.Int, state })

const readOnly = () => NOTHING

/** Which event it is, and not what is in it. */
const tellOf = ({ stream, revision, reason }: StreamRefused): Effect.Effect<void> =>
  Effect.logError(`${stream} is refused at this host, for its event ${revision} cannot be read: ${reason.split(":", 1)[0]}`)

/** A stream's newest durable state; `at` and `hash` are those of its last event. */
interface Durable<State> extends Current<State> {
  readonly hash: HashChain.Hash
  /** Revision of the newest snapshot. */
  readonly savedAt: Revision
}

/** A stream in memory: its newest durable state, and the commands that wait for its writer. */
class Live<State, Event> {
  readonly name: StreamName.StreamName
  readonly waiting: Array<Command<State, Event>> = []
  durable: Durable<State> | undefined = undefined
  awake = false
  conflicts = 0

  constructor(name: StreamName.StreamName) {
    this.name = name
  }
}

/** A caller that waits, and what it will be told once all that led to it is durable. */
class Command<State, Event> {
  readonly decide: Decide<State, Event, unknown>
  readonly metadata: Metadata | undefined
  readonly resume: (exit: Exit.Exit<Committed<State, Event>, unknown>) => void
  dropped = false
  #answer:
    | { events: ReadonlyArray<Event>; state: State; revision: Revision; position: Position; at: number }
    | Exit.Exit<never, unknown>
    | undefined

  constructor(
    decide: Decide<State, Event, unknown>,
    metadata: Metadata | undefined,
    resume: (exit: Exit.Exit<Committed<State, Event>, unknown>) => void
  ) {
    this.decide = decide
    this.metadata = metadata
    this.resume = resume
  }

  accept(events: ReadonlyArray<Event>, state: State, revision: Revision, at: number): void {
    this.#answer = { events, state, revision, position: start, at }
  }

  reject(exit: Exit.Exit<never, unknown>): void {
    this.#answer = exit
  }

  tell(position: Position): void {
    const answer = this.#answer
    if (answer === undefined) return
    if (Exit.isExit(answer)) return this.resume(answer)
    answer.position = position
    this.resume(Exit.succeed(answer))
  }
}

/** Decisions on their way to the store: all of them happen, or none. */
interface Batch<State, Event> {
  readonly name: StreamName.StreamName
  readonly iso: string
  readonly commands: Array<Command<State, Event>>
  /** Commands taken into account, those that left included. */
  decided: number
  readonly events: Array<EventData>
  chars: number
  state: State
  revision: Revision
  hash: HashChain.Hash
  at: number
}
