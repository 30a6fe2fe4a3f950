/**
 * Hosts share how many calls they admitted. Each host keeps one row in the state store with the counts of its busy keys. When a host has
 * admitted more than `quiet` calls of a key since its last row, it writes its row, then reads the others'. In between it decides by what
 * it read last, so no call waits for the store. Rows name a key only by a keyed hash.
 */
import { EventIds, StateStore } from "@millrace/event-sourcing"
import { type Cause, Clock, Duration, Effect, type Exit, Latch, type Scope } from "effect"
import * as Metrics from "../observability/Metrics.ts"
import { Vault } from "../vault/Vault.ts"
import { type Counts, type Share, type Tally, untold } from "./RateCounts.ts"

export interface Options {
  /** The least time between two exchanges: 100 milliseconds by default. */
  readonly every?: Duration.Input
  /** The time limit of one exchange: two seconds by default. */
  readonly patience?: Duration.Input
}

const SPACE = "rates"

/** Keys in a row at most; further ones are counted by this host alone. */
const KEYS = 2_000
/** Rows read at most, one for each host. */
const HOSTS = 1_000

/** After a failure the store is left alone for this long, then for twice as long, and so on: milliseconds. */
const RETRY_AFTER = 1_000
const RETRY_AT_MOST = 30_000

/** A row: the number of the window, then of each key its name, its calls in the window, in the one before, and what it owes. */
const WINDOW = 6
const NAME = 16
const COUNT = 4
const SIZE = NAME + 3 * COUNT

const encode = (window: number, told: ReadonlyArray<readonly [string, Tally]>): Buffer => {
  const row = Buffer.alloc(WINDOW + told.length * SIZE)
  let at = row.writeUIntBE(window, 0, WINDOW)
  for (const [name, { calls, before, debt }] of told) {
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
 * Exchanges counts with the other hosts in the background, for as long as the scope is open. The function it returns is to be called
 * for each admitted call, with the tally of its key.
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
  /** Calls of a key that other hosts need not know of. */
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
  /** In a row. */
  #failures = 0
  /** Keys that are called often, and their names in the rows. */
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
    // There may be room by the next call
    if (!this.#shared.has(tally) && this.#shared.size < KEYS) this.#shared.set(tally, this.#nameOf(tally.key))
    this.#due.openUnsafe()
  }

  /** Rounds for ever, apart from the call that wakes them. */
  get run(): Effect.Effect<never> {
    return Effect.forever(Effect.andThen(Effect.andThen(this.#next, Effect.yieldNow), this.#round))
  }

  #nameOf(key: string): string {
    return Buffer.from(this.#services.vault.hmac("rate-limit", key), "base64url").toString("latin1", 0, NAME)
  }

  #isBusy(tally: Tally): boolean {
    return untold(tally) > this.#limits.quiet
  }

  /** Waits for calls that others should know of, or for a new window in which something is owed. */
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
      const told = this.#toTell(now)
      if (told.length === 0) return
      const admitted = told.map(([_, tally]) => tally.admitted)
      // Told before heard: of two hosts that do this at once, at least one hears of the other
      const window = this.#counts.windowAt(now)
      const expiresAt = Math.ceil(this.#counts.startOf(window + 2))
      yield* store.write([{ _tag: "put", space: SPACE, key: host, value: encode(window, told), expiresAt }])
      const heard = this.#sharesIn(yield* store.list(SPACE, { limit: HOSTS }), told)
      const heardAt = clock.currentTimeMillisUnsafe()
      for (const [i, [name, tally]] of told.entries()) {
        this.#counts.hear(tally, heard.get(name) ?? [], heardAt)
        const isNew = tally.told < (admitted[i] ?? 0)
        tally.told = Math.max(tally.told, admitted[i] ?? 0)
        // A host that looked a moment before has not heard of what others told since
        if (isNew || this.#isBusy(tally)) this.#due.openUnsafe()
      }
    })
  }

  /** The keys of which others should know, as of now. */
  #toTell(now: number): ReadonlyArray<readonly [name: string, tally: Tally]> {
    for (const tally of this.#shared.keys()) {
      this.#counts.settle(tally, now)
      if (tally.calls + tally.before + tally.debt === 0) this.#shared.delete(tally)
    }
    return [...this.#shared].map(([tally, name]) => [name, tally] as const)
  }

  /** What the rows of other hosts say of these keys, by name. */
  #sharesIn(
    rows: ReadonlyArray<StateStore.Entry>,
    told: ReadonlyArray<readonly [string, Tally]>
  ): ReadonlyMap<string, ReadonlyArray<Share>> {
    const heard = new Map<string, Array<Share>>(told.map(([name]) => [name, []]))
    const { limit } = this.#limits
    for (const { key, value } of rows)
      if (key !== this.#services.host)
        decode(value, (name, { window, calls, before, debt }) =>
          // No host admits more, whatever its row says
          heard.get(name)?.push({
            window,
            calls: Math.min(calls, limit),
            before: Math.min(before, limit),
            debt: Math.min(debt, limit * (rows.length - 1))
          })
        )
    return heard
  }
}
