/** Audits of logs that were not tampered with, and of logs that this release cannot read in full. */
import { AccountEvent, AccountSnapshot, Credits, Decisions, Inbox, Ledger, ProxySession, Sms, Verification, Webhook } from "@millrace/core"
import { type Decider, EventCodec, type EventStore } from "@millrace/event-sourcing"
import { Effect, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { type Audit, category, Head, MAX_PROBLEMS_OF_STREAM, Report, WHOLE_LOG } from "../src/index.ts"
import { logOf, randomHistory } from "./Histories.ts"
import { audit, type Entry, placed, rehashed, withData, written } from "./Logs.ts"

/** Their histories have every kind of event. */
const SEEDS = [...Array.from({ length: 15 }, (_, i) => i + 2), 26]

describe("an untouched log", () => {
  for (const seed of SEEDS) {
    it(`passes: seed ${seed}`, async () => {
      const log = await randomHistory(seed, 250)
      const report = await audit(log)
      const streams = new Set(log.events.map(({ stream }) => stream)).size
      expect(report.problems).toEqual([])
      expect(report).toMatchObject({ ok: true, found: 0, events: log.events.length, streams, accounts: 5 })
      expect(report.head).toMatchObject({ position: log.events.at(-1)?.position, events: log.events.length, streams })
    })
  }

  it("has every kind of event in these histories", async () => {
    const seen = new Set<string>()
    for (const seed of SEEDS) {
      for (const { data, type } of (await randomHistory(seed, 250)).events) {
        seen.add(type)
        for (const field of ["claimed", "owed", "revived", "dueAt", "lateOf", "keyHash"])
          if (field in JSON.parse(data)) seen.add(`${type}.${field}`)
      }
    }
    const rare = [
      "OperationSucceeded.claimed",
      "OperationSucceeded.owed",
      "Refunded.claimed",
      "Refunded.revived",
      "Refunded.dueAt",
      "CreditReserved.lateOf"
    ]
    expect(
      [AccountEvent, Webhook.WebhookEvent, Sms.SmsEvent, Verification.VerificationEvent, Inbox.InboxEvent, ProxySession.ProxySessionEvent]
        .flatMap(({ cases }) => Object.keys(cases))
        .concat("AddressClaimed", rare)
        .filter((tag) => !seen.has(tag))
    ).toEqual([])
  })

  it("passes when it is empty", async () => {
    const report = await audit({ events: [], snapshots: new Map() })
    expect(report).toMatchObject({ ok: true, events: 0, streams: 0, head: { position: "", at: null } })
  })

  it("gives a report that matches the schema", async () => {
    const report = await audit(await randomHistory(1, 50))
    expect(Schema.decodeUnknownSync(Report)(JSON.parse(JSON.stringify(report)))).toEqual(report)
  })
})

describe("streams that are not accounts", () => {
  const Noted = Schema.TaggedUnion({ Noted: { text: Schema.String } })
  const notes: Decider<string, typeof Noted.Type> = {
    category: "note",
    codec: EventCodec.make(Noted),
    initial: "",
    evolve: (all, { text }) => all + text
  }
  const events = written([
    ["note-1", "2026-01-01T00:00:00.000Z", { _tag: "Noted", text: "a" }],
    ["note-1", "2026-01-01T00:00:00.000Z", { _tag: "Noted" }],
    ["note-1", "2026-01-01T00:00:00.000Z", { _tag: "Noted" }]
  ])

  it("are replayed by their own deciders if they are of the library", async () => {
    const accountId = "acc_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    const at = "2026-01-01T00:00:00.000Z"
    const address = { addressHash: "x", sealedAddress: "s" }
    const known: ReadonlyArray<Entry> = [
      ["email-hmac", at, { _tag: "EmailClaimed", accountId }],
      ["apiKey-1", at, { _tag: "ApiKeyIssued", accountId, hash: "h", scopes: ["read"], expiresAt: null, sealedLabel: null }],
      ["apiKey-1", at, { _tag: "ApiKeyRevoked" }],
      ["pricePlan-standard", at, { _tag: "PricePlanPublished", version: 1, effectiveAt: at, prices: { "inbox.create": 0 } }],
      ["webhook-wh_1", at, { _tag: "WebhookAdded", sealedUrl: "u", sealedSecret: "s", names: null, accountId: null, sealedLabel: null }],
      ["webhook-wh_1", at, { _tag: "WebhookRemoved" }],
      ["address-x", at, { _tag: "AddressClaimed", inboxId: "inbox_1" }],
      ["inbox-inbox_1", at, { _tag: "InboxCreated", accountId, ...address, sealedLabel: null, expiresAt: "2026-01-01T01:00:00.000Z" }],
      ["inbox-inbox_1", at, { _tag: "InboxDeleted" }]
    ]
    expect((await audit({ events: written(known), snapshots: new Map() })).problems).toEqual([])
    const unknown = known.map(([stream, at], i) => [stream, at, { _tag: `Unknown${i}` }] as const)
    const { problems } = await audit({ events: written(unknown), snapshots: new Map() })
    expect(problems.map(({ rule }) => rule)).toEqual(Array(6).fill("event-is-readable"))
  })

  it("are a problem where a wait has two outcomes, or a message is received twice", async () => {
    const at = "2026-01-31T00:00:00.000Z"
    const wait = (reservationId: string) => ({ accountId: "acc_1", reservationId, number: "+15005550006" })
    const received = { _tag: "SmsReceived", source: "twilio", number: "+15005550006", text: { size: 1, hash: "h" } }
    const once = written([
      ["sms-1", at, received],
      ["verification-ver_1", at, { _tag: "CodeFound", ...wait("res_1"), sms: "1" }],
      ["verification-ver_2", at, { _tag: "WaitTimedOut", ...wait("res_2") }],
      ["verification-ver_3", at, { _tag: "WaitAbandoned", ...wait("res_3") }]
    ])
    expect((await audit({ events: once, snapshots: new Map() })).problems).toEqual([])
    const twice = written([
      ["sms-1", at, received],
      ["sms-1", at, received],
      ["verification-ver_1", at, { _tag: "CodeFound", ...wait("res_1"), sms: "1" }],
      ["verification-ver_1", at, { _tag: "WaitTimedOut", ...wait("res_1") }]
    ])
    expect((await audit({ events: twice, snapshots: new Map() })).problems).toMatchObject([
      { stream: "sms-1", rule: "event-is-readable" },
      { stream: "verification-ver_1", rule: "event-is-readable" }
    ])
  })

  it("are a problem where an event cannot follow, as a webhook that is enabled after it was removed", async () => {
    const at = "2026-01-01T00:00:00.000Z"
    const impossible: ReadonlyArray<Entry> = [
      ["webhook-wh_1", at, { _tag: "WebhookAdded", sealedUrl: "u", sealedSecret: "s", names: null, accountId: null, sealedLabel: null }],
      ["webhook-wh_1", at, { _tag: "WebhookRemoved" }],
      ["webhook-wh_1", at, { _tag: "WebhookEnabled" }]
    ]
    const { problems } = await audit({ events: written(impossible), snapshots: new Map() })
    expect(problems).toMatchObject([{ stream: "webhook-wh_1", rule: "event-is-readable" }])
  })

  it("are one problem each if no category has their name", async () => {
    const { problems } = await audit({ events, snapshots: new Map() })
    expect(problems).toMatchObject([{ position: events[0]?.position, stream: "note-1", rule: "stream-is-known" }])
  })

  it("are replayed by the category that a host adds, up to the first event that it cannot read", async () => {
    const { problems } = await audit({ events, snapshots: new Map() }, { categories: [category(notes)] })
    expect(problems).toMatchObject([{ position: events[1]?.position, rule: "event-is-readable" }])
  })
})

describe("an event that cannot be read", () => {
  it("is named, and ends the replay of its stream only", async () => {
    const { events, snapshots } = await randomHistory(3, 200)
    const [first, second] = events.filter(({ type }) => type === "CreditsGranted")
    const unknown = rehashed(events.map((event) => (event === first ? { ...event, type: "CreditsConjured" } : event)))
    const [problem, ...others] = (await audit({ events: unknown, snapshots })).problems
    expect(problem).toMatchObject({ position: first?.position, stream: first?.stream, rule: "event-is-readable" })
    expect(problem?.detail).toContain("CreditsConjured")
    expect(others).toEqual([])

    const both = rehashed(
      events.map((event) =>
        event === first ? { ...event, type: "CreditsConjured" } : event === second ? withData(event, () => ({ amount: -1 })) : event
      )
    )
    expect(first?.stream).not.toBe(second?.stream)
    expect((await audit({ events: both, snapshots })).problems.map(({ stream }) => stream)).toEqual([first?.stream, second?.stream])
  })
})

describe("problems", () => {
  it("of one stream are all counted but kept up to a limit, so that others are seen", async () => {
    const { events, snapshots } = await randomHistory(4, 600)
    const shouting = events.map((event) => (event.stream === "account-acc_01JA" ? { ...event, id: `${event.id}!` } : event))
    const last = events.findLastIndex(({ stream }) => stream === "account-acc_01JB")
    const report = await audit({ events: shouting.map((event, i) => (i === last ? { ...event, id: `${event.id}!` } : event)), snapshots })
    const mine = shouting.filter(({ stream }) => stream === "account-acc_01JA").length
    expect(mine).toBeGreaterThan(MAX_PROBLEMS_OF_STREAM)
    expect(report.found).toBe(mine + 1)
    expect(report.problems.length).toBe(MAX_PROBLEMS_OF_STREAM + 1)
    expect(report.problems).toContainEqual(expect.objectContaining({ position: events[last]?.position, stream: "account-acc_01JB" }))
  })
})

describe("snapshots", () => {
  const busy = () =>
    logOf(
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const id = "acc_01JA"
        yield* ledger.execute(id, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
        yield* ledger.execute(id, Decisions.grant({ lotId: "lot_1", amount: Credits.of(5_000_000), source: "topup", paymentRef: "pay_1" }))
        for (let i = 0; i < 600; i++) {
          const reservationId = `res_${i}`
          const call = { reservationId, requestId: `req_${i}`, operation: "grammar.check", quantity: 1, priceVersion: 1 }
          yield* ledger.execute(id, Decisions.reserve({ ...call, unitPrice: Credits.of(1_000), lifetime: 60_000 }))
          if (i % 7 > 0) yield* ledger.execute(id, Decisions.settle({ reservationId, replyHash: "hash" }))
        }
      })
    )
  const name = `accountSnapshot.v${AccountSnapshot.VERSION}-acc_01JA`

  const changed = (snapshot: EventStore.StoredSnapshot, change: (saved: { state: Record<string, unknown>; hash: string }) => unknown) => ({
    revision: snapshot.revision,
    data: JSON.stringify(change(JSON.parse(snapshot.data)))
  })

  it("are compared with the replay at their revision", async () => {
    const { events, snapshots } = await busy()
    const snapshot = snapshots.get(name)
    if (snapshot === undefined) throw new Error("A thousand events make a snapshot")
    expect(snapshot.revision).toBeGreaterThanOrEqual(999)
    expect((await audit({ events, snapshots })).problems).toEqual([])

    const where = events.find(({ revision, stream }) => stream === "account-acc_01JA" && revision === snapshot.revision)?.position
    const forged = async (snapshot: EventStore.StoredSnapshot) => (await audit({ events, snapshots: new Map([[name, snapshot]]) })).problems
    const richer = changed(snapshot, (saved) => ({
      ...saved,
      state: { ...saved.state, purse: { ...(saved.state["purse"] as object), lots: [] } }
    }))
    expect(await forged(richer)).toMatchObject([{ position: where, stream: "account-acc_01JA", rule: "snapshot-agrees" }])
    expect((await forged(richer))[0]?.detail).toContain("lots")
    expect((await forged(changed(snapshot, (saved) => ({ ...saved, hash: "x".repeat(43) }))))[0]?.detail).toContain("hash")
    expect((await forged({ ...snapshot, data: "{}" }))[0]?.detail).toContain("cannot be read")
    expect(await forged({ ...snapshot, revision: snapshot.revision - 1 })).toMatchObject([{ rule: "snapshot-agrees" }])
  })

  it("ahead of the log show that the log lost its end", async () => {
    const { events, snapshots } = await busy()
    const short = events.slice(0, 700)
    expect((await audit({ events: short, snapshots })).problems).toMatchObject([
      { position: short.at(-1)?.position, stream: "account-acc_01JA", rule: "snapshot-agrees" }
    ])
  })
})

describe("names that must be unique", () => {
  const grant = (lotId: string, over: object = {}) => ({
    _tag: "CreditsGranted",
    ...{ lotId, amount: 1_000, source: "topup", priority: 40, expiresAt: null, paymentRef: `pay_${lotId}` },
    ...over
  })
  const reserve = (reservationId: string) => ({
    _tag: "CreditReserved",
    ...{ reservationId, requestId: "req", operation: "x", quantity: 1, priceVersion: 1, amount: 10 },
    ...{ lots: [{ lotId: "a", amount: 10 }], expiresAt: "2027-01-01T00:00:00.000Z" }
  })
  const refunded = {
    _tag: "Refunded",
    reservationId: "r",
    stage: "reserved",
    amount: 10,
    reason: "cancelled",
    lots: [{ lotId: "a", amount: 10 }]
  }
  const opened = { _tag: "AccountOpened", sealedEmail: "", emailHash: "" }
  const at = "2026-01-01T00:00:00.000Z"

  // Whether they fit into memory or take several readings of the log
  for (const uniques of [undefined, 3]) {
    const check = async (events: ReturnType<typeof written>, options: Audit.Options = {}) =>
      (await audit({ events, snapshots: new Map() }, { ...options, ...(uniques && { uniques }) })).problems
    const many = Array.from({ length: 3_000 }, (_, i) => ["account-z", at, i === 0 ? opened : grant(`z${i}`)] as const)

    it(`are no problem when they are unique, in ${uniques === undefined ? "one reading" : "several"}`, async () => {
      expect(await check(written(many))).toEqual([])
    })

    it(`are found when two accounts have the same payment, in ${uniques === undefined ? "one reading" : "several"}`, async () => {
      const events = written([...many, ["account-a", at, opened], ["account-a", at, grant("a", { paymentRef: "pay_z7" })]])
      expect(await check(events)).toMatchObject([{ position: events.at(-1)?.position, stream: "account-a", rule: "payment-grants-once" }])
    })

    it(`are found when two events have the same id, in ${uniques === undefined ? "one reading" : "several"}`, async () => {
      const events = written([...many, ["account-a", at, opened]])
      const twice = rehashed(events.map((event, i) => (i === 3_000 ? { ...event, id: events[5]?.id ?? "" } : event)))
      const [problem, ...others] = await check(twice)
      expect(problem).toMatchObject({ position: events[3_000]?.position, rule: "event-id-is-unique" })
      expect(problem?.detail).toContain(events[5]?.position)
      expect(others).toEqual([])
    })

    it(`are found when an account makes a reservation twice, in ${uniques === undefined ? "one reading" : "several"}`, async () => {
      const events = written([
        ...many,
        ["account-a", at, opened],
        ["account-a", at, grant("a")],
        ["account-a", at, reserve("r")],
        ["account-a", at, refunded],
        ["account-a", at, reserve("r")],
        ["account-a", at, refunded]
      ])
      expect(await check(events)).toMatchObject([{ position: events.at(-2)?.position, rule: "reservation-is-made-once" }])
    })

    it(`are found when an account gets sign-up credits twice, in ${uniques === undefined ? "one reading" : "several"}`, async () => {
      const signup = (lotId: string) => grant(lotId, { source: "signup", paymentRef: null })
      const events = written([...many, ["account-a", at, opened], ["account-a", at, signup("s")], ["account-a", at, signup("t")]])
      expect(await check(events)).toMatchObject([{ position: events.at(-1)?.position, rule: "sign-up-credits-are-granted-once" }])
    })
  }
})

describe("a hold after its deadline", () => {
  const at = "2026-01-01T00:00:00.000Z"
  const hold = (over: object) => ({
    _tag: "CreditReserved",
    ...{
      reservationId: "r",
      requestId: "req",
      operation: "x",
      quantity: 1,
      priceVersion: 1,
      amount: 10,
      lots: [{ lotId: "a", amount: 10 }]
    },
    ...over
  })
  const logWith = (over: object, ...more: ReadonlyArray<Entry>) =>
    written([
      ["account-a", at, { _tag: "AccountOpened", sealedEmail: "", emailHash: "" }],
      [
        "account-a",
        at,
        { _tag: "CreditsGranted", lotId: "a", amount: 10, source: "promotion", priority: 1, expiresAt: null, paymentRef: null } as {
          _tag: string
        }
      ],
      ["account-a", at, hold(over)],
      ...more
    ])
  const ask = async (events: ReturnType<typeof written>, options: Audit.Options = {}) =>
    (await audit({ events, snapshots: new Map() }, options)).problems
  const later: Entry = ["account-b", "2026-01-02T00:00:00.000Z", { _tag: "AccountOpened", sealedEmail: "", emailHash: "" }]
  const recoverable = { recoverable: true, expiresAt: "2026-01-01T01:00:00.000Z" }

  it("is overdue at the log's last time, or at the given time", async () => {
    expect(await ask(logWith(recoverable))).toEqual([])
    const overdue = logWith(recoverable, later)
    expect(await ask(overdue)).toMatchObject([{ position: overdue[2]?.position, stream: "account-a", rule: "hold-is-not-overdue" }])
    expect(await ask(overdue, { at: Date.parse("2026-01-01T00:59:59.999Z") })).toEqual([])
    expect(await ask(logWith(recoverable), { at: Date.parse("2026-01-01T01:00:00.000Z") })).toMatchObject([{ rule: "hold-is-not-overdue" }])
  })

  it("is not overdue if the ledger ends it by itself", async () => {
    expect(await ask(logWith({ expiresAt: "2026-01-01T01:00:00.000Z" }, later))).toEqual([])
  })

  it("is not overdue while an accepted job runs, but is if the job was never accepted", async () => {
    const jobHold = { jobId: "job_1", acceptBy: "2026-01-01T00:00:30.000Z" }
    expect(await ask(logWith(jobHold, later))).toMatchObject([{ rule: "hold-is-not-overdue" }])
    const accepted: Entry = [
      "job-job_1",
      at,
      {
        _tag: "JobAccepted",
        ...{ accountId: "a", operation: "work", family: "work", requestId: "req", reservationId: "r", quantity: 1 },
        ...{ input: { size: 1, hash: "input" }, attempts: 5, deadline: "2026-01-03T00:00:00.000Z", retention: 1_000 }
      }
    ]
    expect(await ask(logWith({ ...jobHold, operation: "work", quantity: 1 }, accepted, later))).toEqual([])
  })
})

describe("a head", () => {
  it("covers the whole log and can be kept as JSON", async () => {
    const log = await randomHistory(5, 100)
    const { head } = await audit(log)
    const kept = Schema.decodeUnknownSync(Schema.fromJsonString(Head))(JSON.stringify(head))
    expect((await audit(log, { against: kept })).problems).toEqual([])
  })

  it("of any earlier position is extended by the log", async () => {
    const { events, snapshots } = await randomHistory(6, 80)
    for (let n = 0; n <= events.length; n += 3) {
      const { head } = await audit({ events: events.slice(0, n), snapshots: new Map() })
      expect((await audit({ events, snapshots }, { against: head })).problems).toEqual([])
    }
  })

  it("that is not extended is a problem of the whole log", async () => {
    const log = await randomHistory(7, 60)
    const { head } = await audit(log)
    const report = await audit({ ...log, events: placed(log.events.slice(0, -1)) }, { against: head })
    const stream = log.events.at(-1)?.stream
    expect(report.problems).toMatchObject([
      { stream: WHOLE_LOG, position: head.position, rule: "log-extends-head" },
      { stream, position: head.position, rule: "stream-extends-head" }
    ])
  })
})
