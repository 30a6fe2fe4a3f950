/** The ledger against its oracle, over thousands of scripts. `MILLRACE_SOAK` multiplies the runs. */
import assert from "node:assert/strict"
import { Account, AccountEvent, AccountSnapshot, Decisions, Lots } from "@millrace/core"
import { Equal, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type Step, script } from "../../../testing/src/Arbitraries.ts"
import { invariants } from "../../../testing/src/Invariants.ts"
import * as OracleLedger from "../../../testing/src/OracleLedger.ts"
import { Book, fold, viewOf } from "./Replay.ts"

const SOAK = Math.max(1, Number(process.env["MILLRACE_SOAK"] ?? 1))
/** A time limit for slow machines. */
const TIMEOUT = 240_000 * SOAK

const runs = (numRuns: number): fc.Parameters<unknown> => ({ numRuns: numRuns * SOAK, ...(SOAK === 1 ? { seed: 1 } : {}) })

/** Periods that were granted late and together are of one age. A refund gives the first of them credits again, and it comes after the others. */
const grantedLate = (): Array<Step> => {
  const start = Date.parse("2026-01-01T00:00:00.000Z")
  const week = start + 7 * 24 * 3_600_000
  const terms = { source: "promotion", priority: 1, every: "day", expires: "never", until: null } as const
  const call = (reservationId: string) => ({ reservationId, quantity: 1, unitPrice: 2, end: { _tag: "itself", lifetime: 1_000 } }) as const
  return [
    { at: start, command: { _tag: "Open" } },
    { at: start, command: { _tag: "StartRecurring", grant: { ...terms, amount: 1, grantId: "grant_001" } } },
    { at: week, command: { _tag: "Reserve", call: call("res_001") } },
    { at: week, command: { _tag: "Settle", reservationId: "res_001", quantity: undefined } },
    { at: week, command: { _tag: "Reserve", call: call("res_002") } },
    { at: week, command: { _tag: "Refund", reservationId: "res_001", reason: "goodwill", amount: undefined } }
  ]
}

/** Whether a caller would make this attempt: not under a key whose reply was just found. */
const wouldBeAsked = ({ command }: Step, oracle: OracleLedger.OracleLedger): boolean => {
  const key = "call" in command ? command.call.key : undefined
  return key === undefined || !oracle.replied(key.hash, key.lookedUpAt)
}

const snapshots = AccountSnapshot.accountSnapshots.state
const encode = Schema.encodeSync(snapshots)
const decode = Schema.decodeUnknownSync(snapshots)
const restored = (account: Account.Account): Account.Account => decode(JSON.parse(JSON.stringify(encode(account))))

/** Compares accounts. One may have forgotten successes that the other remembers; then it says so, and their snapshots are equal. */
const agree = (some: Account.Account, all: Account.Account): boolean =>
  Equal.equals({ ...some, memory: 0 }, { ...all, memory: 0 }) &&
  some.memory.forgotten >= all.memory.forgotten &&
  Equal.equals(AccountSnapshot.save(some), AccountSnapshot.save(all))

const recorded = (book: Book) => book.log.map((logged) => ({ stream: "account-1", ...logged }))

describe("the ledger and its oracle", () => {
  test(
    "agree after every command, refused or not, and at every instant between",
    () => {
      const events = new Set<string>()
      const refusals = new Set<string>()
      fc.assert(
        fc.property(script(), (steps) => {
          const oracle = OracleLedger.make()
          const book = new Book()
          let before = steps[0]?.at ?? 0
          for (const step of steps) {
            const { at, command } = step
            // Between commands, too, the ledger has the state of the oracle
            for (const part of at === before ? [] : [1 / 3, 2 / 3, 1]) {
              const between = Math.floor(before + (at - before) * part)
              assert.deepStrictEqual(viewOf(book.account, between), oracle.view(between))
            }
            before = at
            if (!wouldBeAsked(step, oracle)) continue
            const predicted = oracle.tell(command, at)
            const written = book.log.length
            const refused = book.tell(command, at)
            if (predicted.length === 0) assert.equal(refused, undefined)
            else assert.ok(predicted.includes(refused ?? "nothing"), `refused with ${refused}, not one of ${predicted}`)
            if (refused !== undefined) {
              refusals.add(refused)
              assert.equal(book.log.length, written)
            }
            assert.deepStrictEqual(viewOf(book.account, at), oracle.view(at))
          }
          for (const { event } of book.log) events.add(event._tag)
          assert.deepStrictEqual(invariants(recorded(book)), [])
        }),
        { ...runs(2_000), examples: [[grantedLate()]] }
      )
      // The scripts lead to every event and every refusal
      expect(Object.keys(AccountEvent.cases).filter((tag) => !events.has(tag))).toStrictEqual([])
      const errors = Object.values(Decisions).flatMap((value) =>
        typeof value === "function" && value.prototype instanceof Error ? [value.name] : []
      )
      expect(errors.length).toBeGreaterThan(15)
      // Scripts grant thousands, not a hundred million dollars, and start few recurring grants, and have no jobs on trial: see decisions.test.ts,
      // recurring.test.ts
      const rare = ["BalanceTooLarge", "TooManyRecurringGrants", "TrialExcludesJobs"]
      expect(errors.filter((tag) => !refusals.has(tag)).sort()).toStrictEqual(rare)
    },
    TIMEOUT
  )

  test(
    "agree on a long life of one account",
    () => {
      fc.assert(
        fc.property(script({ minLength: 300, maxLength: 400 }), (steps) => {
          const oracle = OracleLedger.make()
          const book = new Book()
          for (const step of steps) {
            if (step.command._tag === "Close" || !wouldBeAsked(step, oracle)) continue
            oracle.tell(step.command, step.at)
            book.tell(step.command, step.at)
          }
          const end = steps.at(-1)?.at ?? 0
          assert.deepStrictEqual(viewOf(book.account, end), oracle.view(end))
          assert.deepStrictEqual(invariants(recorded(book)), [])
        }),
        runs(30)
      )
    },
    TIMEOUT
  )
})

describe("an account without commands", () => {
  test(
    "has the same state at every instant as an account that writes each event when it is due",
    () => {
      fc.assert(
        fc.property(script({ maxLength: 40 }), (steps) => {
          const asleep = new Book()
          const awake = new Book()
          let before = steps[0]?.at ?? 0
          // As the reply store would: it alone knows of keys older than ten minutes
          const oracle = OracleLedger.make()
          for (const step of steps) {
            const { at, command } = step
            if (command._tag === "ApplyDue" || !wouldBeAsked(step, oracle)) continue
            oracle.tell(command, at)
            for (let now = before; now <= at && now < before + 60_000; now += 1_000) awake.tell({ _tag: "ApplyDue" }, now)
            awake.tell({ _tag: "ApplyDue" }, at)
            before = at
            const late = asleep.tell(command, at)
            const early = awake.tell(command, at)
            // Only the account that has not written the end of a hold can answer that it expired
            if (late === "HoldExpired" || late === "ChargeExceedsHold") assert.ok(early === "AlreadyEnded" || early === late)
            else if (late !== "LookupStale" && early !== "LookupStale") assert.equal(late, early)
            assert.deepStrictEqual(viewOf(asleep.account, at), viewOf(awake.account, at))
          }
        }),
        runs(300)
      )
    },
    TIMEOUT
  )
})

describe("the state of an account", () => {
  test(
    "is the fold of its log, from the start or from any snapshot",
    () => {
      fc.assert(
        fc.property(script(), fc.nat(), (steps, where) => {
          const book = new Book()
          for (const { at, command } of steps) book.tell(command, at)
          const cut = where % (book.log.length + 1)
          const there = fold(book.log.slice(0, cut))
          const snapshot = restored(there)
          assert.ok(agree(snapshot, there))
          const resumed = book.log.slice(cut).reduce((account, { at, event }) => Account.Account.evolve(account, event, at), snapshot)
          assert.ok(agree(resumed, book.account))
          assert.ok(agree(restored(book.account), book.account))
        }),
        runs(300)
      )
    },
    TIMEOUT
  )
})

describe("the invariants", () => {
  test("detect credits granted for longer or shorter than the lifetime in their hold", () => {
    const HOUR = 3_600_000
    for (const [adjustmentLifetime, lives] of [
      [undefined, 7 * 24 * HOUR],
      [HOUR, HOUR]
    ] as const) {
      const book = new Book()
      const end = { _tag: "itself", lifetime: 2_000 } as const
      const hold = { reservationId: "res_1", quantity: 1, unitPrice: 3, end, ...(adjustmentLifetime && { adjustmentLifetime }) }
      book.tell({ _tag: "Open" }, 0)
      book.tell({ _tag: "Grant", lotId: "lot_1", amount: 3, source: "topup", priority: 1, expiresAt: 1_000 }, 0)
      book.tell({ _tag: "Reserve", call: hold }, 0)
      book.tell({ _tag: "ApplyDue" }, 5_000)
      const livingFor = (lifetime: number) =>
        recorded(book).map((entry) =>
          entry.event._tag === "CreditsGranted" && entry.event.source === "adjustment"
            ? { ...entry, event: { ...entry.event, expiresAt: 2_000 + lifetime } }
            : entry
        )
      expect(livingFor(lives)).toStrictEqual(recorded(book))
      expect(invariants(livingFor(lives))).toStrictEqual([])
      for (const wrong of [lives - 1, lives + 1]) {
        expect(invariants(livingFor(wrong))).toMatchObject([{ rule: "credits returned to an expired lot live as long as their hold says" }])
      }
    }
  })

  test("detect a tampered log, and never throw", () => {
    fc.assert(
      fc.property(script(), fc.nat(), fc.constantFrom("removed", "twice", "swapped", "more", "earlier"), (steps, where, how) => {
        const book = new Book()
        for (const { at, command } of steps) book.tell(command, at)
        const log = recorded(book)
        const money = log.flatMap(({ event }, i) => (event._tag === "CreditReserved" || event._tag === "OperationSucceeded" ? [i] : []))
        const i = money[where % Math.max(1, money.length)]
        const entry = i === undefined ? undefined : log[i]
        fc.pre(i !== undefined && entry !== undefined)
        switch (how) {
          case "removed":
            // A hold without later events may have had any content
            fc.pre(entry.event._tag === "CreditReserved" && endsLater(log, i))
            log.splice(i, 1)
            break
          case "twice":
            log.splice(i, 0, entry)
            break
          case "swapped":
            fc.pre(entry.event._tag === "CreditReserved" && endsLater(log, i))
            log.push(...log.splice(i, 1))
            break
          case "more":
            fc.pre(entry.event._tag === "CreditReserved")
            log[i] = {
              ...entry,
              event: { ...entry.event, amount: Lots.total([...entry.event.lots, ...entry.event.lots]) }
            }
            break
          case "earlier":
            fc.pre((log[i - 1]?.at ?? 0) === entry.at)
            log[i] = { ...entry, at: entry.at - 1 }
        }
        assert.notDeepStrictEqual(invariants(log), [])
      }),
      runs(500)
    )
  })
})

const endsLater = (log: ReadonlyArray<{ readonly event: AccountEvent }>, reserved: number): boolean => {
  const event = log[reserved]?.event
  return (
    event !== undefined &&
    log
      .slice(reserved + 1)
      .some((later) => "reservationId" in event && "reservationId" in later.event && later.event.reservationId === event.reservationId)
  )
}
