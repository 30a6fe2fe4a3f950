/**
 * A lease: leave to be the only one that works at something, among all processes on one state store. It is a row that its holder
 * renews; whoever saw it unrenewed for the lease's whole time takes it over. No two clocks are ever compared: each side measures
 * with its own, monotonic one. A host whose clock is wrong, and that therefore writes no events, leaves it to others.
 *
 * A lease makes work rarely done twice, not never: a holder that was paused, or whose work cannot be interrupted, may still act
 * while the next one has begun. So work under a lease must be idempotent. What is written to the state store through
 * {@link Held.write} is safe regardless; other stores can be given {@link Held.token} and refuse an older one than they have seen.
 */
import { type Array, Brand, Clock, Duration, Effect, Option, Random, Schema, Semaphore } from "effect"
import { EventIds } from "./EventIds.ts"
import { EventStore } from "./EventStore.ts"
import { type Change, type Entry, StateConflict, StateStore, type StateUnavailable } from "./StateStore.ts"

/** Greater for each later holder of a lease. */
export type FencingToken = number & Brand.Brand<"FencingToken">

const FencingToken = Brand.nominal<FencingToken>()

/** The lease could not be renewed in time, or another holds it by now. */
export class LeaseLost extends Schema.TaggedError<LeaseLost>()("LeaseLost", { lease: Schema.String }) {}

/** What a holder has in hand while its work runs. */
export interface Held {
  readonly token: FencingToken
  /**
   * Writes to the state store together with a renewal: all of it only if the lease is still ours at that very moment, nothing
   * otherwise. Answers the version that every `put` now has.
   */
  readonly write: (changes: Array.NonEmptyReadonlyArray<Change>) => Effect.Effect<number, LeaseLost | StateConflict | StateUnavailable>
}

export interface Options {
  /**
   * After how long without a renewal another may take over: 15 seconds by default. It is renewed each third of it, and given up by
   * its holder at two thirds, so that a third is left to stop in.
   */
  readonly ttl?: Duration.Input
  /** How often those who wait look whether it was released: by default ten times in `ttl`. */
  readonly poll?: Duration.Input
}

const SPACE = "leases"

/** The row: a holder's id for one tenure, or nobody, and the time it claims, in milliseconds. */
const Row = Schema.fromJsonString(Schema.Struct({ holder: Schema.NullOr(Schema.String), ttl: Schema.Finite }))
const encodeRow = Schema.encodeSync(Row)
const decodeRow = Schema.decodeUnknownOption(Row)

const rowOf = (entry: Entry) => decodeRow(Buffer.from(entry.value).toString())

const elapsed = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

/**
 * Waits until the lease `name` is free, then runs `work`, renewing all the while. The work is interrupted and this fails with
 * {@link LeaseLost} when it could not be renewed; a state store out of order only prolongs the wait. However the work ends, the
 * lease is released, and whoever waits has it at its next look.
 */
export const hold =
  (name: string, { ttl: ttlOption = "15 seconds", poll: pollOption }: Options = {}) =>
  <A, E, R>(work: (held: Held) => Effect.Effect<A, E, R>): Effect.Effect<A, E | LeaseLost, R | StateStore> =>
    Effect.gen(function* () {
      const store = yield* StateStore
      const ids = yield* EventIds
      const permit = yield* Semaphore.make(1)
      const ttl = Duration.toMillis(ttlOption)
      const poll = pollOption === undefined ? ttl / 10 : Duration.toMillis(pollOption)
      const holder = ids(yield* Clock.currentTimeMillis)

      const put = (to: string | null, expected: number | "absent"): Change => ({
        _tag: "put",
        space: SPACE,
        key: name,
        value: Buffer.from(encodeRow({ holder: to, ttl })),
        expected
      })
      const isMine = (entry: Entry | undefined): entry is Entry =>
        entry !== undefined && Option.exists(rowOf(entry), (row) => row.holder === holder)

      /** Nothing when it failed, or is not heard of for too long. */
      const answered = <A, E>(call: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>> => Effect.option(Effect.timeout(call, ttl / 3))

      const clock = Option.getOrUndefined(yield* Effect.serviceOption(EventStore))?.clock
      const mayWrite = clock === undefined ? Effect.succeed(true) : Effect.map(clock.status, ({ trouble }) => trouble === undefined)

      let version = 0
      let renewedAt = 0

      /** A row counts as abandoned when its version stayed the same for its whole time since we first saw it. */
      const acquire = Effect.gen(function* () {
        let seen: { readonly version: number; readonly at: number } | undefined
        for (;;) {
          const look = yield* answered(store.get(SPACE, name))
          const now = yield* elapsed
          // Not in step with the others that wait
          let wait = poll * (1 - (yield* Random.next) / 10)
          if (Option.isSome(look)) {
            const entry = look.value
            if (entry !== undefined && entry.version !== seen?.version) seen = { version: entry.version, at: now }
            const row = entry === undefined ? undefined : Option.getOrElse(rowOf(entry), () => ({ holder: "unknown", ttl }))
            const left = row === undefined || row.holder === null || row.holder === holder ? 0 : row.ttl - (now - (seen?.at ?? now))
            if (left <= 0 && (yield* mayWrite)) {
              const written = yield* answered(store.write([put(holder, entry?.version ?? "absent")]))
              if (Option.isSome(written)) {
                version = written.value
                renewedAt = now
                return
              }
            } else if (left > 0) wait = Math.min(wait, left)
          }
          yield* Effect.sleep(Math.ceil(wait))
        }
      })

      const lost = Effect.suspend(() => Effect.fail(new LeaseLost({ lease: name })))

      const renew = (changes: ReadonlyArray<Change>): Effect.Effect<number, LeaseLost | StateConflict | StateUnavailable> =>
        Effect.gen(function* () {
          const now = yield* elapsed
          version = yield* store.write([put(holder, version), ...changes])
          renewedAt = now
          return version
        })

      const isOfTheRow = (error: { readonly _tag: string }) => error instanceof StateConflict && error.space === SPACE && error.key === name

      // An earlier renewal without an answer may have been written: then the row is not where we left it, but still ours
      const recover = (changes: ReadonlyArray<Change>) =>
        Effect.flatMap(store.get(SPACE, name), (entry) => {
          if (!isMine(entry)) return lost
          version = entry.version
          return Effect.catchIf(renew(changes), isOfTheRow, () => lost)
        })

      const write = (changes: ReadonlyArray<Change>) =>
        renew(changes).pipe(
          Effect.catchIf(isOfTheRow, () => recover(changes)),
          permit.withPermit
        )

      const heartbeat = Effect.gen(function* () {
        for (;;) {
          if (!(yield* mayWrite)) return yield* lost
          const now = yield* elapsed
          const due = renewedAt + ttl / 3 - now
          if (due > 0) {
            yield* Effect.sleep(Math.ceil(due))
            continue
          }
          const left = renewedAt + (ttl * 2) / 3 - now
          if (left <= 0) return yield* lost
          const renewed = yield* write([]).pipe(
            Effect.as(true),
            Effect.catchTag("StateUnavailable", () => Effect.succeed(false)),
            Effect.catchTag("StateConflict", () => lost),
            Effect.timeoutOrElse({ duration: left, orElse: () => lost })
          )
          if (!renewed) yield* Effect.sleep(Math.ceil(Math.min(left, ttl / 12)))
        }
      })

      // Also after an acquisition that was interrupted half-way. What cannot be released now is free after its time
      const release = Effect.flatMap(store.get(SPACE, name), (entry) =>
        isMine(entry) ? store.write([put(null, entry.version)]) : Effect.void
      ).pipe(Effect.timeoutOption(ttl / 3), Effect.ignore)

      const held = Effect.suspend(() => work({ token: FencingToken(version), write }))
      return yield* acquire.pipe(Effect.andThen(Effect.raceFirst(held, heartbeat)), Effect.ensuring(release))
    })

/** Holds the lease again and again, for ever: `work` begins anew whenever it had ended, failed, or lost the lease. */
export const keep =
  (name: string, options: Options = {}) =>
  <A, E, R>(work: (held: Held) => Effect.Effect<A, E, R>): Effect.Effect<never, never, R | StateStore> => {
    const once = hold(name, options)(work)
    return once.pipe(
      Effect.tapDefect((defect) => Effect.logError(`Lease ${name}:`, defect)),
      Effect.exit,
      // So that work which ends at once does not spin
      Effect.andThen(Effect.sleep("100 millis")),
      Effect.forever
    )
  }
