/** Every reader of accounts, jobs or keys reads the events of an earlier release, through the decider's codec and its upcasts. */
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Layer, Result, Stream } from "effect"
import { describe, expect, vi } from "vitest"
import * as Audit from "../../../audit/src/Audit.ts"
import * as Journal from "../../../audit/src/Journal.ts"
import { monthOf, UsageBook } from "../../src/billing/Usage.ts"
import * as Credits from "../../src/Credits.ts"
import type { EventOf } from "../../src/ledger/AccountEvent.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import * as History from "../../src/ledger/History.ts"
import * as Bench from "../billing/Bench.ts"
import * as JobBench from "../jobs/JobBench.ts"

const { elapse, hours, LIFETIME, minutes, quiet, START, seconds, testing, told, UNIT, until } = Bench

vi.mock(import("../../src/ledger/Account.ts"), async (original) => {
  const real = await original()
  const { AccountEvent } = await import("../../src/ledger/AccountEvent.ts")
  const { earlierRelease } = await import("./EarlierRelease.ts")
  const codec = earlierRelease(AccountEvent, {
    CreditsGranted: { type: "LotOpened", fields: { lotId: "lot", paymentRef: "payment" } },
    CreditReserved: {
      type: "CreditHeld",
      fields: {
        reservationId: "hold",
        operation: "service",
        expiresAt: "until",
        jobId: "work",
        acceptBy: "acceptUntil",
        requestId: "request"
      }
    },
    OperationSucceeded: { type: "HoldCaptured", fields: { reservationId: "hold", quantity: "units" } },
    Refunded: { type: "HoldReturned", fields: { reservationId: "hold", stage: "of" } }
  })
  return { ...real, Account: { ...real.Account, codec } }
})

vi.mock(import("../../src/jobs/Job.ts"), async (original) => {
  const real = await original()
  const { earlierRelease } = await import("./EarlierRelease.ts")
  const codec = earlierRelease(real.JobEvent, {
    JobAccepted: { type: "WorkTaken", fields: { deadline: "endBy", operation: "service" } },
    JobRefused: { type: "WorkRefused", fields: {} },
    JobSucceeded: { type: "WorkDone", fields: { retainUntil: "keepUntil" } }
  })
  return { ...real, Job: { ...real.Job, codec } }
})

const typesIn = ({ events }: Bench.Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) => new Set(log.map(({ type }) => type)))

const provided = <A, E, R>(effect: Effect.Effect<A, E, R>, { events, states }: Bench.Stores) =>
  Effect.provide(effect, Layer.merge(Layer.succeed(EventStore.EventStore, events), Layer.succeed(StateStore.StateStore, states)))

const audited = (stores: Bench.Stores, at: number) => Effect.map(provided(Audit.run({ at }), stores), ({ problems }) => problems)

describe("events of an earlier release", () => {
  testing(
    "set and clear the deadlines of holds",
    Effect.gen(function* () {
      const shared = yield* Bench.stores
      const dead = Bench.makeBench()
      const first = yield* Bench.mortalHost(shared, dead)
      const accountId = yield* Bench.opened(first, 10 * UNIT)
      expect(yield* told(first.call(accountId))).toBe("reply")
      const { started } = yield* Bench.paused(dead)
      yield* Effect.forkDetach(first.call(accountId, { requestId: "req_dead" }))
      yield* started
      yield* first.die
      expect(yield* typesIn(shared)).toEqual(new Set(["PricePlanPublished", "AccountOpened", "LotOpened", "CreditHeld", "HoldCaptured"]))

      const { recovery } = yield* Bench.host(shared, Bench.makeBench(), { recovery: {} })
      yield* quiet
      const due = yield* Effect.fromNullishOr(recovery?.overdue(START + LIFETIME))
      expect(yield* due).toMatchObject([{ dueAt: START + LIFETIME, key: dead.runs.at(-1)?.reservationId }])
      yield* until(
        Effect.map(typesIn(shared), (types) => types.has("HoldReturned")),
        minutes(3)
      )
      yield* quiet
      expect(yield* Effect.flatten(Effect.fromNullishOr(recovery?.overdue(Number.MAX_SAFE_INTEGER)))).toEqual([])
    })
  )

  testing(
    "fail a job that was not accepted in time, and purge one after its retention",
    Effect.gen(function* () {
      const to = yield* JobBench.shared
      const mortal = yield* JobBench.mortalHost(to, JobBench.makeBench())
      const accountId = yield* mortal.open("acc_1", 10 * UNIT)
      // Only the hold is written
      let appends = 0
      yield* mortal.through(({ events }) => ({
        events: {
          ...events,
          append: (...of) =>
            Effect.suspend(() => (++appends > 1 ? Effect.fail(new EventStore.StoreUnavailable({ reason: "away" })) : events.append(...of)))
        }
      }))
      yield* Effect.forkChild(told(mortal.create(accountId)))
      yield* quiet
      yield* mortal.die
      expect(yield* typesIn(to)).toContain("CreditHeld")
      expect(yield* typesIn(to)).not.toContain("WorkTaken")

      const bench = JobBench.makeBench()
      const here = yield* JobBench.host(to, bench, { jobs: { retention: "10 minutes" } })
      yield* until(
        Effect.map(typesIn(to), (types) => types.has("HoldReturned")),
        minutes(2)
      )
      expect(yield* here.balance(accountId)).toEqual({ available: 10 * UNIT, held: 0 })

      const job = JobBench.idOf(yield* here.create(accountId))
      yield* until(
        Effect.map(here.read(accountId, job), ({ status }) => status === "succeeded"),
        seconds(30)
      )
      yield* elapse(minutes(11))
      expect(yield* JobBench.story(to)).toEqual(["JobRefused", "JobAccepted", "JobStarted", "JobSucceeded", "JobPurged"])
      expect(yield* here.balance(accountId)).toEqual({ available: 9 * UNIT, held: 0 })
    })
  )

  testing(
    "count in the usage, are found by searches of operators, and pass the audit",
    Effect.gen(function* () {
      const { shared, here, accountId } = yield* Bench.setting()
      for (const requestId of ["req_a", "req_b"]) expect(yield* told(here.call(accountId, { requestId }))).toBe("reply")
      const [found, ...others] = yield* provided(History.reservations({ requestId: "req_a" }), shared)
      expect([found?.accountId, found?.hold.operation, others]).toEqual([accountId, "bench.work", []])
      const reservationId = found?.hold.reservationId ?? ""
      yield* here.ledger.refund(accountId, reservationId, { reason: "goodwill" })

      const [again] = yield* provided(History.reservations({ reservationId }), shared)
      expect(again?.events.map(({ event, recorded }) => [recorded.type, event._tag])).toEqual([
        ["CreditHeld", "CreditReserved"],
        ["HoldCaptured", "OperationSucceeded"],
        ["HoldReturned", "Refunded"]
      ])
      expect(yield* provided(History.accountOfLot(`lot_${accountId}`), shared)).toBe(accountId)

      const usage = Effect.flatMap(UsageBook, (book) => book.read(accountId, monthOf(START)))
      const { operations } = yield* provided(Effect.provide(usage, UsageBook.layer()), shared)
      expect(operations).toEqual([{ operation: "bench.work", calls: 2, units: 2, charged: 2 * UNIT, refunded: UNIT, uncharged: 0 }])
      expect(yield* audited(shared, START)).toEqual([])
      const journal = yield* provided(Stream.runCollect(Journal.journal("jsonl")), shared)
      expect(journal.join("")).toContain('{"account":"income:operations:bench.work","amount":"-1.000"}')
    })
  )

  testing(
    "are checked by the audit: duplicates, overdue holds, excessive refunds",
    Effect.gen(function* () {
      const shared = { events: yield* MemoryEventStore.make, states: yield* MemoryStateStore.make }
      const bench = Bench.makeBench()
      const here = yield* Bench.host(shared, bench)
      const accountId = yield* Bench.opened(here, 10 * UNIT)
      expect(yield* told(here.call(accountId))).toBe("reply")
      const { started } = yield* Bench.paused(bench)
      yield* Effect.forkChild(told(here.call(accountId, { operation: "create" })))
      yield* started

      const payment = { amount: Credits.of(UNIT), source: "topup", paymentRef: "pay_1" } as const
      for (const lotId of ["lot_1", "lot_2"]) yield* here.ledger.execute(accountId, Decisions.grant({ lotId, ...payment }))
      const amount = Credits.of(2 * UNIT)
      const refund: EventOf<"Refunded"> = {
        _tag: "Refunded",
        reservationId: bench.runs[0]?.reservationId ?? "",
        stage: "settled",
        amount,
        reason: "goodwill",
        lots: [{ lotId: `lot_${accountId}`, amount }]
      }
      yield* here.ledger.execute(accountId, () => Result.succeed([refund]))

      const problems = yield* audited(shared, START + hours(1))
      expect(problems.map(({ rule }) => rule).sort()).toEqual([
        "hold-is-not-overdue",
        "late-refund-is-of-its-charge",
        "payment-grants-once"
      ])
    })
  )
})
