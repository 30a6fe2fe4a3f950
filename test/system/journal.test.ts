/** The journals of a real run, in every format: they agree with the balances, and the tools that they are for find nothing wrong. */
import { execFile } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Schema } from "effect"
import { beforeAll, describe, expect, test } from "vitest"
import { millrace } from "./InProcess.ts"
import { ask, auditOf, BIN, balanceOf, call, Granted, header, newStore, Opened, openAccount, serve, UNLIMITED } from "./Server.ts"

const run = promisify(execFile)

const FORMATS = ["hledger", "ledger", "beancount", "csv", "jsonl"] as const
type Format = (typeof FORMATS)[number]

const Transaction = Schema.fromJsonString(
  Schema.Struct({
    type: Schema.String,
    postings: Schema.optionalKey(Schema.Array(Schema.Struct({ account: Schema.String, amount: Schema.String })))
  })
)

/** The amounts that are posted to an account, in the text of each format. */
const POSTED: Readonly<Record<Format, (text: string, account: string) => ReadonlyArray<string>>> = {
  hledger: (text, account) => amountsAfter(text, `    ${account}  `),
  ledger: (text, account) => amountsAfter(text, `    ${account}  `),
  beancount: (text, account) => amountsAfter(text, `  ${inBeancount(account)}  `),
  csv: (text, account) => text.split("\n").flatMap((line) => (line.split(",")[7] === account ? [line.split(",")[8] ?? ""] : [])),
  jsonl: (text, account) =>
    text.split("\n").flatMap((line) => {
      const postings = line === "" ? [] : (Schema.decodeUnknownSync(Transaction)(line).postings ?? [])
      return postings.flatMap((posting) => (posting.account === account ? [posting.amount] : []))
    })
}

const amountsAfter = (text: string, start: string): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => (line.startsWith(start) ? [line.slice(start.length).split(" ")[0] ?? ""] : []))

/** `liabilities:credits:acc_01` is `Liabilities:Credits:Acc-5F01`. */
const inBeancount = (account: string): string =>
  account
    .split(":")
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1).replace("_", "-5F"))
    .join(":")

/** In thousandths, so that sums are exact. */
const sum = (amounts: ReadonlyArray<string>): number => amounts.reduce((total, amount) => total + Math.round(Number(amount) * 1000), 0)

const journals = new Map<Format, string>()
const accounts: Array<{ readonly account: string; readonly available: number; readonly held: number; readonly debt: number }> = []
let written = ""

beforeAll(async () => {
  const { folder, url: store } = newStore()
  const server = await serve(["--store", store], { env: UNLIMITED })
  const administer = async (...args: ReadonlyArray<string>) => {
    const { code, stderr } = await millrace([...args, "--store", store])
    expect([code, stderr]).toEqual([0, ""])
  }
  // One spends what it was given; a lookup that finds nothing is refunded, another given back in part
  const thrifty = await ask(Opened, ["accounts", "open", "--store", store, "--email", "ada@example.com", "--verified"])
  // The other spends what it paid for, until the payment is taken back: what it spent becomes debt
  const indebted = await openAccount(store, 0)
  const payment = ["--account", indebted.account, "--amount", "2.125", "--source", "topup", "--payment-ref", "pay_1"]
  const { lot } = await ask(Granted, ["credits", "grant", "--store", store, ...payment])
  for (const { key } of [thrifty, thrifty, indebted, indebted, indebted]) {
    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(200)
  }
  expect((await call(`${server.url}/api/v1/bin/000000`, { key: thrifty.key })).status).toBe(404)
  const last = await call(`${server.url}${BIN}`, { key: thrifty.key })
  const shown = await millrace(["charges", "show", "--store", store, "--request", header(last, "x-request-id")])
  const { reservation } = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ reservation: Schema.String })))(shown.stdout)
  await administer("credits", "refund", "--reservation", reservation, "--amount", "0.125")
  await administer("credits", "claw-back", "--lot", lot, "--reason", "chargeback")
  await server.stop()

  accounts.push(...(await Promise.all([balanceOf(store, thrifty.account), balanceOf(store, indebted.account)])))
  const write = async (format: Format) => {
    const { code, stdout } = await millrace(["journal", "--store", store, "--format", format])
    expect(code).toBe(0)
    journals.set(format, stdout)
    writeFileSync(join(folder, `journal.${format}`), stdout)
  }
  await Promise.all([...FORMATS.map(write), auditOf(store)])
  written = folder
}, 90_000)

test("the account has the expected balances", () => {
  expect(accounts.map(({ available, held, debt }) => ({ available, held, debt }))).toEqual([
    { available: 200 - 3 * 0.5 + 0.125, held: 0, debt: 0 },
    { available: 0, held: 0, debt: 1.5 }
  ])
})

describe.each(FORMATS)("the journal for %s", (format) => {
  test("has the balance and the debt of each account", () => {
    const text = journals.get(format) ?? ""
    for (const { account, available, held, debt } of accounts) {
      const postedTo = (name: string) => sum(POSTED[format](text, name))
      expect(POSTED[format](text, `liabilities:credits:${account}:available`).length).toBeGreaterThan(3)
      expect(postedTo(`liabilities:credits:${account}:available`)).toBe(0 - available * 1000)
      expect(postedTo(`liabilities:credits:${account}:reserved`)).toBe(0 - held * 1000)
      expect(postedTo(`assets:receivable:${account}`)).toBe(debt * 1000)
    }
  })
})

const TOOLS: Readonly<Record<string, (folder: string) => readonly [program: string, args: ReadonlyArray<string>]>> = {
  hledger: (folder) => ["hledger", ["-f", join(folder, "journal.hledger"), "check", "--strict"]],
  ledger: (folder) => ["ledger", ["-f", join(folder, "journal.ledger"), "--pedantic", "--strict", "balance"]],
  "bean-check": (folder) => ["bean-check", [join(folder, "journal.beancount")]]
}

const isInstalled = (program: string): Promise<boolean> =>
  run(program, ["--version"]).then(
    () => true,
    ({ code }: { readonly code?: unknown }) => code !== "ENOENT"
  )

for (const [program, check] of Object.entries(TOOLS)) {
  const installed = await isInstalled(program)
  if (!installed) console.warn(`SKIPPED: ${program} is not installed, so its journal was not checked by it`)
  test.skipIf(!installed)(`${program} reports no problem`, { timeout: 60_000 }, async () => {
    const [file, args] = check(written)
    expect((await run(file, [...args])).stderr).toBe("")
  })
}
