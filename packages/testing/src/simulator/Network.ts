/**
 * The stores as a host sees them: far away. What it asks runs outside of it, so that a request which was sent arrives though its
 * sender died, and an answer that comes to a dead host is heard by nobody.
 */
import { BlobStore } from "@millrace/core"
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Stream } from "effect"
import * as FaultyEventStore from "../FaultyEventStore.ts"
import type * as SeededRandom from "../SeededRandom.ts"
import type { Faults } from "./Faults.ts"
import type { Process, World } from "./World.ts"

type Events = EventStore.EventStore["Service"]
type States = StateStore.StateStore["Service"]

/** Where a host may die while it writes: before it asked, when it has asked, when the store is done. */
export type Stage = "before" | "sent" | "arrived"

export interface Line {
  readonly world: World
  readonly process: Process
  /** Told of every write, at each stage. */
  readonly writes: (stage: Stage) => void
}

const across = <A, E>({ world, process }: Line, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  world.outside.ask(process, effect, Context.empty())

const written = <A, E>(line: Line, write: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    line.writes("before")
    if (!line.process.alive) return Effect.never
    const stages = Effect.sync(() => line.writes("sent")).pipe(
      Effect.andThen(write),
      Effect.onExit(() => Effect.sync(() => line.writes("arrived")))
    )
    return across(line, stages)
  })

export const events = (line: Line, store: Events): Events => {
  // A subscription is woken by whoever appends; it goes on when its own process does
  const arrives = Effect.callback<void>((resume) => line.world.schedule(line.process, () => resume(Effect.void)))
  return {
    append: (stream, expected, events) => written(line, store.append(stream, expected, events)),
    readStream: (stream, options) => Stream.unwrap(Effect.as(arrives, store.readStream(stream, options))),
    lastRevision: (stream) => across(line, store.lastRevision(stream)),
    readAll: (after) => Stream.unwrap(Effect.as(arrives, store.readAll(after))),
    subscribe: (after) => Stream.mapEffect(store.subscribe(after), (batch) => Effect.as(arrives, batch)),
    head: across(line, store.head),
    loadSnapshot: (name) => across(line, store.loadSnapshot(name)),
    saveSnapshot: (name, snapshot) => across(line, store.saveSnapshot(name, snapshot))
  }
}

export const states = (line: Line, store: States): States => ({
  get: (space, key) => across(line, store.get(space, key)),
  list: (space, options) => across(line, store.list(space, options)),
  write: (changes) => written(line, store.write(changes))
})

/** The event store on a bad day, and what cuts it off for a while: then nothing can be read, and no append is answered, though some may arrive. */
export const faultyEvents = (store: Events, { events, delay, lateBy }: Faults, random: SeededRandom.SeededRandom) => {
  const usual = { before: events / 4, after: events / 4, lost: events / 4, unanswered: events / 4 }
  const outages = {
    whole: { before: 0, after: 0, lost: 1, unanswered: 0 },
    oneWay: { before: 0, after: 0.4, lost: 0.4, unanswered: 0.2 }
  }
  const rates = { ...usual }
  let isCut = false
  const reads = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | EventStore.StoreUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | EventStore.StoreUnavailable> => (isCut ? unreachable : effect))
  const streamed = <A>(stream: Stream.Stream<A, EventStore.StoreUnavailable>) => Stream.unwrap(reads(Effect.succeed(stream)))
  const faulty = FaultyEventStore.make(
    {
      ...store,
      readStream: (stream, options) => streamed(store.readStream(stream, options)),
      readAll: (after) => streamed(store.readAll(after)),
      lastRevision: (stream) => reads(store.lastRevision(stream)),
      head: reads(store.head)
    },
    { random, rates, unavailable: events / 2, delay, lateBy }
  )
  const change = (to: typeof rates, cut: boolean) =>
    Effect.sync(() => {
      Object.assign(rates, to)
      isCut = cut
    })
  const cut = (millis: number, how: keyof typeof outages) =>
    change(outages[how], true).pipe(Effect.andThen(Effect.sleep(millis)), Effect.andThen(change(usual, false)))
  const calm = () => {
    isCut = false
    faulty.calm()
  }
  return { faulty, cut, calm }
}

const unreachable = Effect.fail(new EventStore.StoreUnavailable({ reason: "unreachable" }))

export interface FaultyStateStore extends States {
  /** From now on it serves without faults. */
  readonly calm: () => void
}

/** A state store that fails before it did what it was asked, or after, or takes its time. */
export const faultyStates = (
  store: States,
  { states, slow, delay }: Faults,
  random: SeededRandom.SeededRandom,
  note: (what: string) => void
): FaultyStateStore => {
  let calm = false
  const call = <A, E>(name: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E | StateStore.StateUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | StateStore.StateUnavailable> => {
      const drawn = random.next()
      const isSlow = random.chance(slow) && !calm
      const wait = isSlow ? random.below(60_000) : random.below(delay + 1)
      const fault = calm ? undefined : drawn < states / 2 ? "before" : drawn < states ? "after" : undefined
      if (isSlow) note(`${name} takes ${wait} ms`)
      if (fault !== undefined) note(`${name} fails ${fault}`)
      const unavailable = Effect.suspend(() => Effect.fail(new StateStore.StateUnavailable({ reason: name })))
      const outcome: Effect.Effect<A, E | StateStore.StateUnavailable> =
        fault === undefined ? effect : fault === "before" ? unavailable : Effect.andThen(Effect.exit(effect), unavailable)
      return wait === 0 ? outcome : Effect.delay(outcome, wait)
    })
  return {
    get: (space, key) => call(`state get ${space}`, store.get(space, key)),
    list: (space, options) => call(`state list ${space}`, store.list(space, options)),
    write: (changes) => call(`state write ${changes[0].space}`, store.write(changes)),
    calm: () => {
      calm = true
    }
  }
}

/** What is on the shelf of all hosts, by name. */
export type Blobs = Map<string, { readonly bytes: Uint8Array; readonly at: number }>

/** The common shelf, from a host that is far away from it: it fails and is slow as the state store is. */
export const shelf = (
  line: Line,
  blobs: Blobs,
  { states, delay }: Faults,
  random: SeededRandom.SeededRandom,
  isCalm: () => boolean
): BlobStore.Shelf => {
  const call = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | BlobStore.BlobUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | BlobStore.BlobUnavailable> => {
      const drawn = random.next()
      const wait = random.below(delay + 1)
      const unavailable = Effect.suspend(() => Effect.fail(new BlobStore.BlobUnavailable({ reason: "drawn" })))
      const fails = !isCalm() && drawn < states
      const outcome: Effect.Effect<A, E | BlobStore.BlobUnavailable> = !fails
        ? effect
        : drawn < states / 2
          ? unavailable
          : Effect.andThen(Effect.exit(effect), unavailable)
      return wait === 0 ? outcome : Effect.delay(outcome, wait)
    })
  return {
    write: (fill) =>
      Effect.gen(function* () {
        const pieces: Array<Uint8Array> = []
        const blob = yield* fill((bytes) => Effect.sync(() => void pieces.push(bytes)))
        const put = Effect.map(Clock.currentTimeMillis, (at) => void blobs.set(blob.id, { bytes: Buffer.concat(pieces), at }))
        yield* written(line, call(put))
        return blob
      }),
    read: (id) =>
      across(
        line,
        call(
          Effect.suspend((): Effect.Effect<BlobStore.Source, BlobStore.BlobNotFound> => {
            const bytes = blobs.get(id)?.bytes
            if (bytes === undefined) return Effect.fail(new BlobStore.BlobNotFound({ id }))
            const read = (position: number, length: number) => Effect.sync(() => bytes.subarray(position, position + length))
            return Effect.succeed({ storedBytes: bytes.length, read })
          })
        )
      ),
    remove: (id) => written(line, call(Effect.sync(() => void blobs.delete(id)))),
    list: Stream.suspend(() => Stream.fromIterable([...blobs].map(([id, { at, bytes }]) => ({ id, at, storedBytes: bytes.length })))),
    tidy: () => Effect.succeed(0)
  }
}
