/** The embedded durable event store: one SQLite file in WAL mode, shared by the processes of one host. It syncs before it answers. */
import {
  EventStore,
  follow,
  type Head,
  Paging,
  placeOf,
  positionOf,
  type Skip,
  type StreamName,
  WatchedHead
} from "@millrace/event-sourcing"
import { Cause, Effect, Exit, Layer, type Scope } from "effect"
import type { Fault } from "./Fault.ts"
import { open, patiently } from "./Patience.ts"
import { type LogOptions, PAGE, SqliteLog } from "./SqliteLog.ts"
import * as Transactions from "./Transactions.ts"

export { parsePosition, stepBack } from "@millrace/event-sourcing"

/** Milliseconds between two polls for events of other processes while there are followers. A poll costs microseconds. */
const POLL = 20

const unavailable = (fault: Fault) => new EventStore.StoreUnavailable({ reason: fault.message })

type Service = EventStore.EventStore["Service"]
type Read = <A>(look: () => A) => Effect.Effect<A, EventStore.StoreUnavailable>

export const make = Effect.fnUntraced(function* (options: LogOptions) {
  const runSync = Effect.runSyncWith(yield* Effect.context<never>())
  const onMigration = (from: number, to: number) =>
    runSync(Effect.logInfo(`Migrating ${options.filename} from version ${from} to ${to}: some seconds for a million events`))
  const log = yield* open(options.filename, () => new SqliteLog({ onMigration, ...options }), unavailable)
  const end = Effect.try({ try: () => positionOf(log.last()), catch: (error) => error })
  const head = new WatchedHead(positionOf(log.place), end, POLL, yield* Effect.context<Scope.Scope>())
  const transactions = yield* Transactions.make(
    options.filename,
    (body) => log.transact(body),
    () => head.advance(positionOf(log.place))
  )
  const read: Read = (look) => patiently(options.filename, look, unavailable)
  const page = (look: () => ReadonlyArray<EventStore.RecordedEvent>) =>
    Effect.map(read(look), (events): Paging.Page => ({ events, isLast: events.length < PAGE }))
  return EventStore.EventStore.of({
    append: EventStore.appendBy(
      (stream, expected, events, told, conditions) => {
        const tooLarge = EventStore.tooLarge(stream, events)
        if (tooLarge !== undefined) told(Exit.fail(tooLarge))
        else transactions.submit(new AppendWrite(log, stream, expected, events, told, conditions))
      },
      { isConditional: true }
    ),
    readStream: (stream, options) =>
      Paging.ofStream(({ direction, from, left }) => page(() => log.readStream(stream, direction, from, left)), options),
    lastRevision: Object.assign((stream: StreamName.StreamName) => read(() => log.lastRevision(stream)), {
      // Another process may have the file locked, or the file is broken: the other form waits, or tells the fault
      now: (stream: StreamName.StreamName) => {
        try {
          return log.lastRevision(stream)
        } catch {
          return undefined
        }
      }
    }),
    readAll: (after) => Paging.ofLog(after, (seen) => page(() => log.readAll(placeOf(seen)))),
    subscribe: subscriber(log, read, head),
    head: read(() => positionOf(log.last())),
    loadSnapshot: (name) => read(() => log.loadSnapshot(name)),
    saveSnapshot: (name, snapshot) =>
      transactions.run(snapshot.data.length, () => Exit.succeed(log.saveSnapshot(name, snapshot)), unavailable)
  })
})

type Told = (exit: Exit.Exit<EventStore.Appended, EventStore.AppendFailure>) => void

/** An append as a part of a transaction. */
class AppendWrite implements Transactions.Write {
  readonly size: number
  readonly #log: SqliteLog
  readonly #stream: StreamName.StreamName
  readonly #expected: EventStore.ExpectedRevision
  readonly #events: ReadonlyArray<EventStore.EventData>
  readonly #told: Told
  readonly #conditions: ReadonlyArray<EventStore.Condition> | undefined
  #outcome: ReturnType<SqliteLog["append"]> | EventStore.ConditionFailed = { actual: "noStream" }

  constructor(
    log: SqliteLog,
    stream: StreamName.StreamName,
    expected: EventStore.ExpectedRevision,
    events: ReadonlyArray<EventStore.EventData>,
    told: Told,
    conditions: ReadonlyArray<EventStore.Condition> | undefined
  ) {
    this.size = EventStore.appendChars(events)
    this.#log = log
    this.#stream = stream
    this.#expected = expected
    this.#events = events
    this.#told = told
    this.#conditions = conditions
  }

  run(): void {
    const failed = this.#conditions && EventStore.failedCondition(this.#conditions, (stream) => this.#log.lastRevision(stream))
    this.#outcome = failed ?? this.#log.append(this.#stream, this.#expected, this.#events)
  }

  ended(transaction: Exit.Exit<unknown, Fault>): void {
    const outcome = this.#outcome
    if (Exit.isFailure(transaction)) this.#told(Exit.failCause(Cause.map(transaction.cause, (fault) => this.#failureOf(fault))))
    else if (outcome instanceof EventStore.ConditionFailed) this.#told(Exit.fail(outcome))
    else if ("actual" in outcome) this.#told(Exit.fail(new EventStore.WrongRevision({ stream: this.#stream, actual: outcome.actual })))
    else this.#told(Exit.succeed(outcome))
  }

  #failureOf(fault: Fault): EventStore.AppendFailure {
    return fault.inDoubt ? new EventStore.AppendInDoubt({ stream: this.#stream, reason: fault.message }) : unavailable(fault)
  }
}

/**
 * Most followers are at the same position, right before the newest events. Events that this process has written, and the page that was read
 * last, are in memory, so they are not read for each follower. A kept page may end before the end of the log, but it has no gap.
 */
const subscriber = (log: SqliteLog, read: Read, head: Head): Service["subscribe"] => {
  let newest: { readonly after: EventStore.Position; readonly events: ReadonlyArray<EventStore.RecordedEvent> } | undefined
  // Suspended: a follower builds this effect before it waits for the events
  const pageAfter = (after: EventStore.Position): Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, EventStore.StoreUnavailable> =>
    Effect.suspend(() => {
      const written = log.justWritten(placeOf(after))
      if (written !== undefined) return Effect.succeed(written.events)
      if (newest?.after === after) return Effect.succeed(newest.events)
      return Effect.map(
        read(() => log.readAll(placeOf(after))),
        (events) => {
          if (events.length > 0) newest = { after, events }
          return events
        }
      )
    })
  const skipBy = ({ skip, ...selection }: EventStore.Subscription): Skip | undefined =>
    skip &&
    ((after) => {
      const written = log.justWritten(placeOf(after))
      if (written === undefined || written.mayMatch(selection)) return undefined
      return skip(after, written.end) ? written.end : undefined
    })
  return (after, subscription = {}) => follow(after, head, pageAfter, skipBy(subscription))
}

export const layer = (options: LogOptions): Layer.Layer<EventStore.EventStore, EventStore.StoreUnavailable> =>
  Layer.effect(EventStore.EventStore, make(options))
