/** Recurring grants: their calendar, their lots, and what is due after a pause. */
import { Account, type AccountEvent, Decisions, type EventOf, Lots, Periods, RecurringGrants } from "@millrace/core"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { script } from "../../../testing/src/Arbitraries.ts"
import { at, type Dated, given } from "../../../testing/src/GivenWhenThen.ts"
import { invariants } from "../../../testing/src/Invariants.ts"
import { later } from "../../../testing/src/oracle/Calendar.ts"
import { credits, expired, granted, opened } from "./Examples.ts"
import { Book } from "./Replay.ts"

const DAY = 24 * 3_600_000
const JAN_31 = Date.UTC(2026, 0, 31, 9, 30)

const account = (...events: ReadonlyArray<AccountEvent | Dated<AccountEvent>>) => given(Account.Account, [at(JAN_31, opened), ...events])

const terms = { grantId: "grant_1", amount: credits(100), source: "promotion", every: "month" } as const
const started = (more: Partial<EventOf<"RecurringGrantStarted">> = {}): EventOf<"RecurringGrantStarted"> => ({
  ...{ _tag: "RecurringGrantStarted", ...terms, priority: 10, anchor: JAN_31, until: null, expires: "next" },
  ...more
})
const stopped = (grantId = "grant_1"): EventOf<"RecurringGrantStopped"> => ({ _tag: "RecurringGrantStopped", grantId })
const startOf = (period: number) => Periods.startOf(JAN_31, "month", period)
const lotOf = (period: number, expires: "next" | "never" = "next"): EventOf<"CreditsGranted"> => ({
  ...granted(`lot_1_p${period}`, 100, { source: "promotion", ...(expires === "next" ? { expiresAt: startOf(period + 1) } : {}) }),
  recurring: { grantId: "grant_1", period, next: startOf(period + 1) }
})

describe("the calendar", () => {
  test("counts from the anchor, so a short month does not shorten the next ones", () => {
    const months = [0, 1, 2, 3, 13, 25].map((n) => new Date(startOf(n)).toISOString().slice(0, 16))
    expect(months).toEqual([
      ...["2026-01-31T09:30", "2026-02-28T09:30", "2026-03-31T09:30", "2026-04-30T09:30"],
      ...["2027-02-28T09:30", "2028-02-29T09:30"]
    ])
    const leap = Date.UTC(2028, 1, 29)
    expect([1, 4].map((n) => new Date(Periods.startOf(leap, "year", n)).toISOString().slice(0, 10))).toEqual(["2029-02-28", "2032-02-29"])
  })

  const anchor = fc.integer({ min: Date.UTC(1960), max: Date.UTC(2096) })
  const every = fc.constantFrom(...Periods.Every.literals)

  test("is that of a model that counts days", () => {
    fc.assert(
      fc.property(anchor, every, fc.nat(40), (anchor, every, n) => {
        expect(Periods.startOf(anchor, every, n)).toBe(later(anchor, every, n))
      }),
      { seed: 1, numRuns: 500 }
    )
  })

  test("begins at the anchor, goes forward, and keeps the time of day", () => {
    fc.assert(
      fc.property(anchor, every, fc.nat(400), (anchor, every, n) => {
        const [from, next] = [Periods.startOf(anchor, every, n), Periods.startOf(anchor, every, n + 1)]
        expect(Periods.startOf(anchor, every, 0)).toBe(anchor)
        expect(next).toBeGreaterThan(from)
        expect((from - anchor) % DAY).toBe(0)
      }),
      { seed: 1 }
    )
  })
})

describe("a recurring grant", () => {
  test("grants its first lot when it starts, which expires with the next one", () => {
    account()
      .when(Decisions.startRecurringGrant(terms))
      .then([started(), lotOf(0)])
    account()
      .when(Decisions.startRecurringGrant({ ...terms, expires: "never" }))
      .then([started({ expires: "never" }), lotOf(0, "never")])
  })

  test("is started once, and not for nothing", () => {
    account(started(), lotOf(0)).when(Decisions.startRecurringGrant(terms)).then([])
    // Its lot is still there
    account(started(), lotOf(0), stopped()).when(Decisions.startRecurringGrant(terms)).then([])
    account()
      .when(Decisions.startRecurringGrant({ ...terms, amount: credits(0) }))
      .then([])
    account()
      .when(Decisions.startRecurringGrant({ ...terms, until: JAN_31 }))
      .then([])
  })

  test("refuses paid sources, too many, too much, and accounts that cannot be granted anything", () => {
    for (const source of ["topup", "subscription"] as const)
      account()
        .when(Decisions.startRecurringGrant({ ...terms, source }))
        .thenRefused(new Decisions.RecurringSourcePaid({ source }))
    const many = Array.from({ length: RecurringGrants.MAX_RECURRING_GRANTS }, (_, i) =>
      started({ grantId: `grant_x${i}`, anchor: JAN_31 + DAY })
    )
    account(...many)
      .when(Decisions.startRecurringGrant(terms))
      .thenRefused(new Decisions.TooManyRecurringGrants({ limit: 16 }))
    account(granted("a", Decisions.MAX_BALANCE - 99))
      .when(Decisions.startRecurringGrant(terms))
      .thenRefused(new Decisions.BalanceTooLarge({ limit: Decisions.MAX_BALANCE }))
    account({ _tag: "AccountClosed" }).when(Decisions.startRecurringGrant(terms)).thenRefused(new Decisions.AccountClosed())
    given(Account.Account, []).when(Decisions.startRecurringGrant(terms)).thenRefused(new Decisions.AccountNotFound())
  })

  test("is due when its period begins and not before, at a suspended account too", () => {
    account(started(), lotOf(0))
      .when(Decisions.applyDue, startOf(1) - 1)
      .then([])
    account(started(), lotOf(0), { _tag: "AccountSuspended" })
      .when(Decisions.applyDue, startOf(1))
      .then([expired("lot_1_p0", 100, startOf(1)), lotOf(1)])
    account(started(), lotOf(0), at(startOf(1), expired("lot_1_p0", 100, startOf(1))), lotOf(1))
      .when(Decisions.applyDue, startOf(1))
      .then([])
  })

  test("counts from the instant when it is due, before it is written", () => {
    account(started(), lotOf(0))
      .when(Decisions.startRecurringGrant(terms))
      .thenState((state) => {
        for (const n of [1, 2, 7]) {
          const { purse } = Decisions.asOf(state, startOf(n) + 1)
          expect(purse.lots).toMatchObject([{ lotId: `lot_1_p${n}`, left: 100, expiresAt: startOf(n + 1) }])
        }
      })
  })

  test("skips the periods that have ended, where lots expire, and grants all of them where they do not", () => {
    account(started(), lotOf(0))
      .when(Decisions.applyDue, startOf(3) + DAY)
      .then([expired("lot_1_p0", 100, startOf(1)), lotOf(3)])
    account(started({ expires: "never" }), lotOf(0, "never"))
      .when(Decisions.applyDue, startOf(3) + DAY)
      .then([lotOf(1, "never"), lotOf(2, "never"), lotOf(3, "never")])
  })

  test("ends with its last period, with the lot that it grants", () => {
    const until = startOf(2)
    account()
      .when(Decisions.startRecurringGrant({ ...terms, until: startOf(1) }))
      .then([started({ until: startOf(1) }), lotOf(0), stopped()])
    account(started({ until }), lotOf(0))
      .when(Decisions.applyDue, startOf(1))
      .then([expired("lot_1_p0", 100, startOf(1)), lotOf(1), stopped()])
    // All of its periods have ended meanwhile
    account(started({ until }), lotOf(0))
      .when(Decisions.applyDue, startOf(5))
      .then([expired("lot_1_p0", 100, startOf(1)), stopped()])
  })

  test("is stopped by command or with its account; its lots stay", () => {
    account(started(), lotOf(0))
      .when(Decisions.stopRecurringGrant("grant_1"))
      .then([stopped()])
      .thenState((state) => expect(Lots.left(Decisions.asOf(state, startOf(1) - 1).purse.lots)).toBe(100))
    account(started(), lotOf(0), stopped())
      .when(Decisions.stopRecurringGrant("grant_1"))
      .thenRefused(new Decisions.RecurringGrantNotFound({ grantId: "grant_1" }))
    account(started(), lotOf(0))
      .when(Decisions.close)
      .then([stopped(), { _tag: "AccountClosed" }])
    account(started(), lotOf(0), stopped(), { _tag: "AccountClosed" })
      .when(Decisions.applyDue, startOf(2))
      .then([expired("lot_1_p0", 100, startOf(1))])
  })

  test("stays due while it would raise the balance above the largest one", () => {
    const full = account(started({ expires: "never" }), lotOf(0, "never"), granted("a", Decisions.MAX_BALANCE - 250))
    full.when(Decisions.applyDue, startOf(4)).then([lotOf(1, "never")])
    full
      .when(Decisions.applyDue, startOf(1))
      .then([lotOf(1, "never")])
      .thenState((state) => expect(Decisions.expireDue(state, startOf(4))).toEqual([]))
  })
})

describe("the expiry of a lot", () => {
  const lot = granted("a", 10, { expiresAt: JAN_31 + DAY })
  const announced: EventOf<"LotExpiryAnnounced"> = { _tag: "LotExpiryAnnounced", lotId: "a", amount: credits(10), expiresAt: JAN_31 + DAY }

  test("is announced once, with what the lot has", () => {
    account(lot).when(Decisions.announceExpiry("a")).then([announced])
    account(lot, announced).when(Decisions.announceExpiry("a")).then([])
  })

  test("is not announced for a lot that is used up, unknown, or does not expire; one that has expired does so", () => {
    account(lot).when(Decisions.announceExpiry("b")).then([])
    account(granted("a", 10)).when(Decisions.announceExpiry("a")).then([])
    account(lot)
      .when(Decisions.announceExpiry("a"), JAN_31 + DAY)
      .then([expired("a", 10, JAN_31 + DAY)])
    given(Account.Account, []).when(Decisions.announceExpiry("a")).then([])
  })
})

describe("the invariants", () => {
  test("detect a period that is missing, doubled, moved, or of other terms", () => {
    let found = 0
    const kinds = fc.constantFrom("removed", "twice", "more", "other period", "other expiry")
    fc.assert(
      fc.property(script({ maxLength: 40 }), fc.nat(), kinds, (steps, where, how) => {
        const book = new Book()
        for (const { at, command } of steps) book.tell(command, at)
        const log = book.log.map((logged) => ({ stream: "account-1", ...logged }))
        const lots = log.flatMap(({ event }, i) => (event._tag === "CreditsGranted" && event.recurring !== undefined ? [i] : []))
        const i = lots[where % Math.max(1, lots.length)]
        const entry = i === undefined ? undefined : log[i]
        if (i === undefined || entry?.event._tag !== "CreditsGranted" || entry.event.recurring === undefined) return
        found++
        const { event } = entry
        const { recurring } = entry.event
        // What is missing shows with the next event
        if (how === "removed" && i === log.length - 1) return
        if (how === "removed") log.splice(i, 1)
        else if (how === "twice") log.splice(i, 0, entry)
        else if (how === "more") log[i] = { ...entry, event: { ...event, amount: credits(event.amount + 1) } }
        else if (how === "other expiry") log[i] = { ...entry, event: { ...event, expiresAt: recurring.next + 1 } }
        else log[i] = { ...entry, event: { ...event, recurring: { ...recurring, period: recurring.period + 1 } } }
        expect(invariants(log)).not.toEqual([])
      }),
      { seed: 1, numRuns: 400 }
    )
    expect(found).toBeGreaterThan(50)
  })
})
