import { EventStore } from "@millrace/event-sourcing"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { MAX_REPLY } from "../../src/billing/Replies.ts"
import { ofAccount } from "../../src/vault/Vault.ts"
import { NotFound } from "../../src/work/OperationError.ts"
import {
  all,
  count,
  elapse,
  endsIn,
  eventsIn,
  host,
  hours,
  KEY,
  makeBench,
  minutes,
  opened,
  patiently,
  paused,
  quiet,
  range,
  SETTLED,
  setting,
  stores,
  testing,
  told,
  UNIT
} from "./Bench.ts"

describe("64 concurrent calls under one key", () => {
  testing(
    "run once: the others fail with InFlight",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { started, proceed } = yield* paused(bench)
      const calls = yield* Effect.forEach(range(64), () => Effect.forkChild(told(here.call(accountId, KEY))))
      yield* started
      yield* quiet
      yield* proceed
      expect(count(yield* Effect.forEach(calls, Fiber.join))).toEqual({ reply: 1, InFlight: 63 })
      expect(bench.runs).toHaveLength(1)
      expect(yield* endsIn(shared)).toEqual(SETTLED)
    })
  )

  testing(
    "run once at two hosts: retries get the first reply byte for byte",
    Effect.gen(function* () {
      const shared = yield* stores
      const benches = [makeBench(), makeBench()] as const
      const hosts = [yield* host(shared, benches[0]), yield* host(shared, benches[1])] as const
      const accountId = yield* opened(hosts[0], 10 * UNIT)
      const calls = range(64).map((i) => hosts[i % 2 === 0 ? 0 : 1].call(accountId, { ...KEY, requestId: `req_${i}` }))
      const ends = count(yield* patiently(Effect.forEach(calls, told, all), 1))
      expect(ends).toMatchObject({ reply: 1 })
      expect((ends["InFlight"] ?? 0) + (ends["replayed"] ?? 0)).toBe(63)
      expect(benches[0].runs.length + benches[1].runs.length).toBe(1)
      const replies = yield* patiently(
        Effect.forEach(calls, (call) => call, all),
        1
      )
      expect(new Set(replies.map((reply) => JSON.stringify(reply))).size).toBe(1)
      expect(replies[0]).toMatchObject({ data: '{"text":"text","count":4}', billed: { charged: UNIT, balance: 9 * UNIT }, replayed: true })
      expect(yield* endsIn(shared)).toEqual(SETTLED)
    })
  )

  testing(
    "free the key at each failure: never two run at once, and at most one succeeds",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { answer } = bench
      let running = 0
      bench.answer = (...of) =>
        Effect.gen(function* () {
          expect(++running).toBe(1)
          yield* Effect.yieldNow
          running--
          return yield* bench.runs.length < 5 ? Effect.fail(new NotFound({ resource: "bin" })) : answer(...of)
        })
      for (const _ of range(10)) yield* Effect.forEach(range(64), () => told(here.call(accountId, KEY)), all)
      const ends = yield* endsIn(shared)
      expect(ends.filter((end) => end === "OperationSucceeded")).toHaveLength(1)
      expect(ends.filter((end) => end === "Refunded service_error")).toHaveLength(4)
      expect(bench.runs).toHaveLength(5)
    })
  )
})

describe("a key", () => {
  testing(
    "replays its reply for a day, also after the account has forgotten the call, and is free afterwards",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const first = yield* here.call(accountId, { ...KEY, requestId: "req_a", units: 2 })
      let passed = 0
      for (const age of [0, minutes(1), minutes(9), minutes(11), hours(1), hours(23), hours(24) - 1]) {
        yield* elapse(age - passed)
        passed = age
        bench.check = () => Effect.fail(new NotFound({ resource: "what it once made" }))
        // Also from another process and at another price
        for (const there of [here, yield* host(shared, bench)]) {
          expect(yield* there.call(accountId, { ...KEY, units: 2, maxCost: 1 })).toEqual({ ...first, replayed: true })
          expect(yield* told(there.call(accountId, { ...KEY, units: 3 }))).toBe("KeyReused")
        }
      }
      expect(bench.runs).toHaveLength(1)
      expect(yield* endsIn(shared)).toEqual(SETTLED)

      yield* elapse(hours(25) - passed)
      bench.check = () => Effect.void
      expect(yield* here.call(accountId, { ...KEY, units: 3, requestId: "req_b" })).toMatchObject({
        requestId: "req_b",
        billed: { charged: 3 * UNIT },
        replayed: false
      })
      expect(bench.runs).toHaveLength(2)
      expect(yield* endsIn(shared)).toEqual([...SETTLED, ...SETTLED])
    })
  )

  testing(
    "replays a call that the account has forgotten, from its stream",
    Effect.gen(function* () {
      const { here, accountId } = yield* setting()
      yield* here.grant(accountId, 1_000 * UNIT, "lot_2")
      const first = yield* here.call(accountId, KEY)
      for (const i of range(220)) yield* here.call(accountId, i % 2 === 0 ? {} : { key: `other ${i}` })
      yield* elapse(minutes(30))
      expect(yield* here.call(accountId, KEY)).toEqual({ ...first, billed: { charged: UNIT, balance: 789 * UNIT }, replayed: true })
      expect(yield* told(here.call(accountId, { ...KEY, text: "other" }))).toBe("KeyReused")
    })
  )

  testing(
    "of a refunded attempt is free, also for another request and at any age",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const { answer } = bench
      for (const wait of [0, minutes(1), minutes(11), hours(2)]) {
        bench.answer = () => Effect.fail(new NotFound({ resource: "bin" }))
        expect(yield* told(here.call(accountId, { ...KEY, text: `at ${wait}` }))).toBe("NotFound")
        yield* elapse(wait)
      }
      bench.answer = answer
      expect(yield* told(here.call(accountId, { ...KEY, text: "last" }))).toBe("reply")
      expect(bench.runs).toHaveLength(5)
    })
  )

  testing(
    "in use is refused for another request",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const { started, proceed } = yield* paused(bench)
      const running = yield* Effect.forkChild(told(here.call(accountId, KEY)))
      yield* started
      expect(yield* told(here.call(accountId, { ...KEY, text: "other" }))).toBe("KeyReused")
      expect(yield* told(here.call(accountId, KEY))).toBe("InFlight")
      yield* proceed
      expect(yield* Fiber.join(running)).toBe("reply")
    })
  )

  testing(
    "belongs to one account",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const other = yield* opened(here, 10 * UNIT, "acc_2")
      expect(yield* told(here.call(accountId, KEY))).toBe("reply")
      expect(yield* told(here.call(other, { ...KEY, text: "other" }))).toBe("reply")
      expect(bench.runs.map(({ accountId }) => accountId)).toEqual([accountId, other])
      // The log does not show that both used the same key
      const hashes = (yield* eventsIn(shared)).flatMap((event) => (event._tag === "CreditReserved" ? [event.keyHash] : []))
      expect(new Set(hashes).size).toBe(2)
    })
  )

  testing(
    "whose call succeeds at another host between the lookup and the hold is replayed",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const there = yield* host(shared, makeBench())
      bench.check = () => Effect.asVoid(Effect.orDie(there.call(accountId, { ...KEY, requestId: "req_there" })))
      expect(yield* here.call(accountId, { ...KEY, requestId: "req_here" })).toMatchObject({ requestId: "req_there", replayed: true })
      expect(bench.runs).toEqual([])

      // Also if its reply is gone by then
      const [kept] = yield* shared.states.list("replies")
      bench.check = () =>
        Effect.orDie(
          Effect.gen(function* () {
            yield* there.call(accountId, { key: "other", requestId: "req_there" })
            for (const { key } of yield* shared.states.list("replies"))
              if (key !== kept?.key) yield* shared.states.write([{ _tag: "remove", space: "replies", key }])
          })
        )
      expect(yield* told(here.call(accountId, { key: "other" }))).toBe("ReplyUnavailable")
      expect(bench.runs).toEqual([])
    })
  )
})

describe("a reply", () => {
  testing(
    "of exactly the limit is kept; a longer one is not, and the call does not run again",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const around = '{"text":"","count":0}'.length
      for (const [key, length] of [
        ["fits", MAX_REPLY],
        ["too long", MAX_REPLY + 1]
      ] as const) {
        bench.answer = () => Effect.succeed({ data: { text: "x".repeat(length - around), count: 0 } })
        const { data } = yield* here.call(accountId, { key })
        expect(data).toHaveLength(length)
      }
      for (const _ of range(2)) {
        expect(yield* told(here.call(accountId, { key: "fits" }))).toBe("replayed")
        expect(yield* told(here.call(accountId, { key: "too long" }))).toBe("ReplyUnavailable")
        expect(yield* told(here.call(accountId, { key: "too long", text: "other" }))).toBe("KeyReused")
        yield* elapse(hours(23))
      }
      expect(bench.runs).toHaveLength(2)
    })
  )

  testing(
    "of an erased account is unreadable, and no other is kept for it",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      expect(yield* told(here.call(accountId, KEY))).toBe("reply")
      yield* here.vault.destroy(ofAccount(accountId))
      expect(yield* told(here.call(accountId, KEY))).toBe("SubjectDestroyed")
      expect(yield* told(here.call(accountId, { key: "another" }))).toBe("SubjectDestroyed")
      expect(bench.runs).toHaveLength(2)
      expect(yield* endsIn(shared)).toEqual([...SETTLED, "CreditReserved", "Refunded service_error"])
    })
  )

  testing(
    "is never written in clear, nor are the key and the request: neither to the log nor to the state store",
    Effect.gen(function* () {
      const shared = yield* stores
      const written: Array<string> = []
      const watched = {
        ...shared,
        states: {
          ...shared.states,
          write: (changes: Parameters<typeof shared.states.write>[0]) => {
            for (const change of changes) {
              const value = change._tag === "put" ? Buffer.from(change.value) : Buffer.alloc(0)
              written.push(`${change.space} ${change.key} ${value.toString("latin1")} ${value.toString("utf8")}`)
            }
            return shared.states.write(changes)
          }
        }
      }
      const bench = makeBench()
      const here = yield* host(watched, bench)
      const accountId = yield* opened(here, 10 * UNIT)
      bench.answer = () => Effect.succeed({ data: { text: "canary-answer", count: 1 } })
      const call = { key: "canary-key", text: "canary-request" }
      expect(yield* told(here.call(accountId, call))).toBe("reply")
      expect(yield* told(here.call(accountId, call))).toBe("replayed")
      expect(yield* told(here.call(accountId, { ...call, text: "canary-other" }))).toBe("KeyReused")
      bench.answer = () => Effect.fail(new NotFound({ resource: "bin" }))
      expect(yield* told(here.call(accountId, { key: "canary-second", text: "canary-request" }))).toBe("NotFound")

      const log = yield* Stream.runCollect(shared.events.readAll(EventStore.start))
      const text = [...log.map((event) => JSON.stringify(event)), ...written].join("\n")
      expect(written.join("\n")).toContain("replies acc_1/")
      for (const secret of ["canary", Buffer.from("canary").toString("base64").slice(0, 8), Buffer.from("canary").toString("hex")]) {
        expect(text).not.toContain(secret)
      }
      const [first, , second] = (yield* eventsIn(shared)).filter(({ _tag }) => _tag !== "Refunded")
      expect(first).toMatchObject({ keyHash: expect.stringMatching(/^[\w-]{43}$/u), fingerprint: expect.stringMatching(/^[\w-]{43}$/u) })
      expect(second).toMatchObject({ keyHash: expect.not.stringMatching(first?._tag === "CreditReserved" ? (first.keyHash ?? "") : "") })
    })
  )
})

testing(
  "a call without a key stores no reply",
  Effect.gen(function* () {
    const { shared, bench, here, accountId } = yield* setting()
    for (const _ of range(2)) expect(yield* told(here.call(accountId))).toBe("reply")
    expect(bench.runs).toHaveLength(2)
    expect(yield* shared.states.list("replies")).toEqual([])
  })
)

describe("a check that lasts longer than the account remembers keys", () => {
  const lasting = (bench: ReturnType<typeof makeBench>, then: Effect.Effect<unknown>) => {
    bench.check = () =>
      Effect.suspend(() => {
        bench.check = () => Effect.void
        return Effect.andThen(then, TestClock.adjust(minutes(25)))
      })
  }

  testing(
    "is followed by a second lookup, and the call continues",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      lasting(bench, Effect.void)
      expect(yield* told(here.call(accountId, KEY))).toBe("reply")
      expect(bench.runs).toHaveLength(1)
      expect(yield* endsIn(shared)).toEqual(SETTLED)
      expect(yield* told(here.call(accountId, KEY))).toBe("replayed")
    })
  )

  testing(
    "does not make the call run twice: another attempt meanwhile is replayed, in flight, or a different request",
    Effect.gen(function* () {
      for (const [text, end] of [
        ["text", "replayed"],
        ["other", "KeyReused"]
      ] as const) {
        const { shared, bench, here, accountId } = yield* setting()
        const there = yield* host(shared, bench)
        lasting(bench, Effect.asVoid(Effect.orDie(there.call(accountId, { ...KEY, text }))))
        expect(yield* told(here.call(accountId, KEY))).toBe(end)
        expect(bench.runs).toHaveLength(1)
        expect(yield* endsIn(shared)).toEqual(SETTLED)
      }
    })
  )
})
