/** Streams, events and readers for the contract of event stores. */
import assert from "node:assert/strict"
import { EventIds, EventStore, type StreamName } from "@millrace/event-sourcing"
import { Effect, Exit, type Semaphore, Stream } from "effect"
import { type Contract, failsafe, nth } from "./Contract.ts"

export type Store = EventStore.EventStore["Service"]
export type EventData = EventStore.EventData
export type Batch = readonly [EventData, ...Array<EventData>]

/** Tests of one store. */
export type StoreContract = Contract<Store>

// what is written

export const newId = Effect.map(EventIds, (ids) => ids(0))

export const freshStream = Effect.map(newId, (id): StreamName.StreamName => `suite-${id}`)

export const freshEvent = Effect.map(newId, (id): EventData => ({ id, type: "Happened", data: `{"id":"${id}"}`, metadata: "{}" }))

export const freshEvents = (count: number): Effect.Effect<Batch> =>
  Effect.gen(function* () {
    const first = yield* freshEvent
    return [first, ...(yield* Effect.replicateEffect(freshEvent, count - 1))]
  })

/** The same batch with other events, or in another order; never empty. */
export const change = ([first, ...rest]: Batch, into: (batch: Batch) => ReadonlyArray<EventData>): Batch => {
  const [head = first, ...tail] = into([first, ...rest])
  return [head, ...tail]
}

/** The events of a batch from one index up to another. */
export const slice = (batch: Batch, from: number, to: number): Batch => change(batch, (all) => all.slice(from, to))

/** The revision of the last of so many events. */
export const lastOf = (count: number): EventStore.ExpectedRevision => (count === 0 ? "noStream" : count - 1)

// what is read

export const ids = (events: ReadonlyArray<EventData>) => events.map(({ id }) => id)

export const contents = (events: ReadonlyArray<EventData>) =>
  events.map(({ id, type, data, metadata }): EventData => ({ id, type, data, metadata }))

export const readAllOf = (store: Store, name: StreamName.StreamName, options?: EventStore.ReadStreamOptions) =>
  Stream.runCollect(store.readStream(name, options))

export const ofStreams = (
  batches: Stream.Stream<EventStore.Batch, EventStore.StoreUnavailable>,
  names: Iterable<StreamName.StreamName>
) => {
  const ours = new Set(names)
  return batches.pipe(
    Stream.flatMap(({ events }) => Stream.fromIterable(events)),
    Stream.filter(({ stream }) => ours.has(stream))
  )
}

/** The next `count` events of these streams after a position, waited for. */
export const followed = (store: Store, after: EventStore.Position, names: Iterable<StreamName.StreamName>, count: number) =>
  failsafe(`${count} events`, Stream.runCollect(Stream.take(ofStreams(store.subscribe(after), names), count)))

/** Reads the log after a position until `isThere`: a log may show an event a moment after it was appended. */
export const readLog = (
  store: Store,
  after: EventStore.Position,
  name: StreamName.StreamName,
  isThere: (events: ReadonlyArray<EventStore.RecordedEvent>) => boolean
) => {
  const read: Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, EventStore.StoreUnavailable> = Effect.flatMap(
    Stream.runCollect(Stream.filter(store.readAll(after), ({ stream }) => stream === name)),
    (events) => (isThere(events) ? Effect.succeed(events) : Effect.andThen(Effect.sleep(5), read))
  )
  return failsafe("the log read", read)
}

export const ascends = (positions: ReadonlyArray<EventStore.Position>) =>
  positions.every((position, i) => i === 0 || position > nth(positions, i - 1))

export const wrongRevision = <E>(exit: Exit.Exit<unknown, E>): EventStore.WrongRevision => {
  assert(Exit.isFailure(exit), "it was appended")
  const [reason] = exit.cause.reasons
  assert(reason?._tag === "Fail" && reason.error instanceof EventStore.WrongRevision, `not a WrongRevision: ${String(exit)}`)
  return reason.error
}

/**
 * Appends to the end of the stream, wherever it is by then. An append that loses goes on under a permit of `losers`. Of the appends that
 * go on at a time one always wins, so the attempts of a crowd are bounded by its size times the permits.
 */
export const appendAnywhere = (store: Store, name: StreamName.StreamName, batch: Batch, losers: Semaphore.Semaphore) => {
  const again = (
    actual: EventStore.ExpectedRevision
  ): Effect.Effect<EventStore.Appended, EventStore.AppendInDoubt | EventStore.AppendTooLarge | EventStore.StoreUnavailable> =>
    Effect.catchTag(store.append(name, actual, batch), "WrongRevision", (lost) => again(lost.actual))
  return Effect.flatMap(store.lastRevision(name), (last) =>
    Effect.catchTag(store.append(name, last, batch), "WrongRevision", () =>
      losers.withPermit(Effect.flatMap(store.lastRevision(name), again))
    )
  )
}

/** Appends that go on at a time after they lost: enough for them to lose again. */
export const LOSERS = 2
