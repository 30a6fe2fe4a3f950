/** The journal of payments and their documents: what it says of money, read back, against plain sums; and by the tools that are installed. */
import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Invoice, InvoiceDrafts, Money, Payment } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { Effect, Result, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { life, PENDING, terms } from "../../core/test/payments/Gateways.ts"
import { Journal } from "../src/index.ts"
import * as Beancount from "../src/journal/Beancount.ts"
import * as LedgerFormat from "../src/journal/Ledger.ts"
import { type Entry, idAt, storeOf, written } from "./Logs.ts"

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const START = Date.parse("2026-01-31T20:00:00.000Z")
const HOUR = 3_600_000
const VAT = { name: "VAT", rate: 1_900, region: "DE" }

/** A payment as it is scripted: its account, its money, and what its gateway tells one after the other. */
const scripted = fc.record({
  accountId: fc.constantFrom("acc_1", "acc_2"),
  currency: fc.constantFrom("USD", "EUR", "JPY"),
  gateway: fc.constantFrom("stripe", "paypal"),
  isTaxed: fc.boolean(),
  standings: life
})
type Scripted = typeof scripted extends fc.Arbitrary<infer A> ? A : never

/** Encodes an event of a stream. */
const entryOf = <Event>(
  category: string,
  id: string,
  at: number,
  codec: { readonly encode: (event: Event) => { readonly type: string; readonly data: string } },
  event: Event
): Entry => {
  const { data, type } = codec.encode(event)
  return [StreamName.make(category, id), new Date(at).toISOString(), { _tag: type, ...JSON.parse(data) }]
}

/** The log of these payments, an hour between two events, with the documents that follow at once. */
class LogOfPayments {
  readonly entries: Array<Entry> = []
  readonly #months = new Map<string, Invoice.Month>()

  constructor(payments: ReadonlyArray<Scripted>) {
    payments.forEach((payment, i) => this.#pay(payment, `pay_${`${ALPHABET[i]}`.repeat(26)}`))
  }

  get #now(): number {
    return START + this.entries.length * HOUR
  }

  #pay({ accountId, currency, gateway, isTaxed, standings }: Scripted, paymentId: string): void {
    const { codec, evolve, initial } = Payment.Payment
    const id = Payment.paymentIdOf(paymentId)
    let payment = initial
    let first: string | undefined
    const happen = (event: Payment.PaymentEvent) => {
      const step = { event, id: idAt(this.entries.length), at: this.#now }
      const kept = InvoiceDrafts.keptOf(payment.order)
      payment = evolve(payment, event, step.at)
      this.entries.push(entryOf("payment", id, step.at, codec, event))
      const due = payment.order && InvoiceDrafts.dueAfter(kept, payment.order, step)
      if (due === undefined) return
      const number = this.#issue(due, first)
      first ??= number
    }
    happen({ ...{ _tag: "PaymentRequested", ...terms, paymentId, accountId, currency, gateway }, ...(isTaxed && { tax: VAT }) })
    for (const standing of standings) for (const event of Result.getOrThrow(Payment.observe(standing)(payment))) happen(event)
  }

  #issue(due: InvoiceDrafts.Due, invoice: string | undefined): string {
    const stream = Invoice.seriesOf(Invoice.SERIES[due._tag], due.issuedAt)
    const month = this.#months.get(stream) ?? Invoice.Invoice.initial
    const draft = (invoice === undefined ? due : { ...due, invoice }) as Invoice.Draft
    const [event] = Result.getOrThrow(Invoice.issue(stream, draft)(month))
    if (event === undefined) throw new Error("Each document is issued once")
    this.#months.set(stream, Invoice.Invoice.evolve(month, event, this.#now))
    this.entries.push(entryOf("invoices", stream, this.#now, Invoice.Invoice.codec, event))
    return event.number
  }
}

const entriesOf = (payments: ReadonlyArray<Scripted>): ReadonlyArray<Entry> => new LogOfPayments(payments).entries

const journalOf = (entries: ReadonlyArray<Entry>, format: Journal.FormatName, money = Money.STANDARD) =>
  Effect.runPromise(
    Stream.mkString(Journal.journal(format)).pipe(
      Effect.provideService(Money.Current, money),
      Effect.provide(storeOf({ events: written(entries), snapshots: new Map() }))
    )
  )

/** What the accounts have in the end, in the smallest unit, by plain arithmetic over the last word of each gateway. Zeros are left out. */
const expected = (payments: ReadonlyArray<Scripted>): Record<string, number> => {
  const sums: Record<string, number> = {}
  const add = (account: string, currency: string, amount: number) => {
    sums[`${account} ${currency}`] = (sums[`${account} ${currency}`] ?? 0) + amount
  }
  for (const { currency, gateway, isTaxed, standings } of payments) {
    const { captured, disputes, refunds, status } = standings.at(-1) ?? PENDING
    if (status !== "captured") continue
    const gone = [...refunds.filter(({ status }) => status !== "failed"), ...disputes.filter(({ status }) => status !== "won")]
    const kept = Math.max(
      0,
      gone.reduce((left, { minor }) => left - minor, captured)
    )
    const tax = isTaxed ? InvoiceDrafts.taxIn(kept, VAT.rate) : 0
    add(`assets:gateway:${gateway}`, currency, kept)
    add("income:credits:sold", currency, tax - kept)
    add("liabilities:tax:DE", currency, -tax)
  }
  return Object.fromEntries(Object.entries(sums).filter(([, amount]) => amount !== 0))
}

interface Posted {
  readonly account: string
  readonly amount: string
  readonly commodity: string
}

/** The postings of each event, and the closing balances. */
interface ReadBack {
  readonly transactions: ReadonlyArray<ReadonlyArray<Posted>>
  readonly closing: ReadonlyArray<Posted>
}

const postedIn = (text: string, pattern: RegExp, nameFrom: (name: string) => string): ReadonlyArray<Posted> =>
  [...text.matchAll(pattern)].map(({ groups: { account = "", amount = "", commodity = "" } = {} }) => ({
    ...{ account: nameFrom(account), amount, commodity }
  }))

const readLedger = (text: string): ReadBack => {
  const blocks = text.split("\n\n").filter((block) => /^\d{4}-\d\d-\d\d \* /u.test(block))
  const POSTING = /^ {4}(?<account>[^;\s]\S*) {2}(?:\S+ [A-Z]+ = )?(?<amount>\S+) (?<commodity>[A-Z]+)$/gmu
  const read = blocks.map((block) => postedIn(block, POSTING, LedgerFormat.nameFrom))
  return { transactions: read.slice(0, -1), closing: read.at(-1) ?? [] }
}

const readBeancount = (text: string): ReadBack => {
  const blocks = text.split("\n\n")
  const POSTING = /^ {2}(?<account>[A-Z]\S*) {2}(?<amount>\S+) (?<commodity>[A-Z]+)$/gmu
  const BALANCE = /^\S+ balance (?<account>\S+) {2}(?<amount>\S+) ~ 0 (?<commodity>[A-Z]+)$/gmu
  return {
    transactions: blocks.filter((block) => /^\S+ \* "/u.test(block)).map((block) => postedIn(block, POSTING, Beancount.nameFrom)),
    closing: postedIn(blocks.at(-1) ?? "", BALANCE, Beancount.nameFrom)
  }
}

const readCsv = (text: string): ReadBack => {
  const [header = [], ...rows] = text
    .trimEnd()
    .split("\r\n")
    .map((row) => row.split(","))
  const records = rows.map((row) => Object.fromEntries(header.map((column, i) => [column, row[i] ?? ""])) as Record<string, string>)
  const posted = (amount: string) => (record: Record<string, string>) => ({
    ...{ account: record["account"] ?? "", amount: record[amount] ?? "", commodity: record["commodity"] ?? "" }
  })
  const byType = Map.groupBy(records, (record) => record["type"] === "Balance")
  const events = Map.groupBy(byType.get(false) ?? [], (record) => record["event"])
  return {
    transactions: [...events.values()].map((all) => all.map(posted("amount"))),
    closing: (byType.get(true) ?? []).map(posted("balance"))
  }
}

const readJsonl = (text: string): ReadBack => {
  const objects = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
  const transactions = objects.filter(({ type }) => type !== "Balance")
  return {
    transactions: transactions.map(({ commodity, postings }) => postings.map((posting: Posted) => ({ ...posting, commodity }))),
    closing: objects
      .filter(({ type }) => type === "Balance")
      .map(({ account, balance, commodity }) => ({ account, amount: balance, commodity }))
  }
}

const readers: Readonly<Record<Journal.FormatName, (text: string) => ReadBack>> = {
  hledger: readLedger,
  ledger: readLedger,
  beancount: readBeancount,
  csv: readCsv,
  jsonl: readJsonl
}
const FORMATS = Object.keys(readers) as ReadonlyArray<Journal.FormatName>

/** An amount in the smallest unit. It has as many decimals as the currency. */
const minorOf = ({ amount, commodity }: Posted): number => {
  expect(amount).toMatch(commodity === "JPY" ? /^-?\d+$/u : /^-?\d+\.\d\d$/u)
  return Number(amount.replace(".", ""))
}

const balancesOf = (lines: ReadonlyArray<Posted>): Record<string, number> => {
  const sums: Record<string, number> = {}
  for (const line of lines) {
    const key = `${line.account} ${line.commodity}`
    sums[key] = (sums[key] ?? 0) + minorOf(line)
  }
  return Object.fromEntries(Object.entries(sums).filter(([, amount]) => amount !== 0))
}

const captured = (accountId: Scripted["accountId"], currency: Scripted["currency"], isTaxed = true): Scripted => ({
  ...{ accountId, currency, gateway: "stripe", isTaxed },
  standings: [PENDING, { ...PENDING, status: "captured", captured: 1_000 }]
})

const refunded: Scripted = {
  ...captured("acc_1", "USD"),
  standings: [
    { ...PENDING, status: "captured", captured: 1_000 },
    { ...PENDING, status: "captured", captured: 1_000, refunds: [{ reference: "re_1", minor: 400, status: "succeeded" }] }
  ]
}

describe("a journal of payments", () => {
  for (const format of FORMATS) {
    it(`for ${format} sums to zero in each currency, and ends with what the gateways said last`, async () => {
      const met = new Set<string>()
      await fc.assert(
        fc.asyncProperty(fc.array(scripted, { minLength: 1, maxLength: 5 }), async (payments) => {
          const { closing, transactions } = readers[format](await journalOf(entriesOf(payments), format))
          for (const lines of transactions) {
            expect(new Set(lines.map(({ commodity }) => commodity)).size).toBe(1)
            expect(lines.reduce((sum, line) => sum + minorOf(line), 0)).toBe(0)
            for (const { account } of lines) met.add(account)
          }
          // Each payment is settled, so nobody owes anything
          expect(balancesOf(transactions.flat())).toEqual(expected(payments))
          expect(balancesOf(closing)).toEqual(expected(payments))
        })
      )
      expect([...met].sort()).toEqual([
        ...["assets:gateway:paypal", "assets:gateway:stripe", "assets:receivables:acc_1", "assets:receivables:acc_2"],
        ...["income:credits:sold", "liabilities:tax:DE"]
      ])
    })
  }

  it("has the money of a payment before its invoice as owed to the account, and no invoice as a transaction of its own", async () => {
    const [requested, capture, invoice, ...more] = entriesOf([captured("acc_1", "USD")])
    if (requested === undefined || capture === undefined || invoice === undefined) throw new Error("A payment has its invoice")
    expect(more).toEqual([])
    const { closing } = readJsonl(await journalOf([requested, capture], "jsonl"))
    expect(balancesOf(closing)).toEqual({ "assets:gateway:stripe USD": 1_000, "assets:receivables:acc_1 USD": -1_000 })
  })

  it("has a document at the date of what it follows from, and names both", async () => {
    const [first, capture, invoice] = (await journalOf(entriesOf([refunded]), "jsonl")).split("\n").map((line) => JSON.parse(line || "{}"))
    expect([first.payee, first.note, first.date]).toEqual(["acc_1", `Capture of ${`pay_${"0".repeat(26)}`}`, "2026-01-31"])
    expect([capture.date, capture.note]).toEqual(["2026-01-31", `Invoice INV-2026-01-000001 for pay_${"0".repeat(26)}`])
    expect([capture.commodity, capture.postings]).toEqual([
      "USD",
      [
        { account: "assets:receivables:acc_1", amount: "10.00" },
        { account: "income:credits:sold", amount: "-8.40" },
        { account: "liabilities:tax:DE", amount: "-1.60" }
      ]
    ])
    expect([invoice.type, invoice.note]).toEqual(["PaymentRefunded", `Refund of pay_${"0".repeat(26)}`])
    const hledger = await journalOf(entriesOf([refunded]), "hledger")
    expect(hledger).toContain(`2026-01-31 * acc_1 | Credit note CN-2026-01-000001 for pay_${"0".repeat(26)}\n`)
    // Its event was written on the next day, and the day in the log stays beside it
    expect(hledger).toContain("    ; at: 2026-02-01T00:00:00.000Z\n    assets:receivables:acc_1  -4.00 USD\n")
    expect(await journalOf(entriesOf([refunded]), "ledger")).toContain(
      `2026-01-31 * acc_1\n    ; Invoice INV-2026-01-000001 for pay_${"0".repeat(26)}\n`
    )
  })

  it("declares each currency, and keeps it apart from credits that are called alike", async () => {
    const entries = entriesOf([captured("acc_1", "USD"), captured("acc_1", "EUR"), captured("acc_2", "JPY")])
    const hledger = await journalOf(entries, "hledger")
    for (const line of ["commodity 1000.000 USD", "commodity 1000.00 EUR", "commodity 1000. JPY"])
      expect(hledger.split("\n").filter((one) => one === line).length).toBe(1)
    const money = { credit: "eur", credits: "eurs", value: "0.001", currency: "USD" }
    const text = await journalOf(entries, "hledger", money)
    expect(text).toContain("commodity 1000.000 EUR\n")
    expect(text).toContain("commodity 1000.00 MONEYEUR\n")
    expect(text).toMatch(/^ {4}assets:gateway:stripe {2}10\.00 MONEYEUR$/mu)
    expect(text).not.toMatch(/10\.00 EUR/u)
  })

  it("stops at a document whose tax is of no region", async () => {
    const untold = entriesOf([captured("acc_1", "USD")]).map(([stream, at, event]): Entry => {
      const { taxed: _, ...rest } = event
      return [stream, at, event._tag === "InvoiceIssued" ? rest : event]
    })
    await expect(journalOf(untold, "csv")).rejects.toThrow("INV-2026-01-000001 has a tax, and does not say which")
  })
})

describe("the journal of payments in the tools that are installed", async () => {
  const run = promisify(execFile)
  const isInstalled = async (program: string) => {
    try {
      await run(program, ["--version"])
      return true
    } catch {
      console.warn(`SKIPPED: ${program} is not installed, so its journal of payments was read back by our own tests only`)
      return false
    }
  }
  const tools = [
    ["hledger", "hledger", (file: string) => run("hledger", ["-f", file, "check", "--strict"])],
    ["ledger", "ledger", (file: string) => run("ledger", ["-f", file, "--pedantic", "balance"])],
    ["bean-check", "beancount", (file: string) => run("bean-check", [file])]
  ] as const

  for (const [program, format, check] of tools) {
    it.skipIf(!(await isInstalled(program)))(
      `${program} finds nothing wrong, and a posting that was touched`,
      { timeout: 60_000 },
      async () => {
        const dir = await mkdtemp(join(tmpdir(), "millrace-money-"))
        try {
          const file = join(dir, `journal.${format}`)
          for (const payments of fc.sample(fc.array(scripted, { minLength: 3, maxLength: 6 }), { numRuns: 5, seed: 41 })) {
            await writeFile(file, await journalOf(entriesOf([...payments, refunded]), format))
            await check(file)
          }
          const text = await journalOf(entriesOf([refunded]), format)
          await writeFile(file, text.replace("-8.40 USD", "-8.41 USD"))
          await expect(check(file)).rejects.toThrow()
        } finally {
          await rm(dir, { recursive: true })
        }
      }
    )
  }
})
