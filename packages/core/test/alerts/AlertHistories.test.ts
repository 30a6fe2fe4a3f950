/**
 * Random histories of price alerts at two processes whose store fails now and then, and whose relay takes, refuses and loses mails; each
 * process dies at times, and another one goes on. And mistakes in such histories, which the checker finds.
 */
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Exit, Fiber, Logger, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { invariants, type Recorded } from "../../../testing/src/Invariants.ts"
import * as SeededRandom from "../../../testing/src/SeededRandom.ts"
import { PriceAlert } from "../../src/alerts/PriceAlert.ts"
import { type Act, type Mailed, mistakesIn, type Read, type Registered } from "./AlertHistory.ts"
import { host, type Process, pass, read, register, relayOf, type Stores, stores, testing, verified } from "./Hosts.ts"

const RATES = { before: 0.02, after: 0.02, lost: 0.02 }

/** Runs an act while time goes on, since a store that fails is asked again after a pause. */
const settle = Effect.fnUntraced(function* <A, E>(act: Effect.Effect<A, E>) {
  const fiber = yield* Effect.forkChild(Effect.exit(act))
  while (fiber.pollUnsafe() === undefined) {
    yield* TestClock.adjust("50 millis")
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  const exit = yield* Fiber.join(fiber)
  return Exit.hasDies(exit) ? yield* Effect.die(new Error(`A defect: ${exit}`)) : exit
})

/** The history of one seed. */
const live = Effect.fnUntraced(function* (seed: number, shared: Stores, acts: number) {
  const random = SeededRandom.make(seed)
  const history: Array<Act> = []
  const fates = ["sent", "sent", "refused", "lost"] as const
  const relay = relayOf(
    [],
    ({ messageId = "", text }) => {
      const { price, target } = /costs (?<price>\S+) now.* at (?<target>\S+) or/su.exec(text)?.groups ?? {}
      const fate = random.pick(fates)
      history.push({ _tag: "Mailed", id: messageId, price: Number(price), target: Number(target), fate })
      return fate
    },
    "5 seconds"
  )
  let processes = 0
  const open = Effect.fnUntraced(function* () {
    const scope = yield* Scope.make()
    const faulty = FaultyEventStore.make(shared.events, { rates: RATES, random: random.fork(`process ${processes++}`) })
    return { scope, process: yield* Scope.provide(host({ ...shared, events: faulty }, { relay }), scope) }
  })
  const running = [yield* open(), yield* open()]
  const one = (): Process => random.pick(running as [(typeof running)[0], (typeof running)[0]]).process
  const accountId = yield* verified(yield* host(shared, { upkeep: false }), "ada@example.com")
  const tokens: Array<string> = []

  const registering = Effect.fnUntraced(function* () {
    const target = 10 * (1 + random.below(3))
    // Noted before, since a mail may follow at once
    const place = history.push({ _tag: "Registered", target, isSure: false }) - 1
    const exit = yield* settle(register(one(), accountId, String(target)))
    if (Exit.isFailure(exit)) return
    tokens.push(new URL(exit.value.unsubscribe).searchParams.get("token") ?? "")
    // What was mailed meanwhile may be of the target before
    if (history.length === place + 1) history[place] = { _tag: "Registered", target, isSure: true }
  })

  const reading = Effect.fnUntraced(function* () {
    const price = 5 + 5 * random.below(7)
    const place = history.push({ _tag: "Read", price, isSure: false }) - 1
    const exit = yield* settle(read(one(), String(price)))
    if (Exit.isSuccess(exit) && history.length === place + 1) history[place] = { _tag: "Read", price, isSure: true }
  })

  const ending = Effect.fnUntraced(function* () {
    const token = tokens.at(-1)
    if (token === undefined) return
    const place = history.push({ _tag: "Ended", isSure: false }) - 1
    const exit = yield* settle(one().alerts.unsubscribe(token))
    if (Exit.isSuccess(exit) && history.length === place + 1) history[place] = { _tag: "Ended", isSure: true }
  })

  const dying = Effect.fnUntraced(function* () {
    const index = random.below(2)
    const { scope } = running[index] ?? {}
    if (scope !== undefined) yield* settle(Scope.close(scope, Exit.void))
    running[index] = yield* open()
  })

  for (let i = 0; i < acts; i++) {
    const drawn = random.below(100)
    yield* drawn < 20
      ? registering()
      : drawn < 62
        ? reading()
        : drawn < 68
          ? ending()
          : drawn < 74
            ? dying()
            : pass(20 + random.below(200), 4)
  }
  // Longer than leases last, and doubts
  yield* pass(1_200, 24)
  history.push({ _tag: "Quiet" })
  return history
})

/** The events of alerts. */
const recordedIn = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) =>
    log.flatMap(({ data, metadata, revision, stream, type }): ReadonlyArray<Recorded> => {
      if (!stream.startsWith(`${PriceAlert.category}-`)) return []
      const { at } = JSON.parse(metadata) as { readonly at: string }
      return [{ stream, revision, event: PriceAlert.codec.decode(type, data), at: Date.parse(at) }]
    })
  )

describe("histories of price alerts", () => {
  const met = new Set<string>()

  for (let seed = 1; seed <= 10; seed++)
    testing(
      `have no mistake, with seed ${seed}`,
      Effect.gen(function* () {
        const shared = yield* stores
        const history = yield* live(seed, shared, 60)
        expect(mistakesIn(history)).toEqual([])
        const log = yield* recordedIn(shared)
        expect(invariants(log)).toEqual([])
        for (const { event } of log) met.add(event._tag)
        // No mail is sent that the log does not tell of before
        const sendings = log.filter(({ event }) => event._tag === "AlertMailSending").length
        expect(history.filter(({ _tag }) => _tag === "Mailed").length).toBeLessThanOrEqual(sendings)
      }).pipe(Effect.provide(Logger.layer([])))
    )

  test("meet everything that can happen", () => {
    for (const tag of ["PriceAlertArmed", "PriceAlertReached", "AlertMailSent", "AlertMailRefused", "AlertMailInDoubt", "PriceAlertEnded"])
      expect([...met]).toContain(tag)
  })
})

describe("the checker of histories", () => {
  const registered: Registered = { _tag: "Registered", target: 20, isSure: true }
  const readAt = (price: number, isSure = true): Read => ({ _tag: "Read", price, isSure })
  const mailed = (id = "m1", fate: Mailed["fate"] = "sent", price = 10): Mailed => ({ _tag: "Mailed", id, price, target: 20, fate })
  const ended: Act = { _tag: "Ended", isSure: true }
  const quiet: Act = { _tag: "Quiet" }

  test("says nothing of what is right", () => {
    expect(
      mistakesIn([readAt(30), registered, readAt(10), mailed("m1", "refused"), mailed(), readAt(30), readAt(10), mailed("m2"), quiet])
    ).toEqual([])
    expect(mistakesIn([readAt(10), registered, mailed("m1", "lost"), registered, quiet, ended, readAt(5), quiet])).toEqual([])
    expect(mistakesIn([registered, readAt(10), ended, registered, mailed(), quiet])).toEqual([])
    // After a fault nobody knows
    expect(mistakesIn([registered, readAt(10), mailed(), readAt(30, false), readAt(10), mailed("m2"), quiet])).toEqual([])
  })

  test.each<[string, ReadonlyArray<Act>, string]>([
    ["a mail that is sent twice", [registered, readAt(10), mailed(), mailed()], "m1 was sent again, and may have arrived"],
    [
      "a mail that is sent again after it was lost",
      [registered, readAt(10), mailed("m1", "lost"), mailed()],
      "m1 was sent again, and may have arrived"
    ],
    [
      "a fall that is told twice",
      [registered, readAt(10), mailed(), readAt(9), mailed("m2", "sent", 9)],
      "m2 tells of a fall that was told"
    ],
    [
      "a fall that is told again for the same target",
      [registered, readAt(10), mailed(), registered, mailed("m2")],
      "m2 tells of a fall that was told"
    ],
    ["a mail of a price above the target", [registered, readAt(30), mailed("m1", "sent", 30)], "m1 tells of 30, which is above 20"],
    ["a mail after the end", [registered, readAt(30), ended, readAt(10), mailed()], "m1 was sent after the alert had ended"],
    ["a fall that is never told", [registered, readAt(30), readAt(10), quiet], "10 was never told, and is at 20"]
  ])("finds %s", (_, acts, mistake) => expect(mistakesIn(acts)).toContain(mistake))
})
