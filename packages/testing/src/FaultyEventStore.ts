/**
 * An event store with faults. It wraps a real store and loses, delays or refuses calls, by a plan ("the third append gets this fault") or by
 * chance. A real store may give any of these answers, so the users of a store must cope with them.
 *
 * Under a test clock and with a seed it does the same each time. Its trace records what it did.
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
 * - `unanswered`: `AppendInDoubt`; it reaches the store up to `lateBy` later, and is written if its revision still fits
 * - `silent`: nothing is written, and no answer comes until the call is interrupted
 * - `conflict`: the `rival` writes first, so the revision does not fit
 */
export type Fault = "before" | "after" | "lost" | "unanswered" | "silent" | "conflict"

/** The faults that return by themselves and need no rival. */
export const faults = ["before", "after", "lost", "unanswered"] as const satisfies ReadonlyArray<Fault>

/** Writes to the stream from elsewhere, directly into the wrapped store; see {@link rival}. */
export type Rival = (store: Service, stream: StreamName.StreamName) => Effect.Effect<unknown, unknown>

export interface Options {
  /** Planned faults by the number of the call, from 1. A repeated append counts again; all other calls are counted together. */
  readonly plan?: {
    readonly appends?: Readonly<Record<number, Fault>>
    /** Calls other than appends that fail with `StoreUnavailable`. */
    readonly others?: ReadonlyArray<number>
  }
  /** Probability of each fault, for appends that the plan does not name. */
  readonly rates?: Readonly<Partial<Record<Fault, number>>>
  /** Probability that a call other than an append fails with `StoreUnavailable`; a stream may fail in the middle. */
  readonly unavailable?: number
  /** The longest delay before a call reaches the store, and again before its answer arrives: milliseconds, 0 by default. */
  readonly delay?: number
  /** The longest time until an `unanswered` append reaches the store: milliseconds, 1,000 by default. */
  readonly lateBy?: number
  readonly rival?: Rival
  readonly random?: SeededRandom.SeededRandom
}

/** One append, or one fault. */
export interface Entry {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly call: keyof Service
  /** As {@link Options.plan} counts. */
  readonly count: number
  /** Empty for a call about the whole log. */
  readonly stream: string
  /** The fault; or `ok` or the tag of the store's error, after `arrived` if the append was unanswered. */
  readonly outcome: string
}

export interface FaultyEventStore extends Service {
  /** Every append and every fault so far, in order. */
  readonly trace: ReadonlyArray<Entry>
  /** Ends all faults and delays. Unanswered appends still arrive. */
  readonly calm: () => void
}

/** The store with these faults. Throws if a conflict is asked for without a rival. */
export const make = (store: Service, options: Options = {}): FaultyEventStore => {
  const faults = new Injector(options)
  return {
    append: EventStore.wrapAppend(store.append, (...of) => faults.append(store, of[0], store.append(...of))),
    readStream: (stream, how) => faults.streamed("readStream", stream, store.readStream(stream, how)),
    lastRevision: (stream) => faults.other("lastRevision", stream, store.lastRevision(stream)),
    readAll: (after) => faults.streamed("readAll", "", store.readAll(after)),
    subscribe: (...of) => faults.streamed("subscribe", "", store.subscribe(...of)),
    head: faults.other("head", "", store.head),
    loadSnapshot: (name) => faults.other("loadSnapshot", name, store.loadSnapshot(name)),
    saveSnapshot: (name, snapshot) => faults.other("saveSnapshot", name, store.saveSnapshot(name, snapshot)),
    trace: faults.trace,
    calm: () => {
      faults.isCalm = true
    }
  }
}

const KINDS = [...faults, "silent", "conflict"] as const satisfies ReadonlyArray<Fault>

type Append = ReturnType<Service["append"]>

/** Decides which call meets which fault, and records it. */
class Injector {
  readonly trace: Array<Entry> = []
  isCalm = false
  readonly #options: Options
  readonly #random: SeededRandom.SeededRandom
  #appends = 0
  #others = 0

  constructor(options: Options) {
    this.#options = options
    this.#random = options.random ?? SeededRandom.make(0)
    const needsRival = options.rates?.conflict !== undefined || Object.values(options.plan?.appends ?? {}).includes("conflict")
    if (needsRival && options.rival === undefined) throw new Error("A conflict needs a rival to write first")
  }

  append(store: Service, stream: StreamName.StreamName, send: Append): Append {
    return Effect.suspend(() => {
      const count = ++this.#appends
      const fault = this.#draw(count)
      const late = 1 + this.#random.below(this.#options.lateBy ?? 1_000)
      const note = (outcome: string) => this.#note({ call: "append", count, stream, outcome })
      const arrive = (prefix: string) => {
        const arrived = Effect.tap(send, () => note(`${prefix}ok`))
        return Effect.tapError(arrived, ({ _tag }) => note(prefix + _tag))
      }
      const happens = Effect.suspend(() => this.#happen(fault, store, stream, arrive, late))
      return this.#paused(fault === undefined ? happens : Effect.andThen(note(fault), happens))
    })
  }

  #happen(
    fault: Fault | undefined,
    store: Service,
    stream: StreamName.StreamName,
    arrive: (prefix: string) => Append,
    late: number
  ): Append {
    const inDoubt = Effect.suspend(() => Effect.fail(new EventStore.AppendInDoubt({ stream, reason: fault ?? "" })))
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
        return Effect.andThen(Effect.ignore(this.#options.rival?.(store, stream) ?? Effect.void), arrive(""))
    }
  }

  other<A, E>(call: keyof Service, stream: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E | EventStore.StoreUnavailable> {
    const happens = (failure: EventStore.StoreUnavailable | undefined): Effect.Effect<A, E | EventStore.StoreUnavailable> =>
      failure === undefined ? effect : Effect.fail(failure)
    return this.#paused(Effect.flatMap(this.#failure(call, stream), happens))
  }

  streamed<A>(call: keyof Service, stream: string, elements: Stream.Stream<A, EventStore.StoreUnavailable>) {
    return Stream.unwrap(
      Effect.map(Effect.tap(this.#failure(call, stream), this.#pause), (failure) =>
        failure ? Stream.concat(Stream.take(elements, this.#random.below(4)), Stream.fail(failure)) : elements
      )
    )
  }

  readonly #pause = Effect.suspend(() => {
    const { delay = 0 } = this.#options
    return this.isCalm || delay === 0 ? Effect.void : Effect.sleep(this.#random.below(delay + 1))
  })

  #paused<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return this.#pause.pipe(Effect.andThen(Effect.exit(effect)), Effect.tap(this.#pause), Effect.flatten)
  }

  /** The fault of this append. Always draws once, so that a changed plan or rate shifts nothing else. */
  #draw(count: number): Fault | undefined {
    const { plan, rates = {} } = this.#options
    let drawn = this.#random.next()
    if (this.isCalm) return undefined
    const planned = plan?.appends?.[count]
    if (planned !== undefined) return planned
    for (const fault of KINDS) {
      drawn -= rates[fault] ?? 0
      if (drawn < 0) return fault
    }
    return undefined
  }

  /** The failure of this call, if any. */
  #failure(call: keyof Service, stream: string): Effect.Effect<EventStore.StoreUnavailable | undefined> {
    return Effect.suspend(() => {
      const { plan, unavailable = 0 } = this.#options
      const count = ++this.#others
      const drawn = this.#random.chance(unavailable)
      if (this.isCalm || !(drawn || plan?.others?.includes(count))) return Effect.undefined
      return Effect.as(this.#note({ call, count, stream, outcome: "unavailable" }), new EventStore.StoreUnavailable({ reason: call }))
    })
  }

  #note(entry: Omit<Entry, "at">): Effect.Effect<void> {
    return Effect.map(Clock.currentTimeMillis, (at) => void this.trace.push({ at, ...entry }))
  }
}

/** Replaces the event store by one with faults. */
export const layer = (options?: Options): Layer.Layer<EventStore.EventStore, never, EventStore.EventStore> =>
  Layer.effect(
    EventStore.EventStore,
    Effect.map(EventStore.EventStore, (store) => make(store, options))
  )

/** A rival that appends this event, sealed into the stream's hash chain as every writer does. */
export const rival =
  (event: (stream: StreamName.StreamName) => { readonly type: string; readonly data: string }): Rival =>
  (store, stream) =>
    Effect.gen(function* () {
      const newId = yield* EventIds
      const [last] = yield* Stream.runCollect(store.readStream(stream, { direction: "backwards", limit: 1 }))
      const now = Math.max(yield* Clock.currentTimeMillis, last === undefined ? 0 : HashChain.timeOf(last))
      const hash = last === undefined ? HashChain.start(stream) : HashChain.hashOf(last)
      const revision = last === undefined ? 0 : last.revision + 1
      const sealed = HashChain.seal(hash, stream, revision, { id: newId(now), ...event(stream) }, new Date(now).toISOString(), "{}")
      return yield* store.append(stream, last === undefined ? "noStream" : last.revision, [sealed])
    })

/** The trace as lines, for the message of a failed test. */
export const format = (trace: ReadonlyArray<Entry>): string =>
  trace.map(({ at, call, count, stream, outcome }) => `${at} ms: ${call} ${count} ${stream} ${outcome}`).join("\n")
