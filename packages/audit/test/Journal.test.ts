/** Journals: read back by a few lines here and, where they are installed, by the tools they are for. */
import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Account, Lots, Money } from "@millrace/core"
import { HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Result, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Export, Journal, lineOf } from "../src/index.ts"
import * as Beancount from "../src/journal/Beancount.ts"
import { commodityOf, decimal } from "../src/journal/Format.ts"
import * as LedgerFormat from "../src/journal/Ledger.ts"
import { type Log, randomHistory } from "./Histories.ts"
import { rehashed, storeOf, withData } from "./Logs.ts"

const journalOf = (log: Log, format: Journal.FormatName) =>
  Effect.runPromise(Stream.mkString(Journal.journal(format)).pipe(Effect.provide(storeOf(log))))

/** Balances of customers' accounts by the fold alone, in thousandths, debit positive; of those that ever had any credits. */
const folded = ({ events }: Log): Record<string, number> => {
  const { codec } = Account.Account
  const states = new Map<string, Account.Account>()
  for (const event of events) {
    if (StreamName.category(event.stream) !== "account") continue
    const id = StreamName.id(event.stream)
    const at = Date.parse(HashChain.atOf(event))
    states.set(id, Account.Account.evolve(states.get(id) ?? Account.initial, codec.decode(event.type, event.data), at))
  }
  const balances: Record<string, number> = {}
  for (const [id, account] of states) {
    balances[`liabilities:credits:${id}:available`] = 0 - Lots.left(account.purse.lots)
    balances[`liabilities:credits:${id}:reserved`] = 0 - Lots.held(account.purse.lots)
    balances[`assets:receivable:${id}`] = Account.debt(account) + account.purse.lots.reduce((sum, lot) => sum + lot.claimed, 0)
  }
  return balances
}

/** A journal as read back: what each transaction posts, and the balances it ends with. */
interface ReadBack {
  readonly transactions: ReadonlyArray<ReadonlyArray<readonly [account: string, thousandths: number]>>
  readonly events: ReadonlyArray<string>
  readonly closing: Readonly<Record<string, number>>
}

const thousandths = (text: string): number => {
  expect(text).toMatch(/^-?\d+\.\d{3}$/u)
  return Number(text.replace(".", ""))
}

const readLedger = (text: string): ReadBack => {
  const blocks = text.split("\n\n").filter((block) => /^\d{4}-\d\d-\d\d \* /u.test(block))
  const lines = blocks.map((block) =>
    [...block.matchAll(/^ {4}(?<account>[^;\s]\S*) {2}(?<amount>\S+) CREDIT(?: = (?<balance>\S+) CREDIT)?$/gmu)].map(({ groups = {} }) => ({
      account: LedgerFormat.nameFrom(groups["account"] ?? ""),
      amount: thousandths(groups["amount"] ?? ""),
      balance: groups["balance"]
    }))
  )
  return {
    transactions: lines.slice(0, -1).map((all) => all.map(({ account, amount }) => [account, amount])),
    events: [...text.matchAll(/^ {4}; event: (.+)$/gmu)].map(([, id = ""]) => id),
    closing: Object.fromEntries((lines.at(-1) ?? []).map(({ account, balance = "" }) => [account, thousandths(balance)]))
  }
}

const readBeancount = (text: string): ReadBack => {
  const blocks = text.split("\n\n")
  const postings = (block: string) =>
    [...block.matchAll(/^ {2}(?<account>[A-Z]\S*) {2}(?<amount>\S+) CREDIT$/gmu)].map(
      ({ groups = {} }) => [Beancount.nameFrom(groups["account"] ?? ""), thousandths(groups["amount"] ?? "")] as const
    )
  const closing = [...(blocks.at(-1) ?? "").matchAll(/^\S+ balance (?<account>\S+) {2}(?<amount>\S+) ~ 0 CREDIT$/gmu)]
  return {
    transactions: blocks.filter((block) => /^\S+ \* "/u.test(block)).map(postings),
    events: [...text.matchAll(/^ {2}event: "(.+)"$/gmu)].map(([, id = ""]) => id),
    closing: Object.fromEntries(
      closing.map(({ groups = {} }) => [Beancount.nameFrom(groups["account"] ?? ""), thousandths(groups["amount"] ?? "")])
    )
  }
}

/** RFC 4180, as strict as that. */
const readRows = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  expect(text.endsWith("\r\n")).toBe(true)
  expect(text.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/u)
  return text
    .slice(0, -2)
    .split("\r\n")
    .map((row) =>
      [...row.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/gu)].map(([, quoted, plain]) => quoted?.replaceAll(`""`, `"`) ?? plain ?? "")
    )
}

const readCsv = (text: string): ReadBack => {
  const [header = [], ...rows] = readRows(text)
  const records = rows.map((row) => {
    expect(row.length).toBe(header.length)
    return Object.fromEntries(header.map((column, i) => [column, row[i] ?? ""]))
  })
  const byEvent = Map.groupBy(
    records.filter((record) => record["type"] !== "Balance"),
    (record) => record["event"] ?? ""
  )
  return {
    transactions: [...byEvent.values()].map((all) => all.map((record) => [record["account"] ?? "", thousandths(record["amount"] ?? "")])),
    events: [...byEvent.keys()],
    closing: Object.fromEntries(
      records.filter((record) => record["type"] === "Balance").map((record) => [record["account"], thousandths(record["balance"] ?? "")])
    )
  }
}

interface Written {
  readonly type: string
  readonly event: string
  readonly account: string
  readonly balance: string
  readonly postings: ReadonlyArray<{ readonly account: string; readonly amount: string }>
}

const readJsonl = (text: string): ReadBack => {
  const objects = text
    .trimEnd()
    .split("\n")
    .map((line): Written => JSON.parse(line))
  const transactions = objects.filter(({ type }) => type !== "Balance")
  return {
    transactions: transactions.map(({ postings }) => postings.map(({ account, amount }) => [account, thousandths(amount)])),
    events: transactions.map(({ event }) => event),
    closing: Object.fromEntries(
      objects.filter(({ type }) => type === "Balance").map(({ account, balance }) => [account, thousandths(balance)])
    )
  }
}

const readers: Readonly<Record<Journal.FormatName, (text: string) => ReadBack>> = {
  hledger: readLedger,
  ledger: readLedger,
  beancount: readBeancount,
  csv: readCsv,
  jsonl: readJsonl
}
const names: ReadonlyArray<Journal.FormatName> = ["hledger", "ledger", "beancount", "csv", "jsonl"]

const totals = ({ transactions }: ReadBack): Record<string, number> => {
  const sums: Record<string, number> = {}
  for (const [account, amount] of transactions.flat()) sums[account] = (sums[account] ?? 0) + amount
  return sums
}

describe("a journal", () => {
  for (const name of names) {
    it(`for ${name} sums to zero and agrees with the ledger when it is read back`, async () => {
      for (const seed of [21, 22, 23, 24]) {
        const log = await randomHistory(seed, 250)
        const read = readers[name](await journalOf(log, name))
        expect(read.transactions.length).toBeGreaterThan(50)
        for (const lines of read.transactions) expect(lines.reduce((sum, [, amount]) => sum + amount, 0)).toBe(0)
        expect(new Set(read.events).size).toBe(read.transactions.length)

        const sums = totals(read)
        const balances = folded(log)
        expect(read.closing).toEqual(sums)
        expect(Object.values(sums).reduce((a, b) => a + b, 0)).toBe(0)
        for (const [account, balance] of Object.entries(balances)) expect([account, sums[account] ?? 0]).toEqual([account, balance])
        const house = Object.keys(sums).filter((account) => !(account in balances))
        expect(
          house.every((account) => /^(assets:payments|income:(operations:[\w.]+|refunds|breakage)|expenses:promotions)$/u.test(account))
        ).toBe(true)
      }
    })

    it(`for ${name} of an empty log has only a heading`, async () => {
      const text = await journalOf({ events: [], snapshots: new Map() }, name)
      expect(text.split("\n").length).toBeLessThan(25)
    })
  }

  it("has one transaction, with its event, for each event that moved money", async () => {
    const log = await randomHistory(25, 200)
    const { events } = readJsonl(await journalOf(log, "jsonl"))
    const known = new Map(log.events.map((event) => [event.id, event.type]))
    for (const event of events) expect(known.get(event)).toMatch(/^(Credit|Operation|Refunded|Lot|Debt|Clawback)/u)
  })

  it("stops at the first event that cannot be read, and names it", async () => {
    const { events, snapshots } = await randomHistory(26, 100)
    const granted = events.find(({ type }) => type === "CreditsGranted")
    const spoilt = rehashed(events.map((event) => (event === granted ? withData(event, () => ({})) : event)))
    const error = await Effect.runPromise(
      Effect.flip(Stream.runDrain(Journal.journal("csv"))).pipe(Effect.provide(storeOf({ events: spoilt, snapshots })))
    )
    expect(error).toMatchObject({ _tag: "UnreadableLog", position: granted?.position, stream: granted?.stream })
  })

  it("refuses a log at the first event that does not verify, unless it is told not to check", async () => {
    const { events, snapshots } = await randomHistory(27, 60)
    const changed = events.findLast(({ type }) => type === "CreditReserved")
    const i = events.findIndex(({ id }) => id === changed?.id)
    const forged = { snapshots, events: events.map((event, j) => (j === i ? { ...event, id: `${event.id}x` } : event)) }
    const { stream } = events[i] ?? { stream: "account-none" as const }
    const removed = events.findIndex((event) => event.stream === stream && event.revision === 1)
    const logs = [
      [forged, changed?.position, /hash does not match/u],
      [{ snapshots, events: events.toSpliced(removed, 1) }, undefined, /its revision is 2 instead of 1/u],
      [{ snapshots, events: events.toSpliced(i, 0, events[0] ?? forged.events[0]!) }, events[0]?.position, /it follows position/u]
    ] as const
    for (const [log, position, reason] of logs) {
      const pieces: Array<string> = []
      const error = await Effect.runPromise(
        Effect.flip(Stream.runForEach(Journal.journal("jsonl"), (text) => Effect.sync(() => pieces.push(text)))).pipe(
          Effect.provide(storeOf(log))
        )
      )
      expect(error._tag).toBe("UnverifiedLog")
      expect(error.message).toMatch(reason)
      if (position !== undefined) expect(error).toMatchObject({ position })
    }
    const text = await Effect.runPromise(
      Stream.mkString(Journal.journal("hledger", { unverified: true })).pipe(Effect.provide(storeOf(forged)))
    )
    expect(text).toContain("; NOT VERIFIED")
    const verified = await journalOf({ events, snapshots }, "hledger")
    expect(readLedger(text).closing).toEqual(readLedger(verified).closing)
  })

  it("has the account as payee, and the operation, request and reservation of a call", async () => {
    const log = await randomHistory(28, 200)
    const calls = new Map(
      log.events
        .filter(({ type }) => type === "CreditReserved")
        .map(({ data }) => [JSON.parse(data).reservationId, JSON.parse(data)] as const)
    )
    const lines = (await journalOf(log, "jsonl")).trimEnd().split("\n")
    const entries = lines.map((line) => JSON.parse(line)).filter(({ type }) => type !== "Balance")
    let tagged = 0
    for (const { note, operation, payee, request, reservation, source, stream, type } of entries) {
      expect([payee, note]).toEqual([StreamName.id(stream), expect.stringMatching(/^[A-Z]/u)])
      if (type === "CreditsGranted") expect(["signup", "topup", "subscription", "promotion", "adjustment"]).toContain(source)
      const call = calls.get(reservation)
      if (type === "CreditReserved" || type === "OperationSucceeded") expect(call).toBeDefined()
      if (operation === undefined) continue
      tagged++
      expect([operation, request]).toEqual([call.operation, call.requestId])
    }
    expect(tagged).toBeGreaterThan(50)
    expect(entries.filter(({ note, source }) => note === "Sign-up credits" && source === "signup").length).toBe(3)

    const hledger = await journalOf(log, "hledger")
    expect(hledger).toMatch(/^2026-01-30 \* acc_01JA \| Sign-up credits$/mu)
    expect(hledger).toMatch(/^ {4}; operation: grammar\.check\n {4}; request: req_\d+\n {4}; reservation: res_\d+$/mu)
    expect(await journalOf(log, "beancount")).toMatch(/^2026-01-30 \* "acc_01JA" "Sign-up credits"$/mu)
    expect(await journalOf(log, "ledger")).toMatch(/^2026-01-30 \* acc_01JA$/mu)
  })

  it("says what a credit is worth, by a price directive", async () => {
    const log = await randomHistory(29, 40)
    expect(await journalOf(log, "hledger")).toContain("commodity 1000.000 USD\n\nP 1970-01-01 CREDIT 0.001 USD\n")
    expect(await journalOf(log, "ledger")).toContain("commodity USD\n    format 1000.000 USD\n")
    expect(await journalOf(log, "beancount")).toContain("1970-01-01 commodity USD\n1970-01-01 price CREDIT  0.001 USD\n")
    const money = { credit: "token", credits: "tokens", value: "2", currency: "EUR" }
    const text = await Effect.runPromise(
      Stream.mkString(Journal.journal("hledger")).pipe(Effect.provideService(Money.Current, money), Effect.provide(storeOf(log)))
    )
    expect(text).toContain("commodity 1000.000 TOKEN\ncommodity 1000.00 EUR\n\nP 1970-01-01 TOKEN 2 EUR\n")
    expect(text).not.toContain("CREDIT\n")
    expect(commodityOf({ ...money, credit: "usd", currency: "USD" })).toBe("CREDIT")
    expect(commodityOf({ ...money, credit: "API-Punkt" })).toBe("CREDIT")
  })
})

describe("names of accounts", () => {
  const odd = ["acc_01ARZ3", "Acc", "-", "0-00", "0-00a", "a b", "ü", "a%b", "9", "_", "dns.resolve", 'x"y', "a;b", "a  b", "(a)", "a\tb"]

  it("are mapped one to one for beancount, in its alphabet", () => {
    const mapped = odd.map((name) => Beancount.nameOf(`assets:${name}:available`))
    for (const name of mapped) expect(name).toMatch(/^Assets:[A-Z0-9][A-Za-z0-9-]*:Available$/u)
    expect(mapped.map(Beancount.nameFrom)).toEqual(odd.map((name) => `assets:${name}:available`))
    expect(new Set(mapped).size).toBe(odd.length)
    expect(Beancount.nameOf("liabilities:credits:acc_01:available")).toBe("Liabilities:Credits:Acc-5F01:Available")
  })

  it("are unchanged for hledger and ledger, except characters that would end them", () => {
    const mapped = odd.map((name) => LedgerFormat.nameOf(`assets:${name}`))
    for (const name of mapped) expect(name).toMatch(/^[^\s;()"]+$/u)
    expect(mapped.map(LedgerFormat.nameFrom)).toEqual(odd.map((name) => `assets:${name}`))
    expect(LedgerFormat.nameOf("liabilities:credits:acc_01:available")).toBe("liabilities:credits:acc_01:available")
  })

  it("are quoted in CSV where necessary", async () => {
    const { csv } = await import("../src/journal/Csv.ts")
    const text = csv({ money: Money.STANDARD, unverified: false }).closing("2026-01-01", [{ account: `a,"b"`, balance: -1 }])
    expect(text).toBe(`2026-01-01,,,,,,Balance,"a,""b""",0.000,CREDIT,-0.001,,,,,,\r\n`)
    expect(readRows(text)[0]?.[7]).toBe(`a,"b"`)
  })
})

it("amounts have three decimals", () => {
  expect([0, 1, -1, 999, 1_000, -1_234_567].map(decimal)).toEqual(["0.000", "0.001", "-0.001", "0.999", "1.000", "-1234.567"])
})

const run = promisify(execFile)

describe("the accounting tools", async () => {
  let dir = ""
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "millrace-journal-"))
  })
  afterAll(() => rm(dir, { recursive: true }))

  const isInstalled = async (program: string) => {
    try {
      await run(program, ["--version"])
      return true
    } catch {
      console.warn(`SKIPPED: ${program} is not installed, so its journal was read back by our own tests only`)
      return false
    }
  }

  /** Writes the journal of a history; `spoil` gets to touch it before. */
  const write = async (format: Journal.FormatName, log: Log, spoil = (text: string) => text) => {
    const file = join(dir, `journal.${format}`)
    await writeFile(file, spoil(await journalOf(log, format)))
    return file
  }

  /** One posting that is a thousandth more, and its counterpart a thousandth less: it still sums to zero. */
  const shiftOne = (text: string) => {
    const lines = text.split("\n")
    const first = lines.findIndex((line, i) => isPosting(line) && isPosting(lines[i + 1] ?? ""))
    for (const [i, by] of [
      [first, 1],
      [first + 1, -1]
    ] as const) {
      lines[i] = (lines[i] ?? "").replace(/ {2}(-?\d+\.\d{3}) CREDIT/u, (_, amount) => `  ${decimal(thousandths(amount) + by)} CREDIT`)
    }
    return lines.join("\n")
  }
  const isPosting = (line: string) => / {2}-?\d+\.\d{3} CREDIT/u.test(line) && !line.includes(" balance ")

  /** Balances as a tool prints them, as `account amount` or `account,amount`, without those that are zero. */
  const expected = (log: Log, nameOf: (account: string) => string) =>
    Object.fromEntries(
      Object.entries(folded(log))
        .filter(([, balance]) => balance !== 0)
        .map(([account, balance]) => [nameOf(account), balance])
    )
  const printed = (text: string, pattern: RegExp) => {
    const found: Record<string, number> = {}
    for (const { groups = {} } of text.matchAll(pattern)) found[groups["account"] ?? ""] = Math.round(Number(groups["amount"]) * 1000)
    return found
  }

  const tools = [
    {
      program: "hledger",
      format: "hledger",
      check: (file: string) => run("hledger", ["-f", file, "check", "--strict"]),
      balances: async (file: string) => {
        const { stdout } = await run("hledger", ["-f", file, "balance", "--flat", "--no-total", "-O", "csv"])
        return printed(stdout, /^"(?<account>[^"]+)","(?<amount>-?[\d.]+) CREDIT"$/gmu)
      },
      nameOf: LedgerFormat.nameOf
    },
    {
      program: "ledger",
      format: "ledger",
      check: (file: string) => run("ledger", ["-f", file, "--pedantic", "balance"]),
      balances: async (file: string) => {
        const { stdout } = await run("ledger", ["-f", file, "balance", "--flat", "--no-total", "--format", "%(account) %(amount)\n"])
        return printed(stdout, /^(?<account>\S+) (?<amount>-?[\d.]+) CREDIT$/gmu)
      },
      nameOf: LedgerFormat.nameOf
    },
    {
      program: "bean-check",
      format: "beancount",
      check: (file: string) => run("bean-check", [file]),
      balances: async (file: string) => {
        const { stdout } = await run("bean-query", ["-f", "csv", file, "select account, sum(number) as amount group by account"])
        return printed(stdout, /^(?<account>[A-Z][^,\s]+)\s*,\s*(?<amount>-?[\d.]+)\s*$/gmu)
      },
      nameOf: Beancount.nameOf
    }
  ] as const

  for (const { balances, check, format, nameOf, program } of tools) {
    it.skipIf(!(await isInstalled(program)))(`${program} finds nothing wrong, and the same balances`, { timeout: 60_000 }, async () => {
      for (const seed of [31, 32]) {
        const log = await randomHistory(seed, 250)
        const file = await write(format, log)
        await check(file)
        expect(await balances(file)).toMatchObject(expected(log, nameOf))
      }
    })

    it.skipIf(!(await isInstalled(program)))(`${program} finds a posting that was touched`, { timeout: 60_000 }, async () => {
      const file = await write(format, await randomHistory(33, 250), shiftOne)
      await expect(check(file)).rejects.toThrow()
    })
  }
})

describe("the journal of an export", () => {
  const FORMATS = ["hledger", "ledger", "beancount", "csv", "jsonl"] as const
  const all = async () => (await randomHistory(17, 120)).events.map(lineOf)
  const whole = (lines: ReadonlyArray<string>) => lines.map((line) => `${line}\n`).join("")
  const written = async (content: string, format: Journal.FormatName = "hledger", options: Journal.Options = {}) => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-journal-"))
    const file = join(folder, "export.jsonl")
    await writeFile(file, content)
    const text = Stream.mkString(Journal.journalOfExport(format, new Export(file), options))
    const exit = await Effect.runPromise(Effect.result(text))
    await rm(folder, { recursive: true })
    return exit
  }

  it("is that of its log", async () => {
    const log = await randomHistory(17, 120)
    for (const format of FORMATS) expect(await written(whole(await all()), format)).toEqual(Result.succeed(await journalOf(log, format)))
  })

  it("fails where lines are missing, doubled, changed, or no events, unless it is to be unverified", async () => {
    const lines = await all()
    const broken = (change: (lines: Array<string>) => unknown) => {
      const copy = [...lines]
      change(copy)
      return whole(copy)
    }
    const cases: ReadonlyArray<readonly [content: string, reason: string]> = [
      [broken((copy) => copy.splice(40, 2)), "2 events are missing after position"],
      [broken((copy) => copy.splice(40, 0, copy[39] ?? "")), "it follows position"],
      [broken((copy) => (copy[40] = copy[40]?.replace(/"at":"2/u, '"at":"3') ?? "")), "it is not exactly as the command events prints it"],
      [broken((copy) => (copy[40] = "rubbish")), "it is not JSON"],
      [`${whole(lines)}{"position`, "it is not JSON"]
    ]
    for (const [content, reason] of cases) {
      const refused = await written(content)
      expect(Result.isFailure(refused) && refused.failure).toMatchObject({ _tag: "UnverifiedLog", reason: expect.stringContaining(reason) })
    }
    expect(Result.isSuccess(await written(cases[2]?.[0] ?? "", "csv", { unverified: true }))).toBe(true)
  })
})
