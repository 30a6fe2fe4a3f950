/** Logs that were tampered with: each event of a history in turn, in every way. */
import type { EventStore } from "@millrace/event-sourcing"
import { describe, expect, it } from "vitest"
import type { Head, Report } from "../src/index.ts"
import { type Log, randomHistory, workHistory } from "./Histories.ts"
import { audit, edits, FORGED_ID, placed, rehashed, withData } from "./Logs.ts"

type Event = EventStore.RecordedEvent
type Events = ReadonlyArray<Event>

const nothing: Log["snapshots"] = new Map()
const auditOf = (events: Events, against?: Head) => audit({ events, snapshots: nothing }, against && { against })

/** Whether one of these events is named. */
const names = ({ problems }: Report, ...events: ReadonlyArray<Event | undefined>) =>
  problems.some(({ position, stream }) => events.some((event) => event?.position === position && event.stream === stream))

/** The event after this one in its stream. */
const nextOf = (events: Events, { revision, stream }: Event) =>
  events.find((event) => event.stream === stream && event.revision === revision + 1)

const without = (events: Events, i: number) => placed(events.filter((_, j) => j !== i))
const swapped = (events: Events, i: number, j: number): Events =>
  placed(events.map((event, k) => (k === i ? (events[j] ?? event) : k === j ? (events[i] ?? event) : event)))
const inserted = (events: Events, i: number, event: Event) => placed([...events.slice(0, i), event, ...events.slice(i)])

/** Types of events whose lack shows in other streams, or at the end of the log. */
const NEEDED = new Set([
  ...["PricePlanPublished", "SmsReceived", "CodeFound", "WaitTimedOut", "AddressClaimed", "InboxCreated", "InboxDeleted", "InboxExpired"],
  ...["ProxySessionOpened", "ProxySessionEnded", "ProxySessionExpired"]
])

describe("without new hashes, any audit names the event at fault when", async () => {
  const { events } = await randomHistory(10, 160)

  for (const [what, edit] of Object.entries(edits)) {
    it(`its ${what} was edited`, async () => {
      for (const [i, event] of events.entries()) {
        const edited = edit(event)
        if (edited.data === event.data && edited.metadata === event.metadata && edited.id === event.id && edited.type === event.type)
          continue
        const report = await auditOf(events.map((there, j) => (j === i ? edited : there)))
        expect(names(report, event), `${event.type} at ${event.position}`).toBe(true)
        // And no other is accused of it
        if (what !== "hash" && what !== "time") expect(report.problems.every(({ position }) => position === event.position)).toBe(true)
      }
    })
  }

  it("the event before it was removed", async () => {
    for (const [i, event] of events.entries()) {
      const left = without(events, i)
      const report = await auditOf(left)
      const next = nextOf(events, event)
      if (next === undefined && !NEEDED.has(event.type)) expect(report.ok).toBe(true)
      if (next !== undefined)
        expect(
          names(
            report,
            left.find(({ id }) => id === next.id)
          )
        ).toBe(true)
    }
  })

  it("it was swapped with the next event of its stream", async () => {
    for (const [i, event] of events.entries()) {
      const next = nextOf(events, event)
      if (next === undefined) continue
      const mixed = swapped(events, i, events.indexOf(next))
      expect(names(await auditOf(mixed), ...mixed.filter(({ id }) => id === event.id || id === next.id))).toBe(true)
      // Their numbers set right, only their hashes tell
      const numbered = mixed.map((there) =>
        there.id === event.id
          ? { ...there, revision: next.revision }
          : there.id === next.id
            ? { ...there, revision: event.revision }
            : there
      )
      expect(names(await auditOf(numbered), ...numbered.filter(({ id }) => id === event.id || id === next.id))).toBe(true)
    }
  })

  it("it was inserted", async () => {
    for (const [i, event] of events.entries()) {
      const forged = { ...event, id: FORGED_ID }
      const more = inserted(events, i, forged)
      expect(names(await auditOf(more), more[i])).toBe(true)
      // The others numbered on
      const numbered = more.map((there, j) => (j > i && there.stream === event.stream ? { ...there, revision: there.revision + 1 } : there))
      expect(names(await auditOf(numbered), numbered[i])).toBe(true)
    }
  })

  it("it occurs twice", async () => {
    for (const [i, event] of events.entries()) {
      const twice = inserted(events, Math.min(events.length, i + 3), event)
      const report = await auditOf(twice)
      expect(names(report, ...twice.filter(({ id }) => id === event.id).slice(1))).toBe(true)
      expect(report.problems.map(({ rule }) => rule)).toContain("event-id-is-unique")
    }
  })

  it("it was moved to another stream", async () => {
    for (const [i, event] of events.entries()) {
      const stream = event.stream === "account-acc_01JA" ? "account-acc_01JB" : "account-acc_01JA"
      const revision = events.slice(0, i).filter((there) => there.stream === stream).length
      const moved = { ...event, stream, revision } as const
      expect(names(await auditOf(events.map((there, j) => (j === i ? moved : there))), moved)).toBe(true)
    }
  })

  it("positions do not increase", async () => {
    for (const [i, event] of events.entries()) {
      if (i === 0) continue
      const { position } = events[i - 1] ?? event
      const report = await auditOf(events.map((there, j) => (j === i ? { ...there, position } : there)))
      expect(report.problems.map(({ rule }) => rule)).toContain("position-increases")
    }
  })
})

describe("with new hashes, an audit against an earlier head finds", async () => {
  const { events } = await randomHistory(12, 110)
  const { head } = await auditOf(events)
  const isFound = async (forged: Events) => {
    const { problems } = await auditOf(forged, head)
    expect(problems).toContainEqual(expect.objectContaining({ rule: "log-extends-head", position: head.position }))
  }

  for (const [what, edit] of Object.entries(edits)) {
    if (what === "hash") continue
    it(`an edited ${what}`, async () => {
      for (const [i, event] of events.entries()) {
        const edited = edit(event)
        if (edited.data === event.data && edited.metadata === event.metadata && edited.id === event.id && edited.type === event.type)
          continue
        await isFound(rehashed(events.map((there, j) => (j === i ? edited : there))))
      }
    })
  }

  it("an event that was removed, also the last of its stream", async () => {
    for (const i of events.keys()) await isFound(rehashed(without(events, i)))
  })

  it("events that were swapped", async () => {
    for (const [i, event] of events.entries()) {
      const next = nextOf(events, event)
      if (next !== undefined) await isFound(rehashed(swapped(events, i, events.indexOf(next))))
    }
  })

  it("an event that was inserted", async () => {
    for (const [i, event] of events.entries()) await isFound(rehashed(inserted(events, i, { ...event, id: FORGED_ID })))
  })

  it("a log that was truncated, also if it grew again", async () => {
    for (const i of events.keys()) {
      const short = events.slice(0, i)
      await isFound(short)
      const last = short.at(-1)
      if (last !== undefined) {
        const grown = Array.from({ length: events.length }, (_, k) => ({
          ...last,
          id: `00000000-0000-7000-8000-eeeeeeee${k.toString(16).padStart(4, "0")}`
        }))
        await isFound(rehashed(placed([...short, ...grown])))
      }
    }
  })

  it("a stream that was removed", async () => {
    for (const stream of new Set(events.map((event) => event.stream))) {
      const left = events.filter((event) => event.stream !== stream)
      await isFound(left)
      await isFound(placed(left))
    }
  })

  it("a stream under another name", async () => {
    await isFound(
      rehashed(events.map((event) => (event.stream === "account-acc_01JA" ? { ...event, stream: "account-acc_01JX" as const } : event)))
    )
  })

  it("nothing in a log that was only extended", async () => {
    const part = events.slice(0, 70)
    const early = (await auditOf(part)).head
    expect((await auditOf(events, early)).problems).toEqual([])
  })
})

/** The data of events that is changed here. */
interface Data {
  readonly amount: number
  readonly charged: number
  readonly debt: number
  readonly lots: ReadonlyArray<{ readonly lotId: string; readonly amount: number }>
  readonly priceVersion: number
  readonly quantity: number
  readonly source: string
  readonly toAvailable: number
}

/** Changes each event of a type in turn: a rule names it. */
const eachOf = (events: Events) => async (type: string, change: (data: Data) => object | undefined) => {
  let tried = 0
  for (const [i, event] of events.entries()) {
    const data = event.type === type ? change(JSON.parse(event.data)) : undefined
    if (data === undefined) continue
    tried++
    const report = await auditOf(rehashed(events.map((there, j) => (j === i ? { ...event, data: JSON.stringify(data) } : there))))
    expect(names(report, event), `${event.type} at ${event.position}: ${JSON.stringify(data)}`).toBe(true)
  }
  expect(tried).toBeGreaterThan(0)
}

describe("with new hashes and without a head, the rules name the event at fault when", async () => {
  const { events } = await randomHistory(35, 160)
  const each = eachOf(events)
  const more = (lots: ReadonlyArray<{ lotId: string; amount: number }>, by: number) =>
    lots.map((lot, i) => (i === 0 ? { ...lot, amount: lot.amount + by } : lot))

  it("it holds less than the price", () =>
    each("CreditReserved", (data) => (data.amount > 1 ? { ...data, amount: data.amount - 1, lots: more(data.lots, -1) } : undefined)))
  it("it holds more than the price", () =>
    each("CreditReserved", (data) => ({ ...data, amount: data.amount + 1, lots: more(data.lots, 1) })))
  it("it names another price version", () => each("CreditReserved", (data) => ({ ...data, priceVersion: data.priceVersion + 7 })))
  it("it holds for another quantity", () => each("CreditReserved", (data) => ({ ...data, quantity: data.quantity + 1 })))
  it("it holds credits of a lot that does not exist", () =>
    each("CreditReserved", (data) => ({ ...data, lots: data.lots.map((lot: object) => ({ ...lot, lotId: "lot_made_up" })) })))
  it("it charges less than the units cost", () =>
    each("OperationSucceeded", (data) =>
      data.charged > 1 ? { ...data, charged: data.charged - 1, lots: more(data.lots, -1) } : undefined
    ))
  it("it charges more than the units cost", () => each("OperationSucceeded", (data) => ({ ...data, charged: data.charged + 1 })))
  it("it ends another hold", () => each("OperationSucceeded", (data) => ({ ...data, reservationId: "res_made_up" })))
  it("it refunds more", () => each("Refunded", (data) => ({ ...data, amount: data.amount + 1_000_000, lots: more(data.lots, 1_000_000) })))
  it("it refunds another charge", () => each("Refunded", (data) => ({ ...data, reservationId: "res_made_up" })))
  it("another amount expires", () => each("LotExpired", (data) => ({ ...data, amount: data.amount + 1 })))
  it("a lot expires early", () => each("LotExpired", (data) => ({ ...data, dueAt: "2027-01-01T00:00:00.000Z" })))
  it("a paid lot names no payment", () =>
    each("CreditsGranted", (data) =>
      data.source === "topup" || data.source === "subscription" ? { ...data, paymentRef: null } : undefined
    ))
  it("it claws back another payment", () => each("CreditsClawedBack", (data) => ({ ...data, paymentRef: "pay_other" })))
  it("a clawback leaves less debt", () =>
    each("CreditsClawedBack", (data) => (data.debt > 0 ? { ...data, debt: data.debt - 1 } : undefined)))
  it("it reverses more than was clawed back", () => each("ClawbackReversed", (data) => ({ ...data, toAvailable: data.toAvailable + 1 })))
  it("it repays more debt than was owed", () => each("DebtRepaid", (data) => ({ ...data, amount: data.amount + 1_000_000_000 })))

  it("it ends a hold a second time", async () => {
    for (const [i, event] of events.entries()) {
      if (event.type !== "OperationSucceeded" && !(event.type === "Refunded" && JSON.parse(event.data).stage === "reserved")) continue
      const twice = rehashed(inserted(events, i + 1, { ...event, id: FORGED_ID }))
      expect(names(await auditOf(twice), twice[i + 1])).toBe(true)
    }
  })
})

describe("with new hashes and without a head, the rules of waits, inboxes and proxy sessions find that", async () => {
  const { events } = await workHistory(48, 300)
  const each = eachOf(events)
  const namesCall = ({ metadata, type }: Event) => type === "InboxRotated" && metadata.includes("$correlationId")
  const elsewhere = (data: Data) => ({ ...data, accountId: "acc_01JA" })
  it("a wait is of another account, or names another reservation", async () => {
    for (const type of ["CodeFound", "WaitTimedOut", "WaitAbandoned"]) {
      await each(type, elsewhere)
      await each(type, (data) => ({ ...data, reservationId: "res_made_up" }))
    }
  })
  it("a code is of another message, or number", async () => {
    await each("CodeFound", (data) => ({ ...data, sms: "sms_made_up" }))
    await each("CodeFound", (data) => ({ ...data, number: "+15005550001" }))
  })
  it("an inbox is of another account, or has another address", async () => {
    await each("InboxCreated", elsewhere)
    await each("InboxCreated", (data) => ({ ...data, addressHash: "made_up" }))
    await each("InboxRotated", (data) => ({ ...data, addressHash: "made_up" }))
  })
  it("an inbox moved for another call, or for none that was paid", async () => {
    const requestOf = ({ metadata }: Event): string => JSON.parse(metadata).$correlationId
    let twice = 0
    for (const seed of [48, 49, 50, 51]) {
      const { events } = await workHistory(seed, 250)
      const moves = events.filter(namesCall)
      for (const move of moves) {
        for (const request of ["req_made_up", ...moves.filter((other) => other !== move).map(requestOf)]) {
          const forged = { ...move, metadata: move.metadata.replace(requestOf(move), request) }
          const { problems } = await auditOf(rehashed(events.map((event) => (event === move ? forged : event))))
          // Of two moves for one call, the later one is not paid
          expect(problems).toMatchObject([{ rule: "inbox-moves-for-one-call", means: { account: "acc_01JE" } }])
          if (request !== "req_made_up") twice++
        }
      }
    }
    expect(twice).toBeGreaterThan(0)
  })
  it("a message comes to another address", () => each("MessageReceived", (data) => ({ ...data, addressHash: "made_up" })))
  it("an address is of another inbox", async () => {
    const given = events.flatMap(({ data, type }) =>
      type === "InboxCreated" || type === "InboxRotated" ? JSON.parse(data).addressHash : []
    )
    expect(given.length).toBeGreaterThan(0)
    for (const addressHash of given) {
      const claimed = ({ stream }: Event) => stream === `address-${addressHash}`
      const forged = events.map((event) => (claimed(event) ? withData(event, () => ({ inboxId: "inbox_made_up" })) : event))
      const { problems } = await auditOf(rehashed(forged))
      expect(problems[0]).toMatchObject({ rule: "address-is-of-one-inbox", stream: expect.stringMatching(/^inbox-/u) })
    }
  })
  it("a proxy session is of another account", () => each("ProxySessionOpened", elsewhere))

  it("what a charge is for was removed", async () => {
    const charged = events.flatMap(({ data, type }) => (type === "OperationSucceeded" ? JSON.parse(data).reservationId : []))
    const lateOf = new Map(
      events.flatMap(({ data, type }) => {
        const { lateOf, reservationId } = type === "CreditReserved" ? JSON.parse(data) : {}
        return lateOf === undefined ? [] : [[reservationId, lateOf]]
      })
    )
    const rules = new Set<string>()
    for (const reservationId of charged) {
      const id = String(lateOf.get(reservationId) ?? reservationId).replace(/^res_/u, "")
      const left = events.filter(
        ({ stream }) => !["verification-ver", "inbox-inbox", "proxySession-proxy"].some((kind) => stream === `${kind}_${id}`)
      )
      expect(left.length).toBeLessThan(events.length)
      const { problems } = await auditOf(rehashed(placed(left)))
      expect(problems).toMatchObject([{ stream: "account-acc_01JE", means: { account: "acc_01JE" } }])
      for (const { rule } of problems) rules.add(rule)
    }
    expect([...rules].toSorted()).toEqual([
      "inbox-is-charged-when-created",
      "proxy-session-is-charged-when-opened",
      "wait-is-charged-for-its-outcome"
    ])
  })

  it("their account was removed", async () => {
    const { problems } = await auditOf(rehashed(placed(events.filter(({ stream }) => stream !== "account-acc_01JE"))))
    const first = events.filter(({ revision, stream }) => revision === 0 && /^(?:verification|inbox|proxySession)-/u.test(stream))
    const paid = events.filter((event) => first.includes(event) || namesCall(event))
    expect(problems.map(({ stream }) => stream)).toEqual(paid.map(({ stream }) => stream))
    expect(first.length).toBeGreaterThan(10)
  })

  it("an end was removed", async () => {
    const ends = events.filter(({ type }) => type === "InboxExpired" || type === "InboxDeleted" || type === "ProxySessionExpired")
    const last = Date.parse(JSON.parse(events.at(-1)?.metadata ?? "{}").at)
    for (const end of ends) {
      const left = rehashed(placed(events.filter((event) => event !== end)))
      const { problems } = await audit({ events: left, snapshots: nothing }, { at: last + 2 * 86_400_000 })
      const overdue = problems.filter(({ rule, stream }) => rule.endsWith("-ends-by-its-expiry") && stream === end.stream)
      expect(overdue).toMatchObject([{ means: { account: "acc_01JE" } }])
    }
    expect(new Set(ends.map(({ type }) => type)).size).toBe(3)
  })
})
