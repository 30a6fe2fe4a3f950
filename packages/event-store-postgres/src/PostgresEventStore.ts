/** The event store on PostgreSQL. Appends to many streams share a transaction, which the server syncs before it answers. */
import { ClockGuard, EventStore, followPages, GroupCommit, type Head, Paging, type Skip, type StreamName } from "@millrace/event-sourcing"
import { Cause, Effect, Exit, Layer } from "effect"
import { isText } from "./BinaryArrays.ts"
import * as Connections from "./Connections.ts"
import { EVENTS } from "./EventTables.ts"
import { Fault, failing } from "./Fault.ts"
import { DEFAULT_SCHEMA, migrate } from "./Migrations.ts"
import * as Parts from "./Parts.ts"
import * as PostgresLog from "./PostgresLog.ts"
import { Recent } from "./Recent.ts"
import * as Server from "./Server.ts"
import * as Wake from "./Wake.ts"

export { parsePosition } from "@millrace/event-sourcing"

export interface PostgresEventStoreOptions extends Server.StoreOptions {
  /**
   * The address that is used to listen for appends of other processes: `url` by default. Behind a pooler in transaction mode, use the
   * address of the server itself, or `false`: then no notifications are sent, and subscriptions poll the log twenty times a second.
   */
  readonly listenUrl?: string | false
}

/** The most appends in a transaction. */
const GROUP = 1_000
/** Transactions under way at once: the server syncs one while it receives the next. */
const LANES = 2
/** The most snapshots in a transaction. */
const SNAPSHOTS = 100
/** How often the server is asked for its time. */
const ASK_TIME = "10 seconds"
/** The most reads that share a query. */
const QUESTIONS = 1_000

/** The only form of ids that PostgreSQL returns unchanged. */
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const unavailable = (fault: Fault) => new EventStore.StoreUnavailable({ reason: fault.message })

/** Makes the store on connections to a checked server; another store may share them. */
export const makeOn = Effect.fnUntraced(function* (
  connections: Connections.Connections,
  { url, schema = DEFAULT_SCHEMA, listenUrl = url, readOnly = false, deadline = 10_000 }: PostgresEventStoreOptions
) {
  yield* migrate(connections, schema, EVENTS, !readOnly)
  const log = PostgresLog.make(connections, schema, readOnly)
  const listening = listenUrl === false ? undefined : yield* Connections.settingsOf(listenUrl, deadline)
  const wake = yield* Wake.make(log.last, connections, schema, listening)
  const recent = new Recent()
  const groups = yield* groupsOf(log, recent, wake)
  const lookingOnly = new EventStore.StoreUnavailable({ reason: `${connections.where} was opened read-only` })

  const store = EventStore.EventStore.of({
    append: EventStore.appendBy(
      (stream, expected, events, told, conditions) => {
        const tooLarge = EventStore.tooLarge(stream, events)
        if (tooLarge !== undefined) return told(Exit.fail(tooLarge))
        if (readOnly) return told(Exit.fail(lookingOnly))
        const appended = { stream, before: EventStore.revisionOf(expected), events, ...(conditions === undefined ? {} : { conditions }) }
        const unfit = unfitness(appended)
        if (unfit !== undefined) return told(Exit.die(new Error(unfit)))
        groups.appends(appended, (exit) => told(appendedOf(stream, exit)))
      },
      { isConditional: true }
    ),
    readStream: (stream, options) => Paging.ofStream((at) => Effect.mapError(log.readStream(stream, at), unavailable), options),
    lastRevision: (stream) => Effect.mapError(groups.tails(stream), unavailable),
    readAll: (after) => Paging.ofLog(after, (seen) => Effect.mapError(log.readAll(seen), unavailable)),
    subscribe: (after, subscription = {}) => {
      const types = subscription.types && new Set(subscription.types)
      return followPages(
        after,
        wake.head,
        (seen) =>
          Effect.suspend((): Effect.Effect<Pick<EventStore.Batch, "events" | "position">, EventStore.StoreUnavailable> => {
            const written = recent.between(seen, wake.head.position)
            if (written !== undefined) return Effect.succeed({ events: written.flatMap(({ events }) => events) })
            const read = Effect.mapError(groups.parts({ after: seen, types }), unavailable)
            return Effect.map(read, ({ events, position }) => (position === seen ? { events } : { events, position }))
          }),
        skipBy(recent, wake.head, subscription)
      )
    },
    head: Effect.mapError(log.last, unavailable),
    loadSnapshot: (name) => Effect.mapError(log.loadSnapshot(name), unavailable),
    saveSnapshot: (name, snapshot) =>
      readOnly ? Effect.fail(lookingOnly) : Effect.mapError(groups.snapshots({ name, ...snapshot }), unavailable)
  })
  return readOnly ? store : yield* guarded(store, connections)
})

/** Skips what this process has written, if nothing of it is selected. */
const skipBy = (recent: Recent, head: Head, { skip, ...selection }: EventStore.Subscription): Skip | undefined =>
  skip &&
  ((after) => {
    const written = recent.between(after, head.position) ?? []
    const end = written.at(-1)?.end
    if (end === undefined || written.some((one) => one.mayMatch(selection))) return undefined
    return skip(after, end) ? end : undefined
  })

/** The result of an append, from the outcome of its transaction. */
const appendedOf = (
  stream: StreamName.StreamName,
  exit: Exit.Exit<PostgresLog.Outcome, Fault>
): Exit.Exit<EventStore.Appended, EventStore.AppendFailure> => {
  if (Exit.isFailure(exit)) return Exit.failCause(Cause.map(exit.cause, (fault) => appendFailure(stream, fault)))
  const outcome = exit.value
  if (outcome instanceof EventStore.ConditionFailed) return Exit.fail(outcome)
  if ("actual" in outcome) return Exit.fail(new EventStore.WrongRevision({ stream, ...outcome }))
  return Exit.succeed({ revision: outcome.revision, position: outcome.position })
}

const appendFailure = (stream: StreamName.StreamName, fault: Fault) =>
  fault.inDoubt ? new EventStore.AppendInDoubt({ stream, reason: fault.message }) : unavailable(fault)

/** The groups of requests that share transactions. Followers are woken once for each group of appends. */
const groupsOf = Effect.fnUntraced(function* (log: PostgresLog.PostgresLog, recent: Recent, wake: Wake.Wake) {
  const appends = yield* GroupCommit.makeSubmit({
    ...failing,
    send: (group: ReadonlyArray<PostgresLog.Append>) =>
      Effect.tap(log.append(group), (outcomes) => Effect.sync(() => recent.wrote(group, outcomes))),
    onEnd: () => {
      if (recent.last !== undefined) wake.appended(recent.last)
    },
    lanes: LANES,
    gathers: true,
    count: GROUP,
    size: ({ events }) => EventStore.appendChars(events),
    key: ({ stream }) => stream,
    // Appends that expect the same revision can share a transaction: one wins. An append that expects another's result waits for it
    isRival: (one, earlier) => one.before === earlier.before,
    joining: apart
  })
  const snapshots = yield* GroupCommit.make({
    ...failing,
    send: (group: ReadonlyArray<PostgresLog.NamedSnapshot>) => log.saveSnapshots(group),
    count: SNAPSHOTS,
    size: ({ data }) => data.length
  })
  const tails = yield* GroupCommit.make({
    ...failing,
    send: tailsOf(log),
    count: QUESTIONS
  })
  const parts = yield* GroupCommit.make({ ...failing, send: Parts.reader(log), lanes: LANES, count: 8 })
  return { appends, snapshots, tails, parts }
})

/**
 * Keeps an append apart from those that have its stream as a condition. In one transaction their order would not tell whether the condition
 * still held.
 */
const apart = () => {
  const appended = new Set<StreamName.StreamName>()
  const conditional = new Set<StreamName.StreamName>()
  return ({ stream, conditions = [] }: PostgresLog.Append): boolean => {
    if (conditional.has(stream) || conditions.some((condition) => appended.has(condition.stream))) return false
    appended.add(stream)
    for (const condition of conditions) conditional.add(condition.stream)
    return true
  }
}

/** Asks for each stream once: many callers ask for the same one, such as the prices, at the same time. */
const tailsOf = (log: PostgresLog.PostgresLog) => (names: ReadonlyArray<StreamName.StreamName>) => {
  const asked = [...new Set(names)]
  return Effect.map(log.tails(asked), (tails) => {
    const tailOf = new Map(asked.map((name, i) => [name, tails[i] ?? "noStream"]))
    return names.map((name): EventStore.ExpectedRevision => tailOf.get(name) ?? "noStream")
  })
}

/** The store with the clock check: it refuses the appends of a host whose clock is wrong. */
const guarded = (store: EventStore.EventStore["Service"], connections: Connections.Connections) =>
  ClockGuard.make(store, {
    ask: connections.read<{ readonly now: number }>("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now"),
    timeOf: ([row]) => (row === undefined ? Effect.fail(new Fault(`${connections.where} did not tell its time`)) : Effect.succeed(row.now)),
    every: ASK_TIME
  })

/** Why an append could not be read back unchanged; undefined if it can. */
const unfitness = ({ before, events }: PostgresLog.Append): string | undefined => {
  if (!Number.isSafeInteger(before) || before < -1) return `Not a revision: ${before}`
  const unfit = events.find((event) => !isFit(event))
  return unfit && `Not a valid event: its id must be a UUID in lower case, its texts well-formed and without NUL: ${unfit.id}`
}

const isFit = ({ id, type, data, metadata }: EventStore.EventData) => ID.test(id) && isText(type) && isText(data) && isText(metadata)

export const make = (options: PostgresEventStoreOptions) =>
  Effect.mapError(
    Effect.flatMap(Server.connect(options), (connections) => makeOn(connections, options)),
    unavailable
  )

export const layer = (options: PostgresEventStoreOptions): Layer.Layer<EventStore.EventStore, EventStore.StoreUnavailable> =>
  Layer.effect(EventStore.EventStore, make(options))
