/**
 * Exchanges the counts of admitted calls between hosts. Each host has one row in the state store with the counts of its busy keys. After
 * more than `quiet` admitted calls of a key it writes its row, then reads the others'. In between it uses the counts that it read last, so
 * no call waits for the store. Rows name a key only by its HMAC.
 */
import { EventIds, StateStore } from "@millrace/event-sourcing"
import { type Cause, Clock, Duration, Effect, type Exit, Latch, type Scope } from "effect"
import * as Metrics from "../observability/Metrics.ts"
import { Vault } from "../vault/Vault.ts"
import { type Counts, type Share, type Tally, unreported } from "./RateCounts.ts"

export interface Options {
  /** The least time between two exchanges: 100 milliseconds by default. */
  readonly every?: Duration.Input
  /** The time limit of one exchange: two seconds by default. */
  readonly patience?: Duration.Input
}

const SPACE = "rates"

/** The most keys in a row. This host counts further keys alone. */
const KEYS = 2_000
/** The most rows to read, one for each host. */
const HOSTS = 1_000

/** The pause after a failure, milliseconds: exponential, from `RETRY_AFTER` to `RETRY_AT_MOST`. */
const RETRY_AFTER = 1_000
const RETRY_AT_MOST = 30_000

/** The layout of a row: the window, then for each key its name, its calls in the window and in the one before, and its debt. In bytes. */
const WINDOW = 6
const NAME = 16
const COUNT = 4
const SIZE = NAME + 3 * COUNT

const encode = (window: number, reported: ReadonlyArray<readonly [string, Tally]>): Buffer => {
  const row = Buffer.alloc(WINDOW + reported.length * SIZE)
  let at = row.writeUIntBE(window, 0, WINDOW)
  for (const [name, { calls, before, debt }] of reported) {
    at += row.write(name, at, NAME, "latin1")
    for (const count of [calls, before, debt]) at = row.writeUIntBE(Math.min(count, 2 ** 32 - 1), at, COUNT)
  }
  return row
}

/** Skips incomplete entries. */
const decode = (value: Uint8Array, take: (name: string, share: Share) => void): void => {
  const row = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (row.length < WINDOW) return
  const window = row.readUIntBE(0, WINDOW)
  for (let at = WINDOW; at + SIZE <= row.length; at += SIZE) {
    const [calls = 0, before = 0, debt = 0] = [0, 1, 2].map((i) => row.readUIntBE(at + NAME + i * COUNT, COUNT))
    take(row.toString("latin1", at, at + NAME), { window, calls, before, debt })
  }
}

/**
 * Exchanges counts with the other hosts in the background, until the scope closes. The returned function must be called for each admitted
 * call, with the tally of its key.
 */
export const make = Effect.fnUntraced(function* (
  counts: Counts,
  limits: Limits,
  options: Options
): Effect.fn.Return<(tally: Tally) => void, never, StateStore.StateStore | Vault | Scope.Scope> {
  const clock = yield* Clock.Clock
  const newId = yield* EventIds
  const host = newId(clock.currentTimeMillisUnsafe())
  const sharing = new Sharing(counts, limits, options, {
    clock,
    host,
    store: yield* StateStore.StateStore,
    vault: yield* Vault,
    count: yield* Metrics.countRateSyncs
  })
  yield* Effect.forkScoped(sharing.run)
  return (tally) => sharing.admitted(tally)
})

interface Limits {
  readonly limit: number
  /** Calls of a key that are admitted without a report to other hosts. */
  readonly quiet: number
}

interface Services {
  readonly clock: Clock.Clock
  /** The key of this host's row. */
  readonly host: string
  readonly store: StateStore.StateStore["Service"]
  readonly vault: Vault["Service"]
  readonly count: (exit: Exit.Exit<unknown, unknown>) => void
}

class Sharing {
  readonly #counts: Counts
  readonly #limits: Limits
  readonly #services: Services
  /** Milliseconds. */
  readonly #pause: number
  readonly #patience: Duration.Input
  /** Open when a round is due. */
  readonly #due = Latch.makeUnsafe(false)
  /** Consecutive failures. */
  #failures = 0
  /** Busy keys, and their names in the rows. */
  readonly #shared = new Map<Tally, string>()

  constructor(counts: Counts, limits: Limits, { every = "100 millis", patience = "2 seconds" }: Options, services: Services) {
    this.#counts = counts
    this.#limits = limits
    this.#services = services
    this.#pause = Duration.toMillis(every)
    this.#patience = patience
  }

  admitted(tally: Tally): void {
    if (!this.#isBusy(tally)) return
    // If there is no room now, the key's next call tries again
    if (!this.#shared.has(tally) && this.#shared.size < KEYS) this.#shared.set(tally, this.#nameOf(tally.key))
    this.#due.openUnsafe()
  }

  /** Repeats rounds for ever. Yields first, so that the call that triggers a round does not wait for it. */
  get run(): Effect.Effect<never> {
    return Effect.forever(Effect.andThen(Effect.andThen(this.#next, Effect.yieldNow), this.#round))
  }

  #nameOf(key: string): string {
    return Buffer.from(this.#services.vault.hmac("rate-limit", key), "base64url").toString("latin1", 0, NAME)
  }

  #isBusy(tally: Tally): boolean {
    return unreported(tally) > this.#limits.quiet
  }

  /** Waits until a report is due, or for the next window if a key is above the limit: its debt must be reported there. */
  readonly #next = Effect.suspend(() => {
    const owing = [...this.#shared.keys()].some((tally) => this.#counts.total(tally) > this.#limits.limit)
    if (!owing) return this.#due.await
    const now = this.#services.clock.currentTimeMillisUnsafe()
    const newWindow = this.#counts.startOf(this.#counts.windowAt(now) + 1)
    return Effect.raceFirst(this.#due.await, Effect.sleep(Math.max(0, Math.ceil(newWindow - now))))
  })

  readonly #round = Effect.suspend(() => {
    this.#due.closeUnsafe()
    return this.#sync.pipe(
      Effect.timeout(this.#patience),
      Effect.onExit((exit) => Effect.sync(() => this.#services.count(exit))),
      Effect.matchCauseEffect({
        onFailure: (cause) => this.#failed(cause),
        onSuccess: () => Effect.as(this.#succeeded, this.#pause)
      }),
      Effect.flatMap((wait) => Effect.sleep(wait))
    )
  })

  /** The pause until the next round, in milliseconds. */
  #failed(cause: Cause.Cause<unknown>): Effect.Effect<number> {
    const pause = Math.min(RETRY_AFTER * 2 ** this.#failures, RETRY_AT_MOST)
    this.#due.openUnsafe()
    return this.#failures++ > 0
      ? Effect.succeed(pause)
      : Effect.as(Effect.logWarning("Rate limits are counted by this host alone: the state store does not serve", cause), pause)
  }

  readonly #succeeded = Effect.suspend(() => {
    const isBack = this.#failures > 0
    this.#failures = 0
    return isBack ? Effect.logInfo("Rate limits are shared with other hosts again") : Effect.void
  })

  get #sync() {
    return Effect.gen({ self: this }, function* () {
      const { clock, host, store } = this.#services
      const now = clock.currentTimeMillisUnsafe()
      const reported = this.#toReport(now)
      if (reported.length === 0) return
      const admitted = reported.map(([_, tally]) => tally.admitted)
      // Writes before it reads: of two hosts that exchange at once, at least one reads the other's row
      const window = this.#counts.windowAt(now)
      const expiresAt = Math.ceil(this.#counts.startOf(window + 2))
      yield* store.write([{ _tag: "put", space: SPACE, key: host, value: encode(window, reported), expiresAt }])
      const shares = this.#sharesIn(yield* store.list(SPACE, { limit: HOSTS }), reported)
      const readAt = clock.currentTimeMillisUnsafe()
      for (const [i, [name, tally]] of reported.entries()) {
        this.#counts.merge(tally, shares.get(name) ?? [], readAt)
        const isNew = tally.reported < (admitted[i] ?? 0)
        tally.reported = Math.max(tally.reported, admitted[i] ?? 0)
        // Another host may have written after this host read, so read again
        if (isNew || this.#isBusy(tally)) this.#due.openUnsafe()
      }
    })
  }

  /** The keys to report, in the current window. */
  #toReport(now: number): ReadonlyArray<readonly [name: string, tally: Tally]> {
    for (const tally of this.#shared.keys()) {
      this.#counts.settle(tally, now)
      if (tally.calls + tally.before + tally.debt === 0) this.#shared.delete(tally)
    }
    return [...this.#shared].map(([tally, name]) => [name, tally] as const)
  }

  /** The shares of these keys in the rows of other hosts, by name. */
  #sharesIn(
    rows: ReadonlyArray<StateStore.Entry>,
    reported: ReadonlyArray<readonly [string, Tally]>
  ): ReadonlyMap<string, ReadonlyArray<Share>> {
    const shares = new Map<string, Array<Share>>(reported.map(([name]) => [name, []]))
    const { limit } = this.#limits
    for (const { key, value } of rows)
      if (key !== this.#services.host)
        decode(value, (name, { window, calls, before, debt }) =>
          // Bounded, in case a row is wrong: no host admits more than the limit
          shares.get(name)?.push({
            window,
            calls: Math.min(calls, limit),
            before: Math.min(before, limit),
            debt: Math.min(debt, limit * (rows.length - 1))
          })
        )
    return shares
  }
}
