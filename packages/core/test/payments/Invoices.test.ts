/** Invoices and credit notes: their sums against plain arithmetic, their numbers without gaps, and once for each cause at any host. */
import { Decisions } from "@millrace/core"
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import * as Invoice from "../../src/payments/Invoice.ts"
import { type Due, dueOf, type Step, taxIn } from "../../src/payments/InvoiceDrafts.ts"
import * as InvoicePage from "../../src/payments/InvoicePage.ts"
import * as Payment from "../../src/payments/Payment.ts"
import type { Standing } from "../../src/payments/PaymentGateway.ts"
import { type Stores, stores, testing } from "../accounts/Hosts.ts"
import { outcome } from "../vault/Vaults.ts"
import { life, PAYMENT, PENDING, ScriptedGateway, terms } from "./Gateways.ts"
import { host } from "./Hosts.ts"

const TAX = { name: "VAT", rate: 1_900, region: "DE" }

/** The events of a payment whose gateway tells these standings, one after the other, an hour apart. */
const stepsOf = (standings: ReadonlyArray<Standing>, tax: typeof TAX | undefined): ReadonlyArray<Step> => {
  const { evolve, initial } = Payment.Payment
  const requested = { _tag: "PaymentRequested", ...terms, ...(tax && { tax }) } as const
  const steps: Array<Step> = [{ event: requested, id: "event-0", at: 0 }]
  let payment = evolve(initial, requested, 0)
  standings.forEach((standing, i) => {
    for (const event of Result.getOrThrow(Payment.observe(standing)(payment))) {
      steps.push({ event, id: `event-${steps.length}`, at: (i + 1) * 3_600_000 })
      payment = evolve(payment, event, 0)
    }
  })
  return steps
}

const signOf = ({ _tag }: Due): number => (_tag === "InvoiceIssued" ? 1 : -1)

/** Money that the host has in the end, by plain arithmetic. */
const keptOf = ({ captured, disputes, refunds, status }: Standing): number => {
  if (status !== "captured") return 0
  const gone = [...refunds.filter(({ status }) => status !== "failed"), ...disputes.filter(({ status }) => status !== "won")].reduce(
    (sum, { minor }) => sum + minor,
    0
  )
  return captured - Math.min(gone, captured)
}

describe("the documents of a payment", () => {
  test("sum up to the money that is left of it, net and tax, whatever happened to it", () => {
    const met = new Set<string>()
    fc.assert(
      fc.property(life, fc.boolean(), (standings, isTaxed) => {
        const due = dueOf(stepsOf(standings, isTaxed ? TAX : undefined))
        const sum = (part: "net" | "tax" | "total") => due.reduce((all, document) => all + signOf(document) * document[part], 0)
        const kept = keptOf(standings.at(-1) ?? PENDING)
        expect(sum("total")).toBe(kept)
        expect(sum("tax")).toBe(isTaxed ? taxIn(kept, TAX.rate) : 0)
        expect(sum("net") + sum("tax")).toBe(sum("total"))
        expect(due[0]?._tag).toBe(due.length === 0 ? undefined : "InvoiceIssued")
        expect(new Set(due.map(({ cause }) => cause)).size).toBe(due.length)
        for (const document of due) {
          met.add(`${document._tag}: ${document.lines[0].description}`)
          expect(document.total).toBeGreaterThan(0)
          expect(document.lines.reduce((all, { total }) => all + total, 0)).toBe(document.total)
          expect(document.net + document.tax).toBe(document.total)
          for (const part of ["net", "tax"] as const) expect(document[part]).toBeGreaterThanOrEqual(0)
        }
      })
    )
    expect([...met].sort()).toEqual([
      "CreditNoteIssued: Chargeback",
      "CreditNoteIssued: Refund",
      "InvoiceIssued: 10000 credits",
      "InvoiceIssued: Chargeback that was taken back",
      "InvoiceIssued: Refund that was not taken"
    ])
  })

  test("have the lines that the payment was requested with, and taxes that sum up", () => {
    const amounts = fc.array(fc.integer({ min: -500, max: 2_000 }), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(amounts, fc.nat(2_500), (all, rate) => {
        const amount = all.reduce((sum, one) => sum + one, 0)
        fc.pre(amount > 0)
        const lines = all.map((amount, i) => ({ description: `Line ${i}`, amount, from: 0, until: 86_400_000 }))
        const requested = { _tag: "PaymentRequested", ...terms, amount, lines, tax: { ...TAX, rate } } as const
        const captured = { _tag: "PaymentCaptured", amount } as const
        const steps = [requested, captured].map((event, i) => ({ event, id: `event-${i}`, at: 0 }))
        const [invoice] = dueOf(steps)
        expect(invoice?.lines.map(({ description, total }) => [description, total])).toEqual(
          all.map((amount, i) => [`Line ${i}, 1970-01-01 to 1970-01-02`, amount])
        )
        expect(invoice?.lines.reduce((sum, { tax }) => sum + tax, 0)).toBe(taxIn(amount, rate))
        for (const { net, tax, total } of invoice?.lines ?? []) expect(net + tax).toBe(total)
      })
    )
  })

  test("say of a longer life at first what they said of the shorter one", () => {
    fc.assert(
      fc.property(life, fc.nat(10), (standings, length) => {
        const all = dueOf(stepsOf(standings, TAX))
        const begun = dueOf(stepsOf(standings.slice(0, length), TAX))
        expect(all.slice(0, begun.length)).toEqual(begun)
      })
    )
  })

  test("have the tax that the amount includes, rounded half to even", () => {
    for (const [amount, rate, tax] of [
      [1_190, 1_900, 190],
      [1_000, 1_900, 160],
      [1_000, 0, 0],
      [0, 1_900, 0],
      [3, 10_000, 2],
      [1, 10_000, 0],
      [5, 10_000, 2],
      [7, 10_000, 4]
    ] as const)
      expect([amount, rate, taxIn(amount, rate)]).toEqual([amount, rate, tax])
    fc.assert(
      fc.property(fc.nat(1_000_000_000), fc.nat(10_000), (amount, rate) => {
        const twice = 2 * taxIn(amount, rate) * (10_000 + rate) - 2 * amount * rate
        expect(Math.abs(twice)).toBeLessThanOrEqual(10_000 + rate)
        if (Math.abs(twice) === 10_000 + rate) expect(taxIn(amount, rate) % 2).toBe(0)
      })
    )
  })
})

describe("a number", () => {
  test("is that of its place, in the month in which the payment changed, by UTC", () => {
    const lastOfMonth = Date.UTC(2026, 10, 30, 23, 59, 59, 999)
    expect(Invoice.seriesOf("INV", lastOfMonth)).toBe("INV-2026-11")
    expect(Invoice.seriesOf("CN", lastOfMonth + 1)).toBe("CN-2026-12")
    for (const place of [1, 999_999, 1_000_000]) {
      const number = Invoice.numberOf("INV-2026-11", place)
      expect(Invoice.parseNumber(number)).toEqual({ stream: "INV-2026-11", place })
    }
    for (const other of ["", "INV-2026-11-", "INV-2026-11-000000", "INV-2026-11-0000001", "XX-2026-11-000001", "INV-2026-11-000001 "])
      expect(Invoice.parseNumber(other)).toBeUndefined()
  })

  test("is given once for a cause, and none is left out", () => {
    const [due] = dueOf(stepsOf([{ ...PENDING, status: "captured", captured: 1_000 }], TAX))
    if (due === undefined) throw new Error("A captured payment has an invoice")
    const { evolve, initial } = Invoice.Invoice
    fc.assert(
      fc.property(fc.array(fc.nat(9)), (causes) => {
        let month = initial
        const numbers: Array<string> = []
        for (const cause of causes)
          for (const event of Result.getOrThrow(Invoice.issue("INV-1970-01", { ...due, cause: `${cause}` } as Invoice.Draft)(month))) {
            month = evolve(month, event, 0)
            numbers.push(event.number)
          }
        expect(numbers).toEqual([...new Set(causes)].map((_, i) => Invoice.numberOf("INV-1970-01", i + 1)))
        for (const cause of causes) expect(numbers).toContain(Invoice.numberFor("INV-1970-01", month, `${cause}`))
      })
    )
  })
})

const { expiresAt: _, gateway: __, ...asked } = terms
const order = { ...asked, description: "10,000 credits" }

/** All documents in the log, as their streams have them. */
const documentsIn = ({ events }: Stores) =>
  events.readAll(EventStore.start).pipe(
    Stream.filter(({ stream }) => StreamName.category(stream) === Invoice.Invoice.category),
    Stream.map(({ data, type }) => Invoice.Invoice.codec.decode(type, data)),
    Stream.runCollect
  )

/** A host whose account has a payment, of which the gateway tells what a test says. */
const begun = (shared: Stores) =>
  Effect.gen(function* () {
    const gateway = new ScriptedGateway()
    const here = yield* host(shared, gateway.layer)
    yield* here.ledger.execute("acc_1", Decisions.open({ sealedEmail: "sealed", emailHash: "acc_1" }))
    yield* here.checkout.request(order)
    return { gateway, here }
  })

const CAPTURED: Standing = { ...PENDING, status: "captured", captured: 1_000 }
const LIFE: ReadonlyArray<Standing> = [
  CAPTURED,
  { ...CAPTURED, refunds: [{ reference: "re_1", minor: 300, status: "succeeded" }] },
  {
    ...CAPTURED,
    refunds: [{ reference: "re_1", minor: 300, status: "succeeded" }],
    disputes: [{ reference: "dp_1", minor: 700, status: "open" }]
  },
  {
    ...CAPTURED,
    refunds: [{ reference: "re_1", minor: 300, status: "succeeded" }],
    disputes: [{ reference: "dp_1", minor: 700, status: "won" }]
  }
]

describe("a host", () => {
  testing(
    "has the invoice when the capture is answered, and lists what became of it",
    Effect.gen(function* () {
      const shared = yield* stores
      const { gateway, here } = yield* begun(shared)
      const pages: Array<unknown> = []
      for (const standing of LIFE) {
        gateway.standing = standing
        yield* here.checkout.ask(PAYMENT)
        const { documents } = yield* here.invoiceBook.page("acc_1", { page: 1, perPage: 10 })
        pages.push(documents.map(({ number, status }) => `${number} ${status}`))
      }
      const [first, second] = ["INV-1970-01-000001", "INV-1970-01-000002"]
      const [refund, chargeback] = ["CN-1970-01-000001 issued", "CN-1970-01-000002 issued"]
      expect(pages).toEqual([
        [`${first} paid`],
        [refund, `${first} partly_refunded`],
        [chargeback, refund, `${first} refunded`],
        [`${second} paid`, chargeback, refund, `${first} partly_refunded`]
      ])
      expect(yield* here.invoiceBook.page("acc_1", { page: 2, perPage: 3 })).toEqual({
        documents: [{ number: first, status: "partly_refunded" }],
        total: 4
      })
      expect(yield* here.invoiceBook.page("acc_2", { page: 1, perPage: 3 })).toEqual({ documents: [], total: 0 })
      expect((yield* here.invoices.read(second))?.invoice).toBe(first)
      expect(yield* here.invoices.read("INV-1970-01-000003")).toBeUndefined()
      expect(yield* here.invoices.read("INV-1969-01-000001")).toBeUndefined()
    })
  )

  testing(
    "issues each document once, when several hosts hear of a payment at the same time",
    Effect.gen(function* () {
      const shared = yield* stores
      const { gateway, here } = yield* begun(shared)
      const others = yield* Effect.forEach([1, 2, 3], () => host(shared, gateway.layer))
      for (const standing of LIFE) {
        gateway.standing = standing
        yield* Effect.forEach([here, ...others], ({ checkout }) => checkout.ask(PAYMENT), { concurrency: "unbounded" })
      }
      const numbers = (yield* documentsIn(shared)).map(({ number, total }) => [number, total])
      expect(numbers).toEqual([
        ["INV-1970-01-000001", 1_000],
        ["CN-1970-01-000001", 300],
        ["CN-1970-01-000002", 700],
        ["INV-1970-01-000002", 700]
      ])
    })
  )

  testing(
    "issues what is missing after any append failed, or was not confirmed",
    Effect.gen(function* () {
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(50), Effect.yieldNow)))
      for (const fault of ["before", "lost", "after"] as const)
        for (let n = 1; n <= 8; n++) {
          const shared = yield* stores
          const { gateway, here } = yield* begun(shared)
          gateway.standing = LIFE[3] ?? PENDING
          const faulty: Stores = { ...shared, events: FaultyEventStore.make(shared.events, { plan: { appends: { [n]: fault } } }) }
          const dying = yield* host(faulty, gateway.layer)
          yield* outcome(dying.checkout.ask(PAYMENT))
          yield* here.checkout.ask(PAYMENT)
          const numbers = (yield* documentsIn(shared)).map(({ number }) => number)
          const all = ["INV-1970-01-000001", "CN-1970-01-000001", "CN-1970-01-000002", "INV-1970-01-000002"]
          expect([n, fault, numbers]).toEqual([n, fault, all])
        }
    })
  )
})

describe("the page of a document", () => {
  const [due] = dueOf(stepsOf([CAPTURED], TAX))
  const page = (more: object, buyer: string | undefined = undefined) =>
    InvoicePage.render({ ...due, number: "INV-1970-01-000001", ...more } as Invoice.InvoiceEvent, { buyer, standing: "Paid" })

  test("shows text of others as text", () => {
    const evil = `<script>alert("1")</script>&'`
    const html = page({ seller: evil, lines: [{ description: evil, net: 1, tax: 0, total: 1, lotId: "lot_1" }] }, evil)
    expect(html).not.toContain("<script")
    expect(html.match(/&lt;script&gt;alert\(&quot;1&quot;\)&lt;\/script&gt;&amp;&#39;/gu)).toHaveLength(3)
  })

  test("has amounts with the decimals of their currency", () => {
    expect(page({})).toContain(`<td class="amount">10.00</td>`)
    expect(page({ currency: "JPY" })).toContain(`<td class="amount">1,000</td>`)
    const amounts = { 5: "0.05", 99999: "999.99", 100000: "1,000.00", 1234567890: "12,345,678.90" }
    for (const [total, shown] of Object.entries(amounts)) {
      expect(page({ total: Number(total) })).toContain(`<td class="amount">${shown}</td>`)
      expect(page({ total: -Number(total) })).toContain(`<td class="amount">-${shown}</td>`)
    }
    expect(page({})).toContain("VAT 19 %, DE")
  })
})
