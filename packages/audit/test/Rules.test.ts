/** Every rule against a log that breaks it, and logs that break none. */
import { describe, expect, it } from "vitest"
import { CREATE_INBOX, OPEN_SESSION, ROTATE_INBOX, WAIT } from "../src/CallIndex.ts"
import { rules } from "../src/index.ts"
import {
  accepted,
  broken,
  clawedBack,
  counted,
  documentsOfDispute,
  documentsOfRefund,
  event,
  expired,
  failed,
  found,
  givenBack,
  givenBackUngranted,
  granted,
  held,
  heldFor,
  heldForJob,
  heldForMove,
  heldPaid,
  invoiceOfApproval,
  linkRequested,
  logOf,
  lots,
  moved,
  opened,
  paid,
  part,
  recorded,
  refused,
  released,
  reserved,
  type Script,
  sessionEnded,
  sessionExpired,
  sessionOpened,
  sessionUsed,
  sessionWithGrace,
  signedIn,
  signedOut,
  smsReceived,
  spent,
  started,
  succeeded,
  T0,
  T1,
  T2,
  upgradeRequested,
  wait,
  withAlert,
  withApproval,
  withDispute,
  withInbox,
  withInvoice,
  withPasskey,
  withRefundFailed,
  withSession,
  withShop,
  withSignIn,
  withSubscription
} from "./Broken.ts"
import { audit, type Entry, written } from "./Logs.ts"

const reportOf = (script: Script) => audit({ events: written(logOf(script)), snapshots: new Map() })

const problemsOf = async (script: Script) => {
  const events = written(logOf(script))
  const { problems } = await reportOf(script)
  return problems.map(({ position, rule }) => `${rule} @${events.findIndex((event) => event.position === position)}`)
}

describe("finds a log that breaks a rule", () => {
  for (const [rule, what, script, position] of broken) {
    it(`${rule}: ${what}`, async () => {
      const found = await problemsOf(script)
      expect(found).toContain(`${rule} @${position ?? logOf(script).length - 1}`)
      const { means } = (await reportOf(script)).problems.find((problem) => problem.rule === rule) ?? {}
      expect(means?.sentence).toMatch(/^[A-Z\d].*[.a-z]$/u)
      // Whose money it is, and how much; or that no amount changes
      const isOfMoney = means?.credits !== undefined && means.worth !== undefined && means.account === "a"
      expect(isOfMoney || /No amount changes: |proven balance/u.test(means?.sentence ?? ""), JSON.stringify(means)).toBe(true)
      expect(means?.sentence).not.toMatch(/NaN|undefined|null/u)
    })
  }

  const OF_WORKS = /^(?:wait|code|inbox|address|proxy-session|payment|lot-follows|manual-payment|session|alert|coupon|shop|price)-/u
  for (const [rule, what, script, position] of broken.filter(([rule]) => OF_WORKS.test(rule))) {
    it(`nothing but ${rule}: ${what}`, async () => {
      expect(await problemsOf(script)).toEqual([`${rule} @${position ?? logOf(script).length - 1}`])
    })
  }

  it("has a broken log for every rule", () => {
    const proven = new Set(broken.map(([rule]) => rule))
    expect(rules.map(({ name }) => name).filter((name) => !proven.has(name))).toEqual([])
  })
})

describe("finds nothing in a log with", () => {
  const sound: ReadonlyArray<readonly [what: string, script: Script]> = [
    [
      "a charge that is refunded in two parts",
      [...held, succeeded("r", 100, lots), givenBack("r", 60, [part("l", 60)]), givenBack("r", 40, [part("l", 40)])]
    ],
    ["a subscription with an upgrade that was requested", [...withSubscription, upgradeRequested()]],
    ["a session by a link, which ends in time", [...withSignIn, sessionUsed("2026-02-01T00:00:00.000Z"), T1, signedOut()]],
    [
      "a session that expires",
      [...withSignIn, "2026-01-31T00:00:00.000Z", signedOut("expired"), "2026-03-02T00:00:00.000Z", { of: "account-b", is: opened }]
    ],
    ["a session of a sign-up, whose link was not used", [opened, linkRequested, signedIn({ proof: "signUp" })]],
    ["a price alert whose falls are told, and which ends", withAlert],
    ["a shop with a coupon, and prices that change", withShop],
    ["two sessions by a passkey, which is then removed", withPasskey],
    ["a proxy session that expires", [...withSession, counted(1), T1, sessionExpired, counted(2), T2, { of: "account-b", is: opened }]],
    [
      "a proxy session that is counted within its grace",
      [...heldFor(OPEN_SESSION), sessionWithGrace, T1, sessionExpired, "2026-01-01T01:10:00.000Z", counted(2)]
    ],
    ["a proxy session that is open", [...withSession, counted(1)]],
    ["a proxy session whose bytes are used up", [...withSession, succeeded("r", 100, lots), counted(100), sessionEnded, counted(120)]],
    ["a proxy session of a call that was released", [...withSession, released("r", 100, lots)]],
    ["a proxy session that was opened after its hold had ended", [...heldFor(OPEN_SESSION), released("r", 100, lots), sessionOpened]],
    ["an inbox that is charged", [...withInbox, succeeded("r", 100, lots)]],
    ["an inbox that was created after its hold had ended", [...heldFor(CREATE_INBOX), released("r", 100, lots), ...withInbox.slice(-2)]],
    ["a move that is charged", [...withInbox, heldForMove(), ...moved(), succeeded("s", 100, lots)]],
    ["a move of a call that was released", [...withInbox, heldForMove(), ...moved(), released("s", 100, lots)]],
    ["a move after its hold had ended", [...withInbox, heldForMove(), released("s", 100, lots), ...moved()]],
    ["moves that name no call, as before they did", [...withInbox, ...moved("y", null), ...moved("z", null)]],
    [
      "two moves for two calls of one request",
      [...withInbox, heldForMove(), ...moved(), heldForMove({ reservationId: "t" }), ...moved("z")]
    ],
    ["a wait that found a code", [...heldFor(WAIT), smsReceived, found(), succeeded("r", 100, lots)]],
    ["a wait that was not charged after its outcome", [...heldFor(WAIT), smsReceived, found(), released("r", 100, lots)]],
    ["a wait that timed out", [...heldFor(WAIT), wait("WaitTimedOut"), succeeded("r", 100, lots)]],
    ["a wait whose caller left", [...heldFor(WAIT), wait("WaitAbandoned"), released("r", 100, lots, { reason: "cancelled" })]],
    ["an outcome that was written after the hold had ended", [...heldFor(WAIT), released("r", 100, lots), wait("WaitAbandoned")]],
    ["a code of a message of hours before", [smsReceived, "2026-01-01T23:59:00.000Z", ...heldFor(WAIT), found()]],
    [
      "a late charge of a wait",
      [
        ...[opened, granted("l", 1_000), reserved("r", 100, lots, { operation: WAIT, expiresAt: T1 })],
        ...[T1, released("r", 100, lots, { reason: "abandoned", dueAt: T1 }), wait("WaitTimedOut")],
        ...[reserved("s", 100, lots, { operation: WAIT, lateOf: "r" }), succeeded("s", 100, lots)]
      ]
    ],
    ["a lot that expires when it is due", [opened, granted("l", 1, { expiresAt: T1 }), T1, expired("l", 1, T1)]],
    [
      "a hold over two lots",
      [
        opened,
        granted("k", 50),
        granted("l", 50),
        reserved("r", 100, [part("k", 50), part("l", 50)]),
        released("r", 100, [part("l", 50), part("k", 50)])
      ]
    ],
    [
      "a clawback of held credits",
      [
        ...heldPaid,
        clawedBack("p", { amount: 1_000, fromAvailable: 900, fromHeld: 100 }),
        succeeded("r", 100, [part("p", 100)], { owed: [part("p", 100)] })
      ]
    ],
    ["a job that succeeded", [...heldForJob, accepted(), started, recorded, succeeded("r", 100, lots)]],
    ["a job that was refused", [...heldForJob, refused, released("r", 100, lots, { reason: "abandoned" })]],
    ["a job that failed as too late", [...heldForJob, accepted(), failed("TooLate"), released("r", 100, lots, { reason: "expired" })]],
    ["a payment with its bonus", [...withInvoice, T1, { of: "account-b", is: opened }]],
    ["a payment whose dispute was won", [...withDispute, ...documentsOfDispute, T1, { of: "account-b", is: opened }]],
    ["a payment whose refund failed", [...withRefundFailed, ...documentsOfRefund, T1, { of: "account-b", is: opened }]],
    ["a manual payment that was approved", [...withApproval, invoiceOfApproval, T1, { of: "account-b", is: opened }]],
    ["a payment that could not be granted, and went back", givenBackUngranted],
    ["a payment that was captured a moment ago", [...withInvoice.slice(0, 3)]],
    ["a free job", [opened, accepted({ reservationId: null }), started, recorded]],
    [
      "a debt that is repaid",
      [...spent, clawedBack("p", { amount: 100, debt: 100 }), paid("q", 500), event("DebtRepaid", { lotId: "q", amount: 100 })]
    ]
  ]
  for (const [what, script] of sound) {
    it(what, async () => {
      expect(await problemsOf(script)).toEqual([])
    })
  }

  it("only checks that amounts are divisible when the log has no price plans", async () => {
    const entries = logOf([...held, succeeded("r", 100, lots)]).slice(1)
    const odd = logOf([opened, granted("l", 1_000), reserved("r", 100, lots, { quantity: 3 })]).slice(1)
    expect((await audit({ events: written(entries), snapshots: new Map() })).problems).toEqual([])
    expect((await audit({ events: written(odd), snapshots: new Map() })).problems).toMatchObject([{ rule: "hold-is-priced" }])
  })

  it("takes waits, inboxes and proxy sessions without a hold where their calls may be free", async () => {
    const made = [opened, wait("WaitTimedOut"), ...withInbox.slice(-2), ...moved(), sessionOpened]
    const free = { [WAIT]: 0, [CREATE_INBOX]: 0, [ROTATE_INBOX]: 0, [OPEN_SESSION]: 0 }
    const plan: Entry = ["pricePlan-free", T0, event("PricePlanPublished", { version: 1, effectiveAt: T0, prices: free })]
    const rulesOf = async (entries: ReadonlyArray<Entry>) =>
      (await audit({ events: written(entries), snapshots: new Map() })).problems.map(({ rule }) => rule)
    expect(await rulesOf([plan, ...logOf(made)])).toEqual([])
    expect(await rulesOf(logOf(made).slice(1))).toEqual([])
    expect(await rulesOf([...logOf(made), plan])).toEqual([
      "wait-is-of-its-reservation",
      "inbox-is-created-under-its-reservation",
      "inbox-moves-for-one-call",
      "proxy-session-is-opened-under-its-reservation"
    ])
  })

  it("finds a hold at a price that is not in force yet", async () => {
    const next: Entry = [
      "pricePlan-standard",
      T0,
      event("PricePlanPublished", { version: 2, effectiveAt: T1, prices: { "grammar.check": 200 } })
    ]
    const pinned = (at: string) =>
      written([...logOf([opened, granted("l", 1_000)]), next, ["account-a", at, reserved("r", 200, [part("l", 200)], { priceVersion: 2 })]])
    expect((await audit({ events: pinned(T0), snapshots: new Map() })).problems).toMatchObject([{ rule: "hold-is-priced" }])
    expect((await audit({ events: pinned(T1), snapshots: new Map() })).problems).toEqual([])
  })
})
