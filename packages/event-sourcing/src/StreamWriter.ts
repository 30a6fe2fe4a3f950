/**
 * The batched writer. Commands of a stream queue; the writer takes all that wait, decides them one after another on the state in memory,
 * appends their events as one append at the exact revision, and only then answers each. A busy stream gets faster under load.
 *
 * A batch without events is answered after the store confirmed where the stream ends, so what another process wrote counts at once.
 *
 * The steps of a writer are plain callbacks because this is the hottest loop of the process. Writers woken in one tick step together at
 * its end, so the commands of a tick share an append.
 */
import { Array, Cause, type Clock, Effect, Exit, Random, Result, Schedule, type Scheduler, Schema, Stream } from "effect"
import type { Decide, Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import type { EventIds } from "./EventIds.ts"
import {
  type Appended,
  type AppendInDoubt,
  type AppendTooLarge,
  type EventData,
  type EventStore,
  type Position,
  type Revision,
  type StoreUnavailable,
  start
} from "./EventStore.ts"
import * as HashChain from "./HashChain.ts"
import { toIso } from "./Iso.ts"
import type * as StreamName from "./StreamName.ts"
import { type Current, type Durable, type Snapshots, type StreamReader, StreamRefused } from "./StreamState.ts"

/** Too many commands wait for this stream, or other processes kept winning it. Nothing was written: retry later. */
export class Busy extends Schema.TaggedError<Busy>()("Busy", { stream: Schema.String }) {}

/** Recorded beside each event: the request, its cause, and for administrative acts who and why. */
export interface Metadata {
  readonly $correlationId?: string
  readonly $causationId?: string
  readonly actor?: string
  readonly reason?: string
  /** Why an upstream failed, sealed. */
  readonly failure?: string
}

/** The result of a command: its events (none when it was decided before), and the stream right after them. */
export interface Committed<State, Event> extends Current<State> {
  readonly events: ReadonlyArray<Event>
}

/** After this many conflicts in a row a stream is `Busy`. Another writer makes progress at each. */
const CONFLICTS = 200
/** An append in doubt is sent again after this many milliseconds, then after twice as many, and so on: some five seconds in all. */
const RESEND_AFTER = 10
const RESENDS = 9
/** UTF-16 code units of one append. They are at most three bytes each, so every store takes the append. */
const BATCH_CHARS = 300_000

/** From the third conflict in a row a random time of up to 2 milliseconds, then 4 and so on up to 16: writers that compete take turns. */
const backOff = (conflicts: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (random) => Effect.sleep(Math.ceil(random * Math.min(2 ** (conflicts - 2), 16))))

/** A stream in memory: its newest durable state, and the commands that wait for its writer. */
export class LiveStream<State, Event> {
  readonly name: StreamName.StreamName
  readonly waiting: Array<Command<State, Event>> = []
  durable: Durable<State> | undefined = undefined
  /** Whether a writer works on it. */
  awake = false
  /** In a row. */
  conflicts = 0

  constructor(name: StreamName.StreamName) {
    this.name = name
  }
}

/** A caller that waits, and the answer it gets once all that led to it is durable. */
export class Command<State, Event> {
  readonly decide: Decide<State, Event, unknown>
  readonly metadata: Metadata | undefined
  readonly resume: (exit: Exit.Exit<Committed<State, Event>, unknown>) => void
  /** Its caller was interrupted while it waited. */
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

  answer(position: Position): void {
    const answer = this.#answer
    if (answer === undefined) return
    if (Exit.isExit(answer)) return this.resume(answer)
    answer.position = position
    this.resume(Exit.succeed(answer))
  }
}

/** Decisions that are sent to the store together: all of them happen, or none. */
interface Batch<State, Event> {
  readonly name: StreamName.StreamName
  readonly iso: string
  readonly commands: Array<Command<State, Event>>
  /** Commands that were taken into account, the dropped ones included. */
  taken: number
  readonly events: Array<EventData>
  /** UTF-16 code units of the events. */
  chars: number
  state: State
  revision: Revision
  hash: HashChain.Hash
  at: number
}

/** What a writer works with. */
export interface Services<State, Event extends Tagged> {
  readonly decider: Decider<State, Event>
  readonly store: EventStore["Service"]
  readonly reader: StreamReader<State, Event>
  readonly snapshots: Snapshots<State> | undefined
  readonly newId: EventIds
  readonly clock: Clock.Clock
  readonly dispatcher: Scheduler.SchedulerDispatcher
  /** Runs an effect in the services of the aggregate. */
  readonly run: ReturnType<typeof Effect.runForkWith<never>>
  /** Commands decided for one append. */
  readonly batchLimit: number
  /** Gets each stream that rests without events. */
  readonly onEmpty: (stream: LiveStream<State, Event>) => void
}

/** Decides the waiting commands of any number of streams, each stream by itself. */
export class StreamWriter<State, Event extends Tagged> {
  /** The streams that this host refuses, by name. */
  readonly refusals = new Map<string, StreamRefused>()
  readonly #services: Services<State, Event>
  #woken: Array<LiveStream<State, Event>> = []
  #awake = 0
  #onAllResting = () => {}

  constructor(services: Services<State, Event>) {
    this.#services = services
  }

  /** Completes when no stream has a command left. */
  get allResting(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      this.#onAllResting = () => resume(Effect.void)
      if (this.#awake === 0) this.#onAllResting()
    })
  }

  /** Has the stream's commands decided at the end of this tick. */
  wake(stream: LiveStream<State, Event>): void {
    if (!stream.awake) this.#awake++
    stream.awake = true
    if (this.#woken.push(stream) === 1) this.#services.dispatcher.scheduleTask(this.#stepAll, 0)
  }

  readonly #stepAll = (): void => {
    const streams = this.#woken
    this.#woken = []
    for (const stream of streams) this.#step(stream)
  }

  #rest(stream: LiveStream<State, Event>): void {
    if (stream.waiting.length > 0) return this.wake(stream)
    stream.awake = false
    // Callers make up names, such as those of keys that were never issued: a stream without events must not stay in memory
    if (stream.durable === undefined || stream.durable.revision < 0) this.#services.onEmpty(stream)
    if (--this.#awake === 0) this.#onAllResting()
  }

  #step(stream: LiveStream<State, Event>): void {
    const { durable, waiting } = stream
    if (durable === undefined) return this.#load(stream)
    const commands = waiting.splice(0, this.#services.batchLimit)
    const batch = decideAll(this.#services, stream.name, durable, commands)
    if (batch.taken < commands.length) waiting.unshift(...commands.slice(batch.taken))
    if (batch.commands.length === 0) return this.#rest(stream)
    if (Array.isArrayNonEmpty(batch.events)) this.#append(stream, durable, batch, batch.events)
    else this.#confirm(stream, durable, batch)
  }

  #load(stream: LiveStream<State, Event>): void {
    this.#attempt(stream, this.#services.reader.load(stream.name), stream.waiting, (loaded) => {
      this.refusals.delete(stream.name)
      stream.durable = loaded
      this.#rest(stream)
    })
  }

  /** Answers a batch without events if the stream still ends where it ends in memory. */
  #confirm(stream: LiveStream<State, Event>, durable: Durable<State>, batch: Batch<State, Event>): void {
    this.#attempt(stream, this.#services.store.lastRevision(stream.name), batch.commands, (last) => {
      if ((last === "noStream" ? -1 : last) !== durable.revision) return this.#conflict(stream, durable, batch)
      stream.conflicts = 0
      for (const command of batch.commands) command.answer(durable.position)
      this.#rest(stream)
    })
  }

  #append(
    stream: LiveStream<State, Event>,
    durable: Durable<State>,
    batch: Batch<State, Event>,
    events: Array.NonEmptyArray<EventData>
  ): void {
    const { snapshots, store } = this.#services
    this.#attempt(stream, append(store, stream.name, durable.revision, events), batch.commands, (appended) => {
      if (appended === undefined) return this.#conflict(stream, durable, batch)
      const { state, revision, hash, at } = batch
      const { position } = appended
      const now: Durable<State> = { state, revision, hash, at, position, snapshot: durable.snapshot }
      stream.conflicts = 0
      stream.durable = now
      for (const command of batch.commands) command.answer(position)
      if (snapshots?.isDue(now) === true) this.#services.run(snapshots.save(stream.name, now))
      this.#rest(stream)
    })
  }

  /** Another writer was first: reads what it wrote, then decides the batch again. */
  #conflict(stream: LiveStream<State, Event>, durable: Durable<State>, batch: Batch<State, Event>): void {
    if (++stream.conflicts > CONFLICTS) return this.#fail(stream, batch.commands, Cause.fail(new Busy({ stream: stream.name })))
    const newest = this.#services.reader.advance(stream.name, durable)
    const inTurn = stream.conflicts < 3 ? newest : Effect.andThen(backOff(stream.conflicts), newest)
    this.#attempt(stream, inTurn, batch.commands, (newer) => {
      stream.durable = newer
      stream.waiting.unshift(...batch.commands)
      this.#rest(stream)
    })
  }

  #attempt<A, E>(
    stream: LiveStream<State, Event>,
    effect: Effect.Effect<A, E>,
    commands: Array<Command<State, Event>>,
    then: (a: A) => void
  ): void {
    this.#services
      .run(effect, { uninterruptible: true })
      .addObserver((exit) => (Exit.isSuccess(exit) ? then(exit.value) : this.#fail(stream, commands, exit.cause)))
  }

  /** Drops the cached state, which may not be what is stored; the next command reads the stream again. */
  #fail(stream: LiveStream<State, Event>, commands: Array<Command<State, Event>>, cause: Cause.Cause<unknown>): void {
    stream.conflicts = 0
    stream.durable = undefined
    for (const reason of cause.reasons) {
      if (reason._tag !== "Fail" || !(reason.error instanceof StreamRefused)) continue
      if (!this.refusals.has(stream.name)) this.#services.run(logRefusal(reason.error))
      this.refusals.set(stream.name, reason.error)
    }
    for (const command of commands.splice(0)) command.resume(Exit.failCause(cause))
    this.#rest(stream)
  }
}

/** Names the event but not its content. */
const logRefusal = ({ stream, revision, reason }: StreamRefused): Effect.Effect<void> =>
  Effect.logError(`${stream} is refused at this host, for its event ${revision} cannot be read: ${reason.split(":", 1)[0]}`)

/** Decides one command after another as if all before had happened, as many as one append takes. */
const decideAll = <State, Event extends Tagged>(
  services: Services<State, Event>,
  name: StreamName.StreamName,
  durable: Durable<State>,
  commands: ReadonlyArray<Command<State, Event>>
): Batch<State, Event> => {
  const at = Math.max(services.clock.currentTimeMillisUnsafe(), durable.at)
  const { state, revision, hash } = durable
  const batch: Batch<State, Event> = { name, iso: toIso(at), commands: [], taken: 0, events: [], chars: 0, state, revision, hash, at }
  for (const command of commands) {
    if (!command.dropped) {
      const before = batch.events.length
      const { state, revision, hash, chars } = batch
      decideOne(services, command, batch)
      const isTooLarge = batch.chars > BATCH_CHARS && batch.events.length > before
      if (isTooLarge && batch.commands.length > 0) {
        // The append would be too large with this command: it goes first in the next one
        batch.events.length = before
        Object.assign(batch, { state, revision, hash, chars })
        return batch
      }
      batch.commands.push(command)
      if (isTooLarge) {
        // Too large by itself: it goes alone, because the store may refuse it
        batch.taken++
        return batch
      }
    }
    batch.taken++
  }
  return batch
}

const decideOne = <State, Event extends Tagged>(
  { decider, newId }: Services<State, Event>,
  command: Command<State, Event>,
  batch: Batch<State, Event>
): void => {
  const before = batch.events.length
  let { state, revision, hash, chars } = batch
  try {
    const decision = command.decide(state, batch.at)
    if (Result.isFailure(decision)) return command.reject(Exit.fail(decision.failure))
    const metadata = command.metadata === undefined ? "{}" : JSON.stringify(command.metadata)
    for (const event of decision.success) {
      const { type, data } = decider.codec.encode(event)
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

/** Appends at the exact revision. Undefined when another writer was first. */
const append = (
  store: EventStore["Service"],
  name: StreamName.StreamName,
  revision: Revision,
  events: Array.NonEmptyArray<EventData>
): Effect.Effect<Appended | undefined, AppendInDoubt | AppendTooLarge | StoreUnavailable> => {
  const send = store.append(name, revision < 0 ? "noStream" : revision, events)
  return Effect.catch(send, (error): Effect.Effect<Appended | undefined, AppendInDoubt | AppendTooLarge | StoreUnavailable> => {
    if (error._tag === "WrongRevision") return Effect.undefined
    if (error._tag !== "AppendInDoubt") return Effect.fail(error)
    // The identical append settles the doubt. Until it has, the first may still be on its way, whatever happens to the second
    return send.pipe(
      Effect.delay(RESEND_AFTER),
      Effect.retry({ while: ({ _tag }) => _tag !== "WrongRevision", schedule: Schedule.exponential(RESEND_AFTER), times: RESENDS }),
      Effect.catchTag("WrongRevision", () => readBack(store, name, revision, events)),
      Effect.mapError(() => error)
    )
  })
}

/** The append, if these events stand at its place: a store may answer a repeated append as a conflict with itself. */
const readBack = (store: EventStore["Service"], name: StreamName.StreamName, revision: Revision, events: ReadonlyArray<EventData>) =>
  Effect.map(Stream.runCollect(store.readStream(name, { from: revision + 1, limit: events.length })), (there) =>
    there.length === events.length && there.every(({ id }, i) => id === events[i]?.id) ? there.at(-1) : undefined
  )
