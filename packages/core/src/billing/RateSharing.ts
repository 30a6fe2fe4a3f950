/**
 * Exchanges the counts of admitted calls between hosts. Each host has one row in the state store with the counts of its busy keys. After
 * a twentieth of a key's limit was admitted, it writes its row, then reads the others'. In between it uses the counts that it read last, so
 * no call waits for the store. Rows name a key only by its HMAC.
 */
import { EventIds, StateStore } from "@millrace/event-sourcing"
import { type Cause, Clock, Duration, Effect, Latch } from "effect"
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

/** A host admits 1/QUIET of the limit before it reports its count. */
const QUIET = 20

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

/** The busy keys by their names in the rows. */
type Reported = ReadonlyArray<readonly [name: string, tally: Tally]>

const encode = (window: number, reported: Reported): Buffer => {
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

const open = Effect.fnUntraced(function* (counts: Counts, { every = "100 millis", patience = "2 seconds" }: Options) {
  const clock = yield* Clock.Clock
  const newId = yield* EventIds
  return {
    counts,
    clock,
    /** The key of this host's row. */
    host: newId(clock.currentTimeMillisUnsafe()),
    store: yield* StateStore.StateStore,
    vault: yield* Vault,
    countExchange: yield* Metrics.countRateSyncs,
    /** Milliseconds. */
    pause: Duration.toMillis(every),
    patience,
    /** Open when an exchange is due. */
    due: Latch.makeUnsafe(false),
    /** Busy keys, and their names in the rows. */
    shared: new Map<Tally, string>(),
    /** Consecutive failures. */
    failures: 0
  }
})

type Sharing = Effect.Success<ReturnType<typeof open>>

/**
 * Exchanges counts with the other hosts in the background, until the scope closes. The returned function must be called for each admitted
 * call, with the tally of its key.
 */
export const make = Effect.fnUntraced(function* (counts: Counts, options: Options) {
  const sharing = yield* open(counts, options)
  // Yields first, so that the call that triggers an exchange does not wait for it
  const round = Effect.andThen(Effect.andThen(nextDue(sharing), Effect.yieldNow), attempt(sharing))
  yield* Effect.forkScoped(Effect.forever(round))
  return (tally: Tally): void => admitted(sharing, tally)
})

const isBusy = ({ counts }: Sharing, tally: Tally): boolean => unreported(tally) > Math.floor(counts.limit / QUIET)

const admitted = (sharing: Sharing, tally: Tally): void => {
  const { due, shared, vault } = sharing
  if (!isBusy(sharing, tally)) return
  // If there is no room now, the key's next call tries again
  if (!shared.has(tally) && shared.size < KEYS)
    shared.set(tally, Buffer.from(vault.hmac("rate-limit", tally.key), "base64url").toString("latin1", 0, NAME))
  due.openUnsafe()
}

/** Waits until a report is due, or for the next window if a key is above the limit: its debt must be reported there. */
const nextDue = ({ clock, counts, due, shared }: Sharing): Effect.Effect<void> =>
  Effect.suspend(() => {
    const owing = [...shared.keys()].some((tally) => counts.total(tally) > counts.limit)
    if (!owing) return due.await
    const now = clock.currentTimeMillisUnsafe()
    return Effect.raceFirst(due.await, Effect.sleep(Math.max(0, Math.ceil(counts.startOf(counts.windowAt(now) + 1) - now))))
  })

/** Exchanges counts once, then pauses: for longer after each failure in a row. */
const attempt = (sharing: Sharing): Effect.Effect<void> =>
  Effect.suspend(() => {
    sharing.due.closeUnsafe()
    return exchange(sharing).pipe(
      Effect.timeout(sharing.patience),
      Effect.onExit((exit) => Effect.sync(() => sharing.countExchange(exit))),
      Effect.matchCauseEffect({ onFailure: (cause) => failed(sharing, cause), onSuccess: () => succeeded(sharing) }),
      Effect.flatMap((pause) => Effect.sleep(pause))
    )
  })

/** Returns the pause, in milliseconds. */
const failed = (sharing: Sharing, cause: Cause.Cause<unknown>): Effect.Effect<number> => {
  const pause = Math.min(RETRY_AFTER * 2 ** sharing.failures, RETRY_AT_MOST)
  sharing.due.openUnsafe()
  return sharing.failures++ > 0
    ? Effect.succeed(pause)
    : Effect.as(Effect.logWarning("Rate limits are counted by this host alone: the state store does not serve", cause), pause)
}

/** Returns the pause, in milliseconds. */
const succeeded = (sharing: Sharing): Effect.Effect<number> => {
  const isBack = sharing.failures > 0
  sharing.failures = 0
  return Effect.as(isBack ? Effect.logInfo("Rate limits are shared with other hosts again") : Effect.void, sharing.pause)
}

const exchange = Effect.fnUntraced(function* (sharing: Sharing) {
  const { clock, counts, due, host, store } = sharing
  const now = clock.currentTimeMillisUnsafe()
  const reported = toReport(sharing, now)
  if (reported.length === 0) return
  const admitted = reported.map(([_, tally]) => tally.admitted)
  // Writes before it reads: of two hosts that exchange at once, at least one reads the other's row
  const window = counts.windowAt(now)
  const expiresAt = Math.ceil(counts.startOf(window + 2))
  yield* store.write([{ _tag: "put", space: SPACE, key: host, value: encode(window, reported), expiresAt }])
  const shares = sharesIn(sharing, yield* store.list(SPACE, { limit: HOSTS }), reported)
  const readAt = clock.currentTimeMillisUnsafe()
  for (const [i, [name, tally]] of reported.entries()) {
    counts.merge(tally, shares.get(name) ?? [], readAt)
    const isNew = tally.reported < (admitted[i] ?? 0)
    tally.reported = Math.max(tally.reported, admitted[i] ?? 0)
    // Another host may have written after this host read, so read again
    if (isNew || isBusy(sharing, tally)) due.openUnsafe()
  }
})

/** The keys to report, in the current window. */
const toReport = ({ counts, shared }: Sharing, now: number): Reported => {
  for (const tally of shared.keys()) {
    counts.settle(tally, now)
    if (tally.calls + tally.before + tally.debt === 0) shared.delete(tally)
  }
  return [...shared].map(([tally, name]) => [name, tally] as const)
}

/** The shares of these keys in the rows of other hosts, by name. */
const sharesIn = (
  { counts: { limit }, host }: Sharing,
  rows: ReadonlyArray<StateStore.Entry>,
  reported: Reported
): ReadonlyMap<string, ReadonlyArray<Share>> => {
  const shares = new Map<string, Array<Share>>(reported.map(([name]) => [name, []]))
  for (const { key, value } of rows)
    if (key !== host)
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
