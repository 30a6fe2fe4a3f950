/**
 * A lease: at most one process on a state store does a piece of work. It is a row that the holder renews. A waiting process takes it over
 * after it saw the row unchanged for the whole `ttl`. Each process measures with its own monotonic clock; no two clocks are compared. A
 * host whose clock is wrong may not append events, so it leaves the lease to others.
 *
 * Two processes may still work at once for a short time, if a holder was paused or its work cannot be interrupted. So work under a lease
 * must be idempotent. Writes to the state store through {@link Held.write} are always safe. Another store can check {@link Held.token}:
 * it refuses a token lower than the highest it has seen.
 */
import { type Array, Brand, Clock, Duration, Effect, Option, Random, Schema, Semaphore } from "effect"
import { EventIds } from "./EventIds.ts"
import { EventStore } from "./EventStore.ts"
import { type Change, type Entry, StateConflict, StateStore, type StateUnavailable } from "./StateStore.ts"

/** A number that grows with each holder of a lease. */
export type FencingToken = number & Brand.Brand<"FencingToken">

const FencingToken = Brand.nominal<FencingToken>()

/** The lease could not be renewed in time, or another process holds it now. */
export class LeaseLost extends Schema.TaggedError<LeaseLost>()("LeaseLost", { lease: Schema.String }) {
  override get message(): string {
    return `The lease ${this.lease} was lost to another host`
  }
}

/** The held lease, which `work` receives. */
export interface Held {
  readonly token: FencingToken
  /**
   * Writes to the state store and renews the lease in one write, which fails if the lease is no longer ours. Returns the version that
   * every `put` now has.
   */
  readonly write: (changes: Array.NonEmptyReadonlyArray<Change>) => Effect.Effect<number, LeaseLost | StateConflict | StateUnavailable>
}

export interface Options {
  /**
   * The time without a renewal after which another process may take over: 15 seconds by default. The holder renews after each third of it.
   * After two thirds without success the lease is lost, so that a third is left to stop the work.
   */
  readonly ttl?: Duration.Input
  /** How often a waiting process reads the row: ten times in `ttl` by default. */
  readonly poll?: Duration.Input
}

const SPACE = "leases"

/** The row: the holder's id (null once released), and its `ttl` in milliseconds. */
const Row = Schema.fromJsonString(Schema.Struct({ holder: Schema.NullOr(Schema.String), ttl: Schema.Finite }))
const encodeRow = Schema.encodeSync(Row)
const decodeRow = Schema.decodeUnknownOption(Row)

const rowOf = (entry: Entry) => decodeRow(Buffer.from(entry.value).toString())

const elapsed = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

/**
 * Waits until the lease `name` is free, then runs `work` and keeps renewing the lease. If a renewal is not possible in time, the work is
 * interrupted and this fails with {@link LeaseLost}. While the state store is unavailable, this waits longer. The lease is released when
 * the work ends for any reason, and the next waiting process takes it at its next poll.
 */
export const hold =
  (name: string, options: Options = {}) =>
  <A, E, R>(work: (held: Held) => Effect.Effect<A, E, R>): Effect.Effect<A, E | LeaseLost, R | StateStore> =>
    Effect.gen(function* () {
      const tenure = new Tenure(yield* termsOf(name, options))
      const held = Effect.suspend(() => work(tenure.held))
      return yield* tenure.acquire.pipe(Effect.andThen(Effect.raceFirst(held, tenure.heartbeat)), Effect.ensuring(tenure.release))
    })

type Terms = Effect.Success<ReturnType<typeof termsOf>>

const termsOf = Effect.fnUntraced(function* (name: string, options: Options) {
  const clock = Option.getOrUndefined(yield* Effect.serviceOption(EventStore))?.clock
  const ttl = Duration.toMillis(options.ttl ?? "15 seconds")
  return {
    name,
    holder: (yield* EventIds)(yield* Clock.currentTimeMillis),
    store: yield* StateStore,
    /** Whether this host's clock is right. */
    mayWrite: clock === undefined ? Effect.succeed(true) : Effect.map(clock.status, ({ trouble }) => trouble === undefined),
    /** Allows one write at a time, because each expects the version of the one before it. */
    writing: yield* Semaphore.make(1),
    /** Milliseconds. */
    ttl,
    poll: options.poll === undefined ? ttl / 10 : Duration.toMillis(options.poll)
  }
})

/** A claim on a lease, from the first read of the row to the release. */
class Tenure {
  readonly #terms: Terms
  #version = 0
  /** Milliseconds of the monotonic clock. */
  #renewedAt = 0

  constructor(terms: Terms) {
    this.#terms = terms
  }

  get held(): Held {
    return { token: FencingToken(this.#version), write: (changes) => this.#write(changes) }
  }

  #put(to: string | null, expected: number | "absent"): Change {
    const value = Buffer.from(encodeRow({ holder: to, ttl: this.#terms.ttl }))
    return { _tag: "put", space: SPACE, key: this.#terms.name, value, expected }
  }

  #isMine(entry: Entry | undefined): entry is Entry {
    return entry !== undefined && Option.exists(rowOf(entry), (row) => row.holder === this.#terms.holder)
  }

  readonly #lost = Effect.suspend(() => Effect.fail(new LeaseLost({ lease: this.#terms.name })))

  /** None if the call failed or was not answered within a third of `ttl`. */
  #answered<A, E>(call: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>> {
    return Effect.option(Effect.timeout(call, this.#terms.ttl / 3))
  }

  /** Waits until the row is free. A row is free if its version has not changed for its whole `ttl` since we first saw it. */
  get acquire(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      let seen: { readonly version: number; readonly at: number } | undefined
      for (;;) {
        const look = yield* this.#answered(this.#terms.store.get(SPACE, this.#terms.name))
        const now = yield* elapsed
        // Jitter, so that waiting processes do not poll in step
        let wait = this.#terms.poll * (1 - (yield* Random.next) / 10)
        if (Option.isSome(look)) {
          const entry = look.value
          if (entry !== undefined && entry.version !== seen?.version) seen = { version: entry.version, at: now }
          const left = this.#left(entry, now - (seen?.at ?? now))
          if (left <= 0 && (yield* this.#terms.mayWrite)) {
            if (yield* this.#claim(entry, now)) return
          } else if (left > 0) wait = Math.min(wait, left)
        }
        yield* Effect.sleep(Math.ceil(wait))
      }
    })
  }

  /** Milliseconds until the row may be taken, given how long we have seen it unchanged. */
  #left(entry: Entry | undefined, unchangedFor: number): number {
    if (entry === undefined) return 0
    const row = Option.getOrElse(rowOf(entry), () => ({ holder: "unknown", ttl: this.#terms.ttl }))
    return row.holder === null || row.holder === this.#terms.holder ? 0 : row.ttl - unchangedFor
  }

  /** Whether the row is ours now. */
  #claim(entry: Entry | undefined, now: number): Effect.Effect<boolean> {
    const written = this.#answered(this.#terms.store.write([this.#put(this.#terms.holder, entry?.version ?? "absent")]))
    return Effect.map(written, (version) => {
      if (Option.isNone(version)) return false
      this.#version = version.value
      this.#renewedAt = now
      return true
    })
  }

  #renew(changes: ReadonlyArray<Change>): Effect.Effect<number, LeaseLost | StateConflict | StateUnavailable> {
    return Effect.gen({ self: this }, function* () {
      const now = yield* elapsed
      this.#version = yield* this.#terms.store.write([this.#put(this.#terms.holder, this.#version), ...changes])
      this.#renewedAt = now
      return this.#version
    })
  }

  #write(changes: ReadonlyArray<Change>): Effect.Effect<number, LeaseLost | StateConflict | StateUnavailable> {
    const isOfTheRow = (error: { readonly _tag: string }) =>
      error instanceof StateConflict && error.space === SPACE && error.key === this.#terms.name
    // An earlier renewal without an answer may have been written: then the row has a newer version, but is still ours
    const recover = Effect.flatMap(this.#terms.store.get(SPACE, this.#terms.name), (entry) => {
      if (!this.#isMine(entry)) return this.#lost
      this.#version = entry.version
      return Effect.catchIf(this.#renew(changes), isOfTheRow, () => this.#lost)
    })
    return this.#terms.writing.withPermit(Effect.catchIf(this.#renew(changes), isOfTheRow, () => recover))
  }

  /** Renews the lease until it is lost, then fails. */
  get heartbeat(): Effect.Effect<never, LeaseLost> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        if (!(yield* this.#terms.mayWrite)) return yield* this.#lost
        const now = yield* elapsed
        const due = this.#renewedAt + this.#terms.ttl / 3 - now
        if (due > 0) {
          yield* Effect.sleep(Math.ceil(due))
          continue
        }
        const left = this.#renewedAt + (this.#terms.ttl * 2) / 3 - now
        if (left <= 0) return yield* this.#lost
        const renewed = yield* this.#write([]).pipe(
          Effect.as(true),
          Effect.catchTag("StateUnavailable", () => Effect.succeed(false)),
          Effect.catchTag("StateConflict", () => this.#lost),
          Effect.timeoutOrElse({ duration: left, orElse: () => this.#lost })
        )
        if (!renewed) yield* Effect.sleep(Math.ceil(Math.min(left, this.#terms.ttl / 12)))
      }
    })
  }

  /** Releases the lease, also after an interrupted acquisition. If that fails, the lease expires after its `ttl`. */
  get release(): Effect.Effect<void> {
    return Effect.flatMap(this.#terms.store.get(SPACE, this.#terms.name), (entry) =>
      this.#isMine(entry) ? this.#terms.store.write([this.#put(null, entry.version)]) : Effect.void
    ).pipe(Effect.timeoutOption(this.#terms.ttl / 3), Effect.ignore)
  }
}

/** Holds the lease for ever: `work` starts again whenever it has ended, failed or lost the lease. */
export const keep =
  (name: string, options: Options = {}) =>
  <A, E, R>(work: (held: Held) => Effect.Effect<A, E, R>): Effect.Effect<never, never, R | StateStore> => {
    const once = hold(name, options)(work)
    return once.pipe(
      Effect.tapDefect((defect) => Effect.logError(`Lease ${name}:`, defect)),
      Effect.exit,
      // The pause keeps work that ends at once from spinning
      Effect.andThen(Effect.sleep("100 millis")),
      Effect.forever
    )
  }
