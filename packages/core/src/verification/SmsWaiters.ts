/** Waits for messages. The projection of recent messages wakes them, whichever host a message came to. */
import { type EventStore, Following, type Projection } from "@millrace/event-sourcing"
import { Clock, Deferred, Duration, Effect, Iterable } from "effect"
import { extract } from "./CodeExtractor.ts"
import type * as Expiries from "./Expiries.ts"
import { type Entry, KEPT, type RecentSms } from "./RecentSms.ts"
import * as Services from "./Services.ts"
import type { SmsTexts, Text } from "./SmsTexts.ts"

/** A message with a code. */
export interface Found extends Text {
  /** The id of the message's stream. */
  readonly id: string
  /** 4 to 8 digits. */
  readonly code: string
  readonly words: Services.Words
}

export interface Awaited {
  /** E.164. */
  readonly number: string
  readonly matches: (words: Services.Words) => boolean
  /** Messages received after this time count too: milliseconds since 1970. By default only those that come from now on. */
  readonly since?: number | undefined
  /** How long to wait. */
  readonly timeout: Duration.Input
}

interface Waiter extends Awaited {
  /** The messages of the number that this wait does not need to see. */
  readonly from: number
  /** Undefined once its time is over. */
  readonly found: Deferred.Deferred<Found | undefined>
}

/** The most opened messages in memory. */
const MEMORY = 256

/** Opens a message, if it has a code. Retries a store that does not answer. */
const openerOf = (texts: SmsTexts) => {
  const opened = new Map<string, Found | undefined>()
  return ({ hash, id }: Entry): Effect.Effect<Found | undefined> =>
    Effect.suspend(() => {
      if (opened.has(id)) return Effect.succeed(opened.get(id))
      const read = Effect.map(
        Following.retryForever(texts.open(id, hash), () => {}),
        (text) => {
          const code = text === undefined ? undefined : extract(text.message)
          return text === undefined || code === undefined
            ? undefined
            : { ...text, id, code, words: Services.wordsOf(text.sender, text.message) }
        }
      )
      return Effect.tap(read, (found) =>
        Effect.sync(() => {
          opened.set(id, found)
          const [oldest] = opened.keys()
          if (opened.size > MEMORY && oldest !== undefined) opened.delete(oldest)
        })
      )
    })
}

export const make = (recent: Projection.Projection<RecentSms>, texts: SmsTexts, expiries: Expiries.Expiries) => {
  const waiters = new Map<string, Set<Waiter>>()
  const open = openerOf(texts)

  const first = Effect.fnUntraced(function* (entries: ReadonlyArray<Entry>, { matches }: Awaited) {
    for (const entry of entries) {
      const found = yield* open(entry)
      if (found !== undefined && matches(found.words)) return found
    }
    return undefined
  })

  /** The first that matches of messages that came before, or the next. */
  const among = (earlier: ReadonlyArray<Entry>, waiter: Waiter): Effect.Effect<Found | undefined> =>
    Effect.flatMap(first(earlier, waiter), (found) => (found === undefined ? Deferred.await(waiter.found) : Effect.succeed(found))).pipe(
      Effect.timeoutOrElse({ duration: waiter.timeout, orElse: () => Effect.undefined })
    )

  /** Tells those who wait at a number of its messages after the first `seen`. */
  const tell = Effect.fnUntraced(function* (number: string, entries: ReadonlyArray<Entry>, seen: number) {
    for (const [i, entry] of entries.entries()) {
      // Messages from before all waits are not opened
      if (!Iterable.some(waiters.get(number) ?? [], ({ from }) => seen + i >= from)) continue
      const found = yield* open(entry)
      if (found === undefined) continue
      for (const waiter of waiters.get(number) ?? [])
        if (seen + i >= waiter.from && waiter.matches(found.words)) Deferred.doneUnsafe(waiter.found, Effect.succeed(found))
    }
  })

  /** Registers a wait. Nothing else runs meanwhile, so no message comes between what was and what will be. */
  const enter = (awaited: Awaited, state: RecentSms, kept: number) => {
    const { number, since, timeout } = awaited
    const earlier = since === undefined ? [] : state.after(number, 0, Math.max(since, kept))
    const waiter: Waiter = { ...awaited, from: state.countOf(number), found: Deferred.makeUnsafe() }
    const waiting = waiters.get(number) ?? new Set()
    waiters.set(number, waiting.add(waiter))
    const answered = expiries.add(Duration.toMillis(Duration.fromInputUnsafe(timeout)), () =>
      Deferred.doneUnsafe(waiter.found, Effect.undefined)
    )
    const leave = () => {
      waiting.delete(waiter)
      answered()
    }
    return { earlier, waiter, leave }
  }

  return {
    /** How many wait now. */
    size: (): number => [...waiters.values()].reduce((sum, { size }) => sum + size, 0),
    /** Wakes waits. Ends only if the projection stops. */
    watch: Effect.gen(function* () {
      const seen = new Map<string, number>()
      for (;;) {
        const { position, state } = yield* recent.read({ within: "1 day" })
        // Read at once: the state changes while messages are opened
        const arrived = Array.from(state.numbers(), (number) => ({
          number,
          count: state.countOf(number),
          entries: state.after(number, seen.get(number) ?? 0)
        }))
        for (const { count, entries, number } of arrived) {
          seen.set(number, count)
          yield* tell(number, entries, count - entries.length)
        }
        yield* recent.past(position)
      }
    }),
    /** Waits for the first message that matches. Undefined if none comes in time. */
    next: (
      awaited: Awaited
    ): Effect.Effect<Found | undefined, Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable> =>
      Effect.gen(function* () {
        // What came before the call must not count as new because this host learns of it late
        const { state } = yield* recent.caughtUp()
        // A text may be in memory for longer than a day
        const kept = (yield* Clock.currentTimeMillis) - KEPT
        return yield* Effect.acquireUseRelease(
          Effect.sync(() => enter(awaited, state, kept)),
          ({ earlier, waiter }) => (earlier.length === 0 ? Deferred.await(waiter.found) : among(earlier, waiter)),
          ({ leave }) => Effect.sync(leave)
        )
      })
  }
}
