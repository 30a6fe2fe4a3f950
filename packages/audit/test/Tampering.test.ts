/** Logs that were tampered with: each event of a history in turn, in every way. */
import type { EventStore } from "@millrace/event-sourcing"
import { describe, expect, it } from "vitest"
import type { Head, Report } from "../src/index.ts"
import { type Log, randomHistory } from "./Histories.ts"
import { audit, placed, rehashed, withData } from "./Logs.ts"

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

const FORGED_ID = "00000000-0000-7000-8000-ffffffffffff"

/** Changes of one event, by what is changed. */
const edits: Readonly<Record<string, (event: Event) => Event>> = {
  data: (event) => withData(event, (data) => ({ ...data, note: 1 })),
  amount: (event) =>
    withData(event, (data) =>
      Object.fromEntries(Object.entries(data).map(([key, value]) => [key, typeof value === "number" ? value + 1 : value]))
    ),
  "a byte of text": (event) => ({ ...event, data: event.data.replace(/[a-z0-9](?="?\}?$)/u, (c) => (c === "x" ? "y" : "x")) || " " }),
  type: (event) => ({ ...event, type: `${event.type}d` }),
  id: (event) => ({ ...event, id: FORGED_ID }),
  time: (event) => ({ ...event, metadata: event.metadata.replace(/"at":"2026-01/u, `"at":"2027-01`) }),
  hash: (event) => ({
    ...event,
    metadata: event.metadata.replace(/"hash":"./u, (open) => open.slice(0, -1) + (open.endsWith("A") ? "B" : "A"))
  }),
  "who did it": (event) => ({ ...event, metadata: `${event.metadata.slice(0, -1)},"actor":"nobody"}` })
}

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
      if (next === undefined && event.type !== "PricePlanPublished") expect(report.ok).toBe(true)
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

describe("with new hashes and without a head, the rules name the event at fault when", async () => {
  const { events } = await randomHistory(35, 160)
  const each = async (type: string, change: (data: Data) => object | undefined) => {
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
