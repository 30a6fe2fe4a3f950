/** The lifetime of credits that return to an expired lot after our failure: that of the host that held them or refunds them. */
import { Credits, Decisions, Ledger, Millrace } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { type Duration, Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { testing } from "../accounts/Hosts.ts"
import { MASTER } from "../vault/Vaults.ts"

const START = Date.UTC(2026, 0, 1)
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** The ledger of a process on the store, with that host's setting. */
const host = (events: EventStore.EventStore["Service"], adjustmentLifetime?: Duration.Input) =>
  Effect.gen(function* () {
    const stores = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, events),
      Layer.fresh(MemoryStateStore.layer),
      MasterKey.layer(MASTER)
    )
    const millrace = Millrace.administration(adjustmentLifetime === undefined ? {} : { adjustmentLifetime })
    return yield* Effect.provideContext(Ledger, yield* Layer.build(Layer.fresh(millrace.pipe(Layer.provide(stores)))))
  })

const three = Credits.of(3)
const call = (reservationId: string, adjustmentLifetime: number): Decisions.Reserve => ({
  reservationId,
  requestId: "req",
  operation: "grammar.check",
  quantity: 1,
  priceVersion: 1,
  unitPrice: three,
  lifetime: MINUTE,
  adjustmentLifetime
})

/** An account with three thousandths that expire within half a minute. */
const open = (ledger: Ledger["Service"], accountId: string) =>
  Effect.gen(function* () {
    yield* ledger.execute(accountId, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
    const expiresAt = START + 30 * SECOND
    yield* ledger.execute(
      accountId,
      Decisions.grant({ lotId: `lot_${accountId}`, amount: three, source: "topup", paymentRef: "pay", expiresAt })
    )
  })

describe("credits of an abandoned hold", () => {
  testing(
    "live for the lifetime recorded in the hold, whatever other hosts are configured to",
    Effect.gen(function* () {
      yield* TestClock.setTime(START)
      const events = yield* MemoryEventStore.make
      const hosts = yield* Effect.all([host(events, "2 hours"), host(events), host(events, "1 hour"), host(events, "30 days")])
      const [holder, , hour] = hosts
      yield* open(holder, "acc_1")
      yield* holder.execute("acc_1", Decisions.reserve(call("res_1", holder.adjustmentLifetime)))

      const end = START + MINUTE
      const over = end + 2 * HOUR
      const instants = [START, end - 1, end, end + HOUR, over - 1, over, end + 7 * DAY - 1, end + 30 * DAY - 1]
      const allSay = Effect.forEach(instants, (at) =>
        Effect.gen(function* () {
          const [first, ...others] = yield* Effect.forEach(hosts, (ledger) => ledger.balance("acc_1", at))
          for (const other of others) expect(other).toStrictEqual(first)
          expect([at - START, first?.available]).toStrictEqual([at - START, at < end || at >= over ? 0 : 3])
        })
      )
      yield* allSay
      yield* TestClock.setTime(end + HOUR)
      yield* allSay
      const { events: written } = yield* hour.execute("acc_1", Decisions.applyDue)
      expect(written).toMatchObject([{ _tag: "Refunded", dueAt: end }, { _tag: "LotExpired" }, { _tag: "CreditsGranted", expiresAt: over }])
      yield* allSay
      yield* TestClock.setTime(over + HOUR)
      yield* allSay
    })
  )
})

describe("credits refunded by command into an expired lot", () => {
  for (const [setting, lifetime] of [
    [undefined, 7 * DAY],
    ["30 days", 30 * DAY],
    [HOUR, HOUR]
  ] as const) {
    testing(
      `live for the lifetime of the host that refunds them: ${setting ?? "default"}`,
      Effect.gen(function* () {
        yield* TestClock.setTime(START)
        const ledger = yield* host(yield* MemoryEventStore.make, setting)
        expect(ledger.adjustmentLifetime).toBe(lifetime)
        // The lifetime in the hold is for its own release, not for later refunds
        yield* open(ledger, "acc_1")
        yield* ledger.execute("acc_1", Decisions.reserve(call("res_1", 2 * DAY)))
        yield* ledger.execute("acc_1", Decisions.settle({ reservationId: "res_1", replyHash: "reply" }))
        yield* open(ledger, "acc_2")
        yield* ledger.execute("acc_2", Decisions.clawBack("lot_acc_2"))

        yield* TestClock.setTime(START + DAY)
        yield* ledger.refund("acc_1", "res_1", { reason: "goodwill" })
        yield* ledger.execute("acc_2", Decisions.reverseClawback("lot_acc_2", undefined, ledger.adjustmentLifetime))
        for (const accountId of ["acc_1", "acc_2"]) {
          const { lots } = yield* ledger.balance(accountId)
          expect(lots).toMatchObject([{ source: "adjustment", left: 3, expiresAt: START + DAY + lifetime }])
        }
      })
    )
  }
})

describe("a host", () => {
  testing(
    "does not start with an adjustment lifetime that is zero, fractional or unlimited",
    Effect.gen(function* () {
      const events = yield* MemoryEventStore.make
      for (const setting of [0, -1, "0.5 millis", "Infinity", { days: 365 * 101 }] as const) {
        const exit = yield* Effect.exit(host(events, setting))
        expect([setting, Exit.hasDies(exit)]).toStrictEqual([setting, true])
      }
      for (const setting of [1, { days: 365 * 100 }] as const) yield* host(events, setting)
    })
  )
})
