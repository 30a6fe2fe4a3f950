import { EventStore, MemoryEventStore, MemoryStateStore, StateStore, StreamName } from "@millrace/event-sourcing"
import { Context, Effect, Fiber, Layer, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import * as Vault from "../../src/vault/Vault.ts"
import { KEPT } from "../../src/verification/RecentSms.ts"
import { type IncomingSms, SmsReceiver, type Wait } from "../../src/verification/SmsReceiver.ts"
import { MASTER } from "../vault/Vaults.ts"

const NUMBER = "+15005550006"
const OTHER = "+15005550009"
const START = Date.UTC(2026, 10, 22, 18, 30)
const HOUR = 3_600_000

const stores = Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer(MASTER)))
type Stores = EventStore.EventStore | StateStore.StateStore | MasterKey

/** A host on the stores. */
const host = Effect.gen(function* () {
  const context = yield* Layer.build(
    Layer.fresh(SmsReceiver.layer([NUMBER, OTHER]).pipe(Layer.provideMerge(Layer.orDie(Vault.Vault.layer))))
  )
  return { ...Context.get(context, SmsReceiver), vault: Context.get(context, Vault.Vault) }
})

const testing = (name: string, body: Effect.Effect<void, unknown, Stores | Scope.Scope>): void =>
  test(name, () =>
    Effect.andThen(TestClock.setTime(START), body).pipe(
      Effect.scoped,
      Effect.provide(Layer.fresh(stores)),
      Effect.provide(TestClock.layer()),
      Effect.runPromise
    )
  )

let count = 0
const sms = (given: Partial<IncomingSms> = {}): IncomingSms => ({
  source: "host",
  id: `id-${count++}`,
  from: "Example",
  to: NUMBER,
  text: "482913 is your Example code",
  ...given
})

/** A caller of its own. */
const caller = () => {
  const ulid = `01ARZ3NDEKTSV4RRFF${String(count++).padStart(8, "0")}`
  return { accountId: "acc_1", requestId: "req_1", reservationId: `res_${ulid}` }
}

const awaited = (given: Partial<Wait> = {}): Wait => ({ number: NUMBER, identifier: "example", timeout: "30 seconds", ...given })

/** Lets everything run that needs no time to pass. */
const settle = Effect.forEach(Array.from({ length: 20 }), () =>
  Effect.andThen(
    Effect.yieldNow,
    Effect.promise(() => new Promise(setImmediate))
  )
)

const waiting = (receiver: SmsReceiver["Service"], given: Partial<Wait> = {}, by = caller()) =>
  Effect.tap(Effect.forkChild(receiver.wait(awaited(given), by), { startImmediately: true }), () => settle)

/** The events of a category, by type and data. */
const eventsOf = (category: string) =>
  Effect.gen(function* () {
    const store = yield* EventStore.EventStore
    const batches = yield* store.subscribe(EventStore.start).pipe(
      Stream.takeUntil(({ live }) => live),
      Stream.runCollect
    )
    const events = batches.flatMap(({ events }) => events)
    return events.filter(({ stream }) => StreamName.category(stream) === category).map(({ type, data }) => ({ type, ...JSON.parse(data) }))
  })

describe("a wait", () => {
  testing(
    "ends with the first message that matches and has a code",
    Effect.gen(function* () {
      const here = yield* host
      const by = caller()
      const wait = yield* waiting(here, {}, by)
      yield* here.receive(sms({ text: "111111 is your Other code", from: "Other" }))
      yield* here.receive(sms({ text: "Welcome to Example" }))
      yield* here.receive(sms({ to: OTHER, text: "222222 is your Example code" }))
      yield* settle
      expect(wait.pollUnsafe()).toBeUndefined()
      yield* here.receive(sms({ text: "333333 is your Example code" }))
      yield* here.receive(sms({ text: "444444 is your Example code" }))
      const found = yield* Fiber.join(wait)
      expect(found).toMatchObject({ code: "333333", sender: "Example", message: "333333 is your Example code", receivedAt: START })
      expect(yield* eventsOf("verification")).toMatchObject([{ type: "CodeFound", reservationId: by.reservationId, sms: found?.id }])
      expect(yield* here.waiting).toBe(0)
    })
  )

  testing(
    "ends without a code at its time, and not before",
    Effect.gen(function* () {
      const here = yield* host
      const wait = yield* waiting(here)
      yield* TestClock.adjust("29999 millis")
      expect(wait.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 millis")
      expect(yield* Fiber.join(wait)).toBeUndefined()
      expect(yield* eventsOf("verification")).toMatchObject([{ type: "WaitTimedOut", number: NUMBER }])
    })
  )

  testing(
    "is recorded as abandoned when its caller leaves",
    Effect.gen(function* () {
      const here = yield* host
      const wait = yield* waiting(here)
      yield* Fiber.interrupt(wait)
      expect(yield* eventsOf("verification")).toMatchObject([{ type: "WaitAbandoned", accountId: "acc_1" }])
      expect(yield* here.waiting).toBe(0)
    })
  )

  testing(
    "sees messages from before the call only with since, and then the earliest after it",
    Effect.gen(function* () {
      const here = yield* host
      yield* here.receive(sms({ text: "111111 is your Example code" }))
      yield* TestClock.adjust("1 second")
      yield* here.receive(sms({ text: "222222 is your Example code" }))
      yield* TestClock.adjust("1 second")
      yield* here.receive(sms({ text: "333333 is your Example code" }))
      yield* settle
      const codeSince = (since: number) => Effect.map(here.wait(awaited({ since }), caller()), (found) => found?.code)
      expect(yield* codeSince(START - 1)).toBe("111111")
      expect(yield* codeSince(START)).toBe("222222")
      const later = yield* waiting(here, { since: START + 2_000 })
      const without = yield* waiting(here)
      yield* TestClock.adjust("1 second")
      expect([later.pollUnsafe(), without.pollUnsafe()]).toEqual([undefined, undefined])
      yield* here.receive(sms({ text: "444444 is your Example code" }))
      expect([(yield* Fiber.join(later))?.code, (yield* Fiber.join(without))?.code]).toEqual(["444444", "444444"])
    })
  )

  testing(
    "at one host ends with a message that arrives at another",
    Effect.gen(function* () {
      const [here, there] = yield* Effect.all([host, host])
      const wait = yield* waiting(here)
      yield* there.receive(sms())
      expect((yield* Fiber.join(wait))?.code).toBe("482913")
    })
  )

  testing(
    "does not find a message that is a day old, though it was found before",
    Effect.gen(function* () {
      const here = yield* host
      yield* here.receive(sms())
      const found = here.wait(awaited({ since: START - 1, timeout: "1 second" }), caller())
      expect((yield* found)?.code).toBe("482913")
      yield* TestClock.adjust(KEPT - 1)
      expect((yield* found)?.code).toBe("482913")
      yield* TestClock.adjust(1)
      const late = yield* waiting(here, { since: START - 1, timeout: "1 second" })
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(late)).toBeUndefined()
    })
  )

  testing(
    "begins anew at a host that starts later, and finds what came before",
    Effect.gen(function* () {
      const before = yield* host
      yield* before.receive(sms())
      const later = yield* host
      expect((yield* later.wait(awaited({ since: START - 1 }), caller()))?.code).toBe("482913")
    })
  )
})

describe("a message", () => {
  testing(
    "is received once, whichever host it is brought to, how often, and how late",
    Effect.gen(function* () {
      const [here, there] = yield* Effect.all([host, host])
      const message = sms()
      expect(yield* here.receive(message)).toBe("received")
      expect(yield* there.receive(message)).toBe("repeated")
      yield* TestClock.adjust("3 days")
      expect(yield* here.receive(message)).toBe("repeated")
      // Ids are each provider's own
      expect(yield* here.receive({ ...message, source: "plivo" })).toBe("received")
      expect(yield* eventsOf("sms")).toHaveLength(2)
    })
  )

  testing(
    "is received once by hosts that it is brought to at the same time",
    Effect.gen(function* () {
      const [here, there] = yield* Effect.all([host, host])
      const message = sms()
      const received = yield* Effect.all([here.receive(message), there.receive(message)], { concurrency: "unbounded" })
      expect(received.toSorted()).toEqual(["received", "repeated"])
      expect((yield* there.wait(awaited({ since: START - 1 }), caller()))?.code).toBe("482913")
    })
  )

  testing(
    "to another number is not kept",
    Effect.gen(function* () {
      const here = yield* host
      expect(yield* Effect.flip(here.receive(sms({ to: "+15005550007" })))).toMatchObject({ _tag: "NotAPublicNumber" })
      expect(yield* here.receive(sms({ to: "1 (500) 555-0009" }))).toBe("received")
      expect(yield* eventsOf("sms")).toMatchObject([{ number: OTHER }])
    })
  )

  testing(
    "is neither in the log nor in the state store in clear, and cannot be opened after a day",
    Effect.gen(function* () {
      const here = yield* host
      const states = yield* StateStore.StateStore
      yield* here.receive(sms({ from: "CANARY", text: "482913 is your CANARY code" }))
      const [entry] = yield* states.list("sms")
      const seen = JSON.stringify(yield* eventsOf("sms")) + Buffer.from(entry?.value ?? []).toString("latin1")
      expect(entry).toBeDefined()
      expect(seen).not.toMatch(/CANARY|482913/u)

      const open = (value: Uint8Array) => {
        const [hour = "", sealed = ""] = Buffer.from(value).toString().split(" ")
        return here.vault.open(`sms:${hour}`, "sms", sealed)
      }
      const kept = entry?.value ?? new Uint8Array()
      const codeSince = Effect.map(
        here.wait(awaited({ since: START - 1, identifier: "canary", timeout: 0 }), caller()),
        (found) => found?.code
      )
      yield* TestClock.adjust(KEPT - 1)
      expect(yield* codeSince).toBe("482913")
      yield* TestClock.adjust(1)
      expect(yield* states.list("sms")).toEqual([])
      // A copy of the row is readable until the last message of its hour is a day old, and the hourly round has come
      expect(yield* open(kept)).toContain("CANARY")
      yield* TestClock.adjust(2 * HOUR)
      yield* settle
      expect(yield* Effect.flip(open(kept))).toMatchObject({ _tag: "SubjectDestroyed" })
      expect(yield* states.list("smsHours")).toEqual([])
    })
  )
})
