/**
 * The batched writer. Commands of a stream wait in a queue. The writer takes all of them, decides them one after another on the state in
 * memory, appends their events in one append at the exact revision, and then answers each. So a busy stream gets faster under load.
 *
 * A batch without events is answered after the store has confirmed the end of the stream, so that events of other processes count at once.
 *
 * The steps of a writer are plain callbacks, because this is the hottest loop of the process. Writers that are woken in one tick step
 * together at its end, so the commands of a tick share an append.
 */
import { Array, Cause, Effect, Exit, Option, Random, type Scheduler, Schema } from "effect"
import { type Command, type CommandBatch, type Deciding, decideAll } from "./CommandBatch.ts"
import type { Tagged } from "./EventCodec.ts"
import * as Store from "./EventStore.ts"
import { sendAgain } from "./SendAgain.ts"
import type { StreamName } from "./StreamName.ts"
import { type Durable, type Snapshots, type StreamReader, StreamRefused } from "./StreamState.ts"

/** Too many commands wait for this stream, or other processes appended first at each attempt. Nothing was written: retry later. */
export class Busy extends Schema.TaggedError<Busy>()("Busy", { stream: Schema.String }) {
  override get message(): string {
    return `Stream ${this.stream} is busy: too many writers compete for it`
  }
}

/** Conflicts in a row after which a stream is `Busy`. At each conflict another writer makes progress. */
const CONFLICTS = 200

/** The pause after the third conflict in a row is random, up to 2 ms, then 4 and so on up to 16, so that competing writers take turns. */
const backOff = (conflicts: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (random) => Effect.sleep(Math.ceil(random * Math.min(2 ** (conflicts - 2), 16))))

/** The queue of every stream at rest, shared because most streams in memory rest. */
const RESTING: Array<never> = []
Object.freeze(RESTING)

/** A stream in memory: its newest durable state, and the commands that wait for its writer. */
export class LiveStream<State, Event> {
  readonly name: StreamName
  waiting: Array<Command<State, Event>> = RESTING
  durable: Durable<State> | undefined = undefined
  /** Conflicts in a row. */
  conflicts = 0

  constructor(name: StreamName) {
    this.name = name
  }

  /** Whether a writer is working on the stream. */
  get awake(): boolean {
    return this.waiting !== RESTING
  }
}

/** The dependencies of a writer. */
export interface Services<State, Event extends Tagged> extends Deciding<State, Event> {
  readonly store: Store.EventStore["Service"]
  readonly reader: StreamReader<State, Event>
  readonly snapshots: Snapshots<State> | undefined
  readonly dispatcher: Scheduler.SchedulerDispatcher
  /** Runs an effect with the services of the aggregate. */
  readonly run: ReturnType<typeof Effect.runForkWith<never>>
  /** The most commands decided for one append. */
  readonly batchLimit: number
  /** Called for each idle stream without events. */
  readonly onEmpty: (stream: LiveStream<State, Event>) => void
}

/** Decides the waiting commands of any number of streams, each stream by itself. */
export class StreamWriter<State, Event extends Tagged> {
  /** The streams that this host cannot read, by name. */
  readonly refusals = new Map<string, StreamRefused>()
  readonly #services: Services<State, Event>
  #woken: Array<LiveStream<State, Event>> = []
  #awake = 0
  #onAllResting = () => {}

  constructor(services: Services<State, Event>) {
    this.#services = services
  }

  /** Completes when no stream has a waiting command. */
  get allResting(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      this.#onAllResting = () => resume(Effect.void)
      if (this.#awake === 0) this.#onAllResting()
    })
  }

  /** Adds a command to the stream's queue. A stream at rest is woken for it. */
  add(stream: LiveStream<State, Event>, command: Command<State, Event>): void {
    if (stream.awake) {
      stream.waiting.push(command)
      return
    }
    stream.waiting = [command]
    this.#awake++
    this.#wake(stream)
  }

  /** Schedules the stream's commands for the end of this tick. */
  #wake(stream: LiveStream<State, Event>): void {
    if (this.#woken.push(stream) === 1) this.#services.dispatcher.scheduleTask(this.#stepAll, 0)
  }

  readonly #stepAll = (): void => {
    const streams = this.#woken
    this.#woken = []
    for (const stream of streams) this.#step(stream)
  }

  #rest(stream: LiveStream<State, Event>): void {
    if (stream.waiting.length > 0) return this.#wake(stream)
    stream.waiting = RESTING
    // Callers can invent names, such as keys that were never issued, so a stream without events must not stay in memory
    if (stream.durable === undefined || stream.durable.revision < 0) this.#services.onEmpty(stream)
    if (--this.#awake === 0) this.#onAllResting()
  }

  #step(stream: LiveStream<State, Event>): void {
    const { durable, waiting } = stream
    if (durable === undefined) return this.#load(stream)
    const batch = decideAll(this.#services, stream.name, durable, waiting, this.#services.batchLimit)
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

  /** Answers a batch without events if the store confirms that the state in memory is current, and that the conditions hold. */
  #confirm(stream: LiveStream<State, Event>, durable: Durable<State>, batch: CommandBatch<State, Event>): void {
    const confirmed = (last: Store.ExpectedRevision): void => {
      if (Store.revisionOf(last) !== durable.revision) return this.#conflict(stream, durable, batch)
      stream.conflicts = 0
      for (const command of batch.commands) command.answer(durable.position)
      this.#rest(stream)
    }
    const { lastRevision } = this.#services.store
    const { commands, conditions } = batch
    if (conditions === undefined) {
      const now = lastRevision.now?.(stream.name)
      if (now !== undefined) return confirmed(now)
      return this.#attempt(stream, lastRevision(stream.name), commands, confirmed)
    }
    // Asked together, so that the answers can share a round trip
    const asked = Effect.all([lastRevision(stream.name), this.#failed(conditions)], { concurrency: "unbounded" })
    this.#attempt(stream, asked, commands, ([last, failed]) =>
      failed === undefined ? confirmed(last) : this.#refuse(stream, batch, failed)
    )
  }

  /** The condition that does not hold now, if any. */
  #failed(conditions: ReadonlyArray<Store.Condition>): Effect.Effect<Store.ConditionFailed | undefined, Store.StoreUnavailable> {
    const ends = Effect.forEach(conditions, ({ stream }) => this.#services.store.lastRevision(stream), { concurrency: "unbounded" })
    return Effect.map(ends, (ends) => {
      const endOf = new Map(conditions.map(({ stream }, i) => [stream, ends[i]]))
      return Store.failedCondition(conditions, (stream) => endOf.get(stream))
    })
  }

  #append(
    stream: LiveStream<State, Event>,
    durable: Durable<State>,
    batch: CommandBatch<State, Event>,
    events: Array.NonEmptyArray<Store.EventData>
  ): void {
    const { run, store } = this.#services
    const { conditions } = batch
    const expected = Store.expectedOf(durable.revision)
    const told = (exit: Exit.Exit<Store.Appended, Store.AppendFailure>): void => {
      if (Exit.isSuccess(exit)) return this.#appended(stream, durable, batch, exit.value)
      const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
      if (error?._tag === "WrongRevision") return this.#conflict(stream, durable, batch, error.newer)
      if (error?._tag === "ConditionFailed") return this.#refuse(stream, batch, error)
      if (error?._tag !== "AppendInDoubt") return this.#fail(stream, batch.commands, exit.cause)
      const again = sendAgain(store, exit.cause, stream.name, expected, events, conditions)
      this.#attempt(stream, again, batch.commands, (outcome) => {
        if (outcome === undefined) return this.#conflict(stream, durable, batch)
        if ("_tag" in outcome) return this.#refuse(stream, batch, outcome)
        this.#appended(stream, durable, batch, outcome)
      })
    }
    const append = (): void => {
      if (store.append.submit !== undefined) return store.append.submit(stream.name, expected, events, told, conditions)
      run(store.append(stream.name, expected, events, conditions), { uninterruptible: true }).addObserver(told)
    }
    if (conditions === undefined || store.append.isConditional === true) return append()
    this.#attempt(stream, this.#failed(conditions), batch.commands, (failed) =>
      failed === undefined ? append() : this.#refuse(stream, batch, failed)
    )
  }

  /** Nothing was appended: the commands whose condition does not hold fail, and the others are decided again. */
  #refuse(stream: LiveStream<State, Event>, { commands }: CommandBatch<State, Event>, failed: Store.ConditionFailed): void {
    const isOutdated = ({ conditions = [] }: Command<State, Event>) =>
      conditions.some(({ stream, expected }) => stream === failed.stream && expected !== failed.actual)
    stream.waiting.unshift(...commands.filter((command) => !isOutdated(command)))
    const failure = Exit.fail(failed)
    for (const command of commands.filter(isOutdated)) command.fail(failure)
    this.#rest(stream)
  }

  #appended(stream: LiveStream<State, Event>, durable: Durable<State>, batch: CommandBatch<State, Event>, appended: Store.Appended): void {
    const { run, snapshots } = this.#services
    const { state, revision, hash, at } = batch
    const { position } = appended
    const now: Durable<State> = { state, revision, hash, at, position, snapshot: durable.snapshot }
    stream.conflicts = 0
    stream.durable = now
    for (const command of batch.commands) command.answer(position)
    if (snapshots?.isDue(revision, now.snapshot) === true) {
      const snapshot = now.snapshot ?? snapshots.begin()
      // All later states have the progress from here
      stream.durable = { ...now, snapshot }
      run(snapshots.save(stream.name, now, snapshot))
    }
    this.#rest(stream)
  }

  /** Another writer appended first: folds its events, then decides the batch again. `newer`: what the store told of them. */
  #conflict(
    stream: LiveStream<State, Event>,
    durable: Durable<State>,
    batch: CommandBatch<State, Event>,
    newer?: ReadonlyArray<Store.RecordedEvent>
  ): void {
    if (++stream.conflicts > CONFLICTS) return this.#fail(stream, batch.commands, Cause.fail(new Busy({ stream: stream.name })))
    const { reader } = this.#services
    const again = (newest: Durable<State>): void => {
      stream.durable = newest
      stream.waiting.unshift(...batch.commands)
      this.#rest(stream)
    }
    const told = newer && reader.follow(durable, newer)
    if (stream.conflicts >= 3) {
      // The pause makes way for other writers, so what was told is not the newest after it
      const inTurn = Effect.andThen(backOff(stream.conflicts), reader.advance(stream.name, told ?? durable))
      return this.#attempt(stream, inTurn, batch.commands, again)
    }
    if (told !== undefined) return again(told)
    this.#attempt(stream, reader.advance(stream.name, durable), batch.commands, again)
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

  /** Drops the cached state, which may differ from the store. The next command reads the stream again. */
  #fail(stream: LiveStream<State, Event>, commands: Array<Command<State, Event>>, cause: Cause.Cause<unknown>): void {
    stream.conflicts = 0
    stream.durable = undefined
    for (const reason of cause.reasons) {
      if (reason._tag !== "Fail" || !(reason.error instanceof StreamRefused)) continue
      if (!this.refusals.has(stream.name)) this.#services.run(logRefusal(reason.error))
      this.refusals.set(stream.name, reason.error)
    }
    const failure = Exit.failCause(cause)
    for (const command of commands.splice(0)) command.fail(failure)
    this.#rest(stream)
  }
}

/** Logs the revision of the event, but not its content. */
const logRefusal = ({ stream, revision, reason }: StreamRefused): Effect.Effect<void> =>
  Effect.logError(`${stream} is refused at this host, for its event ${revision} cannot be read: ${reason.split(":", 1)[0]}`)
