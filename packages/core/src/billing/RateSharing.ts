/**
 * Shares the counts of the rate limit between hosts. Each host keeps one row in the state store, with the calls of each busy key in a
 * window. A host that admitted more calls of a key than it may keep to itself writes its row, then reads the others'. In between it
 * decides by what it read last, so no call waits for the store. Rows name keys by a keyed hash.
 */
import { EventIds, StateStore } from "@millrace/event-sourcing"
import { type Cause, Clock, Duration, Effect, Latch, type Scope } from "effect"
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

/** Exchanges counts in the background. Call the answer with the key of each admitted call. */
export const make = Effect.fnUntraced(function* (
  counts: Counts,
  { limit, quiet }: { readonly limit: number; readonly quiet: number },
  { every = "100 millis", patience = "2 seconds" }: Options
): Effect.fn.Return<(tally: Tally) => void, never, StateStore.StateStore | Vault | Scope.Scope> {
  const store = yield* StateStore.StateStore
  const vault = yield* Vault
  const clock = yield* Clock.Clock
  const newId = yield* EventIds
  const count = yield* Metrics.countRateSyncs
  const host = newId(clock.currentTimeMillisUnsafe())
  const due = Latch.makeUnsafe(false)
  let failures = 0
  /** Keys that are called often, and their names. */
  const shared = new Map<Tally, string>()

  const nameOf = (key: string) => Buffer.from(vault.hmac("rate-limit", key), "base64url").toString("latin1", 0, NAME)
  const isBusy = (tally: Tally) => untold(tally) > quiet

  /** The keys of which others should know, as of now. */
  const toTell = (now: number) => {
    for (const tally of shared.keys()) {
      counts.settle(tally, now)
      if (tally.calls + tally.before + tally.debt === 0) shared.delete(tally)
    }
    return [...shared].map(([tally, name]) => [name, tally] as const)
  }

  const sync = Effect.gen(function* () {
    const now = clock.currentTimeMillisUnsafe()
    const window = counts.windowAt(now)
    const told = toTell(now)
    if (told.length === 0) return
    const admitted = told.map(([_, tally]) => tally.admitted)
    // Write before read: of two hosts that do this at once, at least one reads the other's row
    const value = encode(window, told)
    yield* store.write([{ _tag: "put", space: SPACE, key: host, value, expiresAt: Math.ceil(counts.startOf(window + 2)) }])
    const rows = yield* store.list(SPACE, { limit: HOSTS })
    const heard = new Map<string, Array<Share>>(told.map(([name]) => [name, []]))
    for (const { key, value } of rows)
      if (key !== host)
        decode(value, (name, { window, calls, before, debt }) =>
          // No host can have admitted more
          heard.get(name)?.push({
            window,
            calls: Math.min(calls, limit),
            before: Math.min(before, limit),
            debt: Math.min(debt, limit * (rows.length - 1))
          })
        )
    const heardAt = clock.currentTimeMillisUnsafe()
    for (const [i, [name, tally]] of told.entries()) {
      counts.hear(tally, heard.get(name) ?? [], heardAt)
      const isNew = tally.told < (admitted[i] ?? 0)
      tally.told = Math.max(tally.told, admitted[i] ?? 0)
      // A host that read a moment ago has not seen what others wrote since
      if (isNew || isBusy(tally)) due.openUnsafe()
    }
  })

  const failed = (cause: Cause.Cause<unknown>) =>
    Effect.suspend(() => {
      const pause = Math.min(RETRY_AFTER * 2 ** failures, RETRY_AT_MOST)
      due.openUnsafe()
      return failures++ > 0
        ? Effect.succeed(pause)
        : Effect.as(Effect.logWarning("Rate limits are counted by this host alone: the state store does not serve", cause), pause)
    })
  const succeeded = Effect.suspend(() => {
    const isBack = failures > 0
    failures = 0
    return isBack ? Effect.logInfo("Rate limits are shared with other hosts again") : Effect.void
  })

  const pause = Duration.toMillis(every)
  const round = Effect.suspend(() => {
    due.closeUnsafe()
    return sync.pipe(
      Effect.timeout(patience),
      Effect.onExit((exit) => Effect.sync(() => count(exit))),
      Effect.matchCauseEffect({
        onFailure: failed,
        onSuccess: () => Effect.as(succeeded, pause)
      }),
      Effect.flatMap((wait) => Effect.sleep(wait))
    )
  })

  /** Waits for calls that others should know of, or for a new window of a key in debt. */
  const next = Effect.suspend(() => {
    const owing = [...shared.keys()].filter((tally) => counts.total(tally) > limit)
    if (owing.length === 0) return due.await
    const now = clock.currentTimeMillisUnsafe()
    return Effect.raceFirst(due.await, Effect.sleep(Math.max(0, Math.ceil(counts.startOf(counts.windowAt(now) + 1) - now))))
  })
  // In a turn of its own, after the call that woke it
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.andThen(next, Effect.yieldNow), round)))

  return (tally) => {
    if (!isBusy(tally)) return
    // If there is no room, the next call tries again
    if (!shared.has(tally) && shared.size < KEYS) shared.set(tally, nameOf(tally.key))
    due.openUnsafe()
  }
})
