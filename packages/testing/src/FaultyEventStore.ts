/**
 * An event store as a bad network and a bad day show it: it wraps a real one and loses, delays, doubts and refuses, by a plan
 * ("the third append gets this fault") or by chance. Whatever it answers, a store may answer: what is built on it must cope.
 *
 * Under a test clock and a seed it does the same each time, and its trace says what it did.
 */
import { EventIds, EventStore, HashChain, type StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, Layer, Stream } from "effect"
import * as SeededRandom from "./SeededRandom.ts"

type Service = EventStore.EventStore["Service"]

/**
 * What happens to an append:
 * - `before`: `StoreUnavailable`, nothing is written
 * - `after`: it reaches the store, then the answer is lost: `AppendInDoubt`
 * - `lost`: it never reaches the store: `AppendInDoubt`
 * - `unanswered`: `AppendInDoubt` while it is still on its way; it reaches the store up to `lateBy` later, when it may still fit
 * - `silent`: no answer at all, and nothing is written: hangs until it is interrupted
 * - `conflict`: the `rival` writes first, so that the append comes too late
 */
export type Fault = "before" | "after" | "lost" | "unanswered" | "silent" | "conflict"

/** The faults that end by themselves and need no rival. */
export const faults = ["before", "after", "lost", "unanswered"] as const satisfies ReadonlyArray<Fault>

/** Writes to the stream from elsewhere, straight into the store that is wrapped; see {@link rival}. */
export type Rival = (store: Service, stream: StreamName.StreamName) => Effect.Effect<unknown, unknown>

export interface Options {
  /** What happens to which call, counted from 1. An append sent again counts again; all other calls are counted together. */
  readonly plan?: {
    readonly appends?: Readonly<Record<number, Fault>>
    /** Those that end in `StoreUnavailable`. */
    readonly others?: ReadonlyArray<number>
  }
  /** Probability of each fault, for each append that the plan does not name. */
  readonly rates?: Readonly<Partial<Record<Fault, number>>>
  /** Probability that a call other than an append ends in `StoreUnavailable`; one that streams may break off anywhere. */
  readonly unavailable?: number
  /** Longest wait before a call reaches the store, and again before its answer is heard: milliseconds, 0 by default. */
  readonly delay?: number
  /** Longest time from an `unanswered` append to its arrival at the store: milliseconds, 1,000 by default. */
  readonly lateBy?: number
  readonly rival?: Rival
  readonly random?: SeededRandom.SeededRandom
}

/** One thing that happened. */
export interface Entry {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly call: keyof Service
  /** As {@link Options.plan} counts. */
  readonly count: number
  /** Empty for a call that is about the whole log. */
  readonly stream: string
  /** The fault; or `ok`, or the tag of the store's own error, after `arrived` when nobody waited for it any more. */
  readonly outcome: string
}

export interface FaultyEventStore extends Service {
  /** Every append and every fault so far, in order. */
  readonly trace: ReadonlyArray<Entry>
  /** From now on it serves at once and without faults. Unanswered appends still arrive. */
  readonly calm: () => void
}

export const make = (store: Service, options: Options = {}): FaultyEventStore => {
  const { plan = {}, rates = {}, unavailable = 0, delay = 0, lateBy = 1_000, random = SeededRandom.make(0) } = options
  const planned = new Map(Object.entries(plan.appends ?? {}).map(([count, fault]) => [Number(count), fault]))
  if (options.rival === undefined && (rates.conflict !== undefined || [...planned.values()].includes("conflict")))
    throw new Error("A conflict needs a rival to write first")
  const rival = options.rival ?? (() => Effect.void)

  const trace: Array<Entry> = []
  let calm = false
  let appends = 0
  let others = 0

  const note = (entry: Omit<Entry, "at">) => Effect.map(Clock.currentTimeMillis, (at) => void trace.push({ at, ...entry }))

  const pause = Effect.suspend(() => (calm || delay === 0 ? Effect.void : Effect.sleep(random.below(delay + 1))))
  const paused = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    pause.pipe(Effect.andThen(Effect.exit(effect)), Effect.tap(pause), Effect.flatten)

  /** The same draws whatever the plan and the rates say, so that a changed rate shifts nothing else. */
  const draw = (count: number): Fault | undefined => {
    let drawn = random.next()
    if (calm) return undefined
    const fault = planned.get(count)
    if (fault !== undefined) return fault
    for (const fault of ["before", "after", "lost", "unanswered", "silent", "conflict"] as const) {
      drawn -= rates[fault] ?? 0
      if (drawn < 0) return fault
    }
    return undefined
  }

  const append: Service["append"] = (stream, expected, events) =>
    Effect.suspend(() => {
      const count = ++appends
      const fault = draw(count)
      const late = 1 + random.below(lateBy)
      const send = store.append(stream, expected, events)
      const tell = (outcome: string) => note({ call: "append", count, stream, outcome })
      const arrive = (arrived: string) =>
        Effect.tapError(
          Effect.tap(send, () => tell(`${arrived}ok`)),
          ({ _tag }) => tell(arrived + _tag)
        )
      const inDoubt = Effect.suspend(() => Effect.fail(new EventStore.AppendInDoubt({ stream, reason: fault ?? "" })))
      const happens = Effect.suspend((): ReturnType<Service["append"]> => {
        switch (fault) {
          case undefined:
            return arrive("")
          case "before":
            return Effect.fail(new EventStore.StoreUnavailable({ reason: fault }))
          case "after":
            return Effect.andThen(Effect.ignore(arrive("")), inDoubt)
          case "lost":
            return inDoubt
          case "unanswered":
            return Effect.andThen(Effect.forkDetach(Effect.ignore(Effect.delay(arrive("arrived "), late))), inDoubt)
          case "silent":
            return Effect.never
          case "conflict":
            return Effect.andThen(Effect.ignore(rival(store, stream)), arrive(""))
        }
      })
      return paused(fault === undefined ? happens : Effect.andThen(tell(fault), happens))
    })

  /** The failure that this call is to meet, if any. */
  const fate = (call: keyof Service, stream: string): Effect.Effect<EventStore.StoreUnavailable | undefined> =>
    Effect.suspend(() => {
      const count = ++others
      const drawn = random.chance(unavailable)
      if (calm || !(drawn || plan.others?.includes(count))) return Effect.undefined
      return Effect.as(note({ call, count, stream, outcome: "unavailable" }), new EventStore.StoreUnavailable({ reason: call }))
    })

  const other = <A, E>(call: keyof Service, stream: string, effect: Effect.Effect<A, E>) =>
    paused(
      Effect.flatMap(
        fate(call, stream),
        (failure): Effect.Effect<A, E | EventStore.StoreUnavailable> => (failure ? Effect.fail(failure) : effect)
      )
    )

  const streamed = <A>(call: keyof Service, stream: string, elements: Stream.Stream<A, EventStore.StoreUnavailable>) =>
    Stream.unwrap(
      Effect.map(Effect.tap(fate(call, stream), pause), (failure) =>
        failure ? Stream.concat(Stream.take(elements, random.below(4)), Stream.fail(failure)) : elements
      )
    )

  return {
    append,
    readStream: (stream, how) => streamed("readStream", stream, store.readStream(stream, how)),
    lastRevision: (stream) => other("lastRevision", stream, store.lastRevision(stream)),
    readAll: (after) => streamed("readAll", "", store.readAll(after)),
    subscribe: (after) => streamed("subscribe", "", store.subscribe(after)),
    head: other("head", "", store.head),
    loadSnapshot: (name) => other("loadSnapshot", name, store.loadSnapshot(name)),
    saveSnapshot: (name, snapshot) => other("saveSnapshot", name, store.saveSnapshot(name, snapshot)),
    trace,
    calm: () => {
      calm = true
    }
  }
}

/** Puts the faults between a store and whoever asks for one. */
export const layer = (options?: Options): Layer.Layer<EventStore.EventStore, never, EventStore.EventStore> =>
  Layer.effect(
    EventStore.EventStore,
    Effect.map(EventStore.EventStore, (store) => make(store, options))
  )

/** A rival that appends this event, sealed into the stream's hash chain as each of its writers does. */
export const rival =
  (event: (stream: StreamName.StreamName) => { readonly type: string; readonly data: string }): Rival =>
  (store, stream) =>
    Effect.gen(function* () {
      const newId = yield* EventIds
      const [last] = yield* Stream.runCollect(store.readStream(stream, { direction: "backwards", limit: 1 }))
      const now = Math.max(yield* Clock.currentTimeMillis, last === undefined ? 0 : Date.parse(HashChain.atOf(last)))
      const hash = last === undefined ? HashChain.start(stream) : HashChain.hashOf(last)
      const revision = last === undefined ? 0 : last.revision + 1
      const sealed = HashChain.seal(hash, stream, revision, { id: newId(now), ...event(stream) }, new Date(now).toISOString(), "{}")
      return yield* store.append(stream, last === undefined ? "noStream" : last.revision, [sealed])
    })

/** The trace as lines, for the message of a test that failed. */
export const format = (trace: ReadonlyArray<Entry>): string =>
  trace.map(({ at, call, count, stream, outcome }) => `${at} ms: ${call} ${count} ${stream} ${outcome}`).join("\n")
