/** What commands answer, in the shapes that programs rely on, while a server runs on the same store. */
import { execFile } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import Database from "better-sqlite3"
import { Schema } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import {
  type Answer,
  Audit,
  Balance,
  BIN,
  call,
  compiledBeside,
  eventsOf,
  Granted,
  header,
  Issued,
  newStore,
  Opened,
  Process,
  program,
  type Server,
  serve,
  UNLIMITED
} from "../../../test/system/Server.ts"

let store = { folder: "", file: "", url: "" }
let server: Server
let lookup: Answer
let refunded: Answer

/** What a command that succeeds answers, in exactly this shape. */
const ask = async <A>(shape: Schema.Codec<A, unknown>, ...args: ReadonlyArray<string>): Promise<A> => {
  const { code, stdout, stderr } = await millrace([...args, "--store", store.url])
  expect([code, stderr]).toEqual([0, ""])
  expect(stdout.trimEnd()).not.toContain("\n")
  return Schema.decodeUnknownSync(shape, { onExcessProperty: "error" })(JSON.parse(stdout))
}

let account = ""
let key = ""

beforeAll(async () => {
  store = newStore()
  server = await serve(["--store", store.url], { env: UNLIMITED })
  const opened = await ask(Opened, "accounts", "open", "--email", "ada@example.com", "--verified", "--by", "ada", "--reason", "sign-up")
  expect(opened.balance).toBe(200)
  account = opened.account
  key = opened.key
  lookup = await call(`${server.url}${BIN}`, { key })
  refunded = await call(`${server.url}/api/v1/bin/000000`, { key })
  expect([lookup.status, refunded.status]).toEqual([200, 404])
}, 60_000)

const Status = Schema.Struct({ account: Schema.String, status: Schema.String })

const Threshold = Schema.Struct({
  account: Schema.String,
  threshold: Schema.NullOr(Schema.Finite),
  available: Schema.Finite,
  held: Schema.Finite,
  low: Schema.Boolean
})

const Listed = Schema.Array(
  Schema.Struct({
    ...{ grant: Schema.String, amount: Schema.Finite, source: Schema.String, every: Schema.String, expires: Schema.String },
    ...{ since: Schema.String, until: Schema.NullOr(Schema.String), next: Schema.String }
  })
)
const Started = Schema.Struct({ grant: Schema.String, lot: Schema.String, balance: Schema.Finite, next: Schema.String })

describe("recurring grants", () => {
  it("are started, listed, and stopped", async () => {
    const { account } = await ask(Opened, "accounts", "open", "--email", "monthly@example.com")
    const own = ["--account", account]
    const grant = ["credits", "grant", ...own, "--amount", "7.5", "--source", "promotion"]
    const until = "2199-01-01T00:00:00.000Z"
    const started = await ask(Started, ...grant, "--every", "month", "--until", until, "--expires", "never")
    expect(started.balance).toBe(7.5)
    const [listed, ...others] = await ask(Listed, "credits", "recurring", ...own)
    expect([listed, others]).toMatchObject([{ grant: started.grant, amount: 7.5, every: "month", until, next: started.next }, []])
    expect((await millrace([...grant, "--until", until, "--store", store.url])).stderr).toContain("--until and --expires go with --every")
    await ask(Schema.Struct({ account: Schema.String, grant: Schema.String }), "credits", "stop", ...own, "--grant", started.grant)
    expect(await ask(Listed, "credits", "recurring", ...own)).toEqual([])
  })
})

describe("accounts", () => {
  it("have a threshold, which is set and removed", async () => {
    const { account } = await ask(Opened, "accounts", "open", "--email", "low@example.com")
    const own = ["--account", account]
    const empty = { account, available: 0, held: 0 }
    expect(await ask(Threshold, "accounts", "threshold", ...own, "--below", "0.5")).toEqual({ ...empty, threshold: 0.5, low: true })
    expect((await ask(Balance, "balance", ...own)).threshold).toBe(0.5)
    expect(await ask(Threshold, "accounts", "threshold", ...own, "--below", "none")).toEqual({ ...empty, threshold: null, low: false })
  })

  it("are opened unverified, shown, suspended, reinstated and closed, with who and why", async () => {
    const by = ["--by", "grace", "--reason", "ticket 7"]
    const opened = await ask(Opened, "accounts", "open", "--email", "bob@example.com", ...by)
    expect(opened.balance).toBe(0)
    const own = ["--account", opened.account]
    const Shown = Schema.Struct({
      ...Status.fields,
      id: Schema.NullOr(Schema.String),
      email: Schema.NullOr(Schema.String),
      available: Schema.Finite,
      held: Schema.Finite,
      debt: Schema.Finite,
      threshold: Schema.NullOr(Schema.Finite)
    })
    const shown = { account: opened.account, id: null, email: "bob@example.com", available: 0, held: 0, debt: 0, threshold: null }
    expect(await ask(Shown, "accounts", "show", ...own)).toEqual({ ...shown, status: "opened" })
    for (const [act, status] of [
      ["suspend", "suspended"],
      ["reinstate", "opened"],
      ["close", "closed"]
    ] as const) {
      expect(await ask(Status, "accounts", act, ...own, ...by)).toEqual({ account: opened.account, status })
    }
    const events = eventsOf((await millrace(["events", "--stream", `account-${opened.account}`, "--store", store.url])).stdout)
    expect(events.map(({ type, metadata }) => [type, metadata["actor"], metadata["reason"]])).toEqual(
      ["AccountOpened", "AccountSuspended", "AccountReinstated", "AccountClosed"].map((type) => [type, "grace", "ticket 7"])
    )
    expect((await call(`${server.url}/api/v1/account/billing`, { key: opened.key })).status).toBe(401)
  })

  it("are opened once by an id of the operator's choice, which every command takes", async () => {
    const opened = await ask(Opened, "accounts", "open", "--id", "user-7")
    expect((await ask(Opened, "accounts", "open", "--id", "user-7")).account).toBe(opened.account)
    const Granted = Schema.Struct({ lot: Schema.String, balance: Schema.Finite })
    expect(await ask(Granted, "credits", "grant", "--account", "user-7", "--amount", "5", "--source", "promotion")).toMatchObject({
      balance: 5
    })
    const { stdout } = await millrace(["accounts", "show", "--account", "user-7", "--store", store.url])
    expect(JSON.parse(stdout)).toMatchObject({ account: opened.account, id: "user-7", email: null, available: 5 })
    const Listed = Schema.Array(Schema.Struct({ account: Schema.String, openedAt: Schema.String }))
    expect((await ask(Listed, "accounts", "list")).map(({ account }) => account)).toContain(opened.account)
    expect(await millrace(["accounts", "open", "--store", store.url])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("an account needs a name: --email, --id, or both")
    })
  })

  it("record the user and the command if no one else is named", async () => {
    const { account } = await ask(Opened, "accounts", "open", "--email", "carol@example.com")
    const [opened] = eventsOf((await millrace(["events", "--stream", `account-${account}`, "--store", store.url])).stdout)
    expect(opened?.metadata).toMatchObject({ actor: expect.stringMatching(/^cli:./u), reason: "accounts open" })
  })
})

describe("keys", () => {
  it("are issued for scopes and a time, listed without their secrets, and revoked", async () => {
    const Listed = Schema.Array(
      Schema.Struct({
        keyId: Schema.String,
        scopes: Schema.String,
        label: Schema.NullOr(Schema.String),
        issuedAt: Schema.String,
        expiresAt: Schema.NullOr(Schema.String),
        revokedAt: Schema.NullOr(Schema.String)
      })
    )
    const own = ["--account", account]
    const until = "2099-01-01T00:00:00.000Z"
    const issued = await ask(
      Issued,
      "keys",
      "issue",
      ...own,
      "--scope",
      "read",
      "--scope",
      "billing",
      "--label",
      "the till",
      "--expires-at",
      until
    )
    expect(issued.key).toContain(issued.keyId)
    const keys = await ask(Listed, "keys", "list", ...own)
    expect(keys.map(({ scopes, label, expiresAt, revokedAt }) => [scopes, label, expiresAt, revokedAt])).toEqual([
      ["read operations", null, null, null],
      ["read billing", "the till", until, null]
    ])
    await ask(Schema.Struct({ keyId: Schema.String, revoked: Schema.Literal(true) }), "keys", "revoke", ...own, "--key", issued.keyId)
    expect((await ask(Listed, "keys", "list", ...own)).find(({ keyId }) => keyId === issued.keyId)?.revokedAt).not.toBe(null)
    expect(JSON.stringify(keys)).not.toContain(issued.key.split("_").at(-1) ?? "")
  })
})

const Charge = Schema.Struct({
  request: Schema.String,
  account: Schema.String,
  reservation: Schema.String,
  operation: Schema.String,
  outcome: Schema.String,
  hold: Schema.Struct({
    amount: Schema.Finite,
    quantity: Schema.Int,
    at: Schema.String,
    expiresAt: Schema.String,
    event: Schema.String,
    type: Schema.Literal("CreditReserved"),
    stream: Schema.String,
    revision: Schema.Int,
    position: Schema.String
  }),
  price: Schema.Struct({
    version: Schema.Int,
    unitPrice: Schema.Finite,
    effectiveAt: Schema.String,
    event: Schema.String,
    type: Schema.Literal("PricePlanPublished"),
    stream: Schema.String,
    revision: Schema.Int,
    position: Schema.String
  }),
  lots: Schema.Array(
    Schema.Struct({
      lot: Schema.String,
      amount: Schema.Finite,
      source: Schema.String,
      granted: Schema.Finite,
      event: Schema.String,
      type: Schema.Literal("CreditsGranted"),
      stream: Schema.String,
      revision: Schema.Int,
      position: Schema.String
    })
  ),
  ends: Schema.Array(
    Schema.Struct({
      end: Schema.String,
      amount: Schema.Finite,
      reason: Schema.NullOr(Schema.String),
      at: Schema.String,
      lots: Schema.Array(Schema.Struct({ lot: Schema.String, amount: Schema.Finite })),
      event: Schema.String,
      type: Schema.String,
      stream: Schema.String,
      revision: Schema.Int,
      position: Schema.String
    })
  )
})

describe("a charge", () => {
  it("shows its hold, its price, its lots and its end, each with its event", async () => {
    const charge = await ask(Charge, "charges", "show", "--request", header(lookup, "x-request-id"))
    expect(charge).toMatchObject({ account, operation: "bin.lookup", outcome: "charged" })
    expect(charge.hold).toMatchObject({ amount: 0.5, quantity: 1 })
    expect(charge.price).toMatchObject({ version: 1, unitPrice: 0.5 })
    expect(charge.lots).toMatchObject([{ amount: 0.5, source: "signup", granted: 200 }])
    expect(charge.ends).toMatchObject([{ end: "charged", amount: 0.5, reason: null, type: "OperationSucceeded" }])
    const log = eventsOf((await millrace(["events", "--store", store.url])).stdout)
    for (const { event, position, stream, revision, type } of [charge.hold, charge.price, ...charge.lots, ...charge.ends]) {
      expect(log.find(({ id }) => id === event)).toMatchObject({ position, stream, revision, type })
    }
  })

  it("shows refunds and when they were made", async () => {
    const failed = await ask(Charge, "charges", "show", "--request", header(refunded, "x-request-id"))
    expect(failed).toMatchObject({ outcome: "refunded", ends: [{ end: "refunded", amount: 0.5, reason: "service_error" }] })

    const other = await call(`${server.url}${BIN}`, { key })
    const { reservation } = await ask(Charge, "charges", "show", "--request", header(other, "x-request-id"))
    const Refunded = Schema.Struct({ reservation: Schema.String, account: Schema.String, refunded: Schema.Finite, balance: Schema.Finite })
    const first = await ask(Refunded, "credits", "refund", "--reservation", reservation, "--amount", "0.2")
    const rest = await ask(Refunded, "credits", "refund", "--reservation", reservation, "--reason", "it was our mistake")
    const none = await ask(Refunded, "credits", "refund", "--reservation", reservation)
    expect([first.refunded, rest.refunded, none.refunded]).toEqual([0.2, 0.3, 0])
    expect(none.balance).toBe(rest.balance)
    const charge = await ask(Charge, "charges", "show", "--request", header(other, "x-request-id"))
    expect(charge.ends.map(({ end, amount, reason }) => [end, amount, reason])).toEqual([
      ["charged", 0.5, null],
      ["refunded", 0.2, "goodwill"],
      ["refunded", 0.3, "goodwill"]
    ])
  })
})

describe("credits", () => {
  it("are granted until a time, spent by earliest expiry, and expire", async () => {
    const { account } = await ask(Opened, "accounts", "open", "--email", "dan@example.com")
    const own = ["--account", account]
    const end = "2099-06-01T00:00:00.000Z"
    const kept = await ask(Granted, "credits", "grant", ...own, "--amount", "1.5", "--source", "adjustment")
    const ending = await ask(Granted, "credits", "grant", ...own, "--amount", "0.125", "--source", "promotion", "--expires-at", end)
    expect([kept.balance, ending.balance]).toEqual([1.5, 1.625])
    const now = await ask(Balance, "balance", ...own)
    expect(now).toMatchObject({ account, available: 1.625, held: 0, debt: 0, holds: [] })
    expect(now.lots).toEqual([
      { lot: ending.lot, source: "promotion", remaining: 0.125, expiresAt: end },
      { lot: kept.lot, source: "adjustment", remaining: 1.5, expiresAt: null }
    ])
    expect(await ask(Balance, "balance", ...own, "--at", end)).toMatchObject({ available: 1.5, at: end, lots: [{ lot: kept.lot }] })
  })

  it("of one payment are granted once, to one account, and clawed back into debt", async () => {
    const { account, key } = await ask(Opened, "accounts", "open", "--email", "eve@example.com")
    const payment = ["--amount", "1", "--source", "topup", "--payment-ref", "pay_42"]
    const paid = await ask(Granted, "credits", "grant", "--account", account, ...payment)
    expect(await ask(Granted, "credits", "grant", "--account", account, ...payment)).toEqual(paid)
    const elsewhere = await millrace([
      "credits",
      "grant",
      "--account",
      (await ask(Opened, "accounts", "open", "--email", "x@example.com")).account,
      ...payment,
      "--store",
      store.url
    ])
    expect([elsewhere.code, elsewhere.stderr]).toEqual([1, expect.stringContaining(`that payment bought credits for ${account} already`)])

    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(200)
    const before = new Date().toISOString()
    const Taken = Schema.Struct({ lot: Schema.String, account: Schema.String, clawedBack: Schema.Finite, balance: Schema.Finite })
    expect(await ask(Taken, "credits", "claw-back", "--lot", paid.lot, "--reason", "chargeback")).toEqual({
      lot: paid.lot,
      account,
      clawedBack: 1,
      balance: 0
    })
    expect(await ask(Taken, "credits", "claw-back", "--lot", paid.lot)).toMatchObject({ clawedBack: 0 })
    expect(await ask(Balance, "balance", "--account", account)).toMatchObject({ available: 0, debt: 0.5, lots: [] })
    await ask(Status, "accounts", "close", "--account", account)
    // The past stays what it was
    expect(await ask(Balance, "balance", "--account", account, "--at", before)).toMatchObject({ available: 0.5, debt: 0 })
    expect(await ask(Balance, "balance", "--account", account)).toMatchObject({ available: 0, debt: 0.5 })
  })
})

describe("events", () => {
  it("are printed from a position, of a stream, and as another process writes them", { timeout: 60_000 }, async () => {
    const all = (await millrace(["events", "--store", store.url])).stdout
    const third = eventsOf(all)[2]?.position ?? ""
    expect((await millrace(["events", "--store", store.url, "--from", third])).stdout).toBe(all.split("\n").slice(3).join("\n"))
    const stream = `account-${account}`
    const own = eventsOf((await millrace(["events", "--store", store.url, "--stream", stream])).stdout)
    expect(own).toEqual(eventsOf(all).filter((event) => event.stream === stream))
    expect(own.map(({ revision }) => revision)).toEqual(own.map((_, i) => i))

    const last = eventsOf(all).at(-1)?.position ?? ""
    const follower = new Process(["events", "--store", store.url, "--stream", stream, "--from", last, "--follow"])
    const request = header(await call(`${server.url}${BIN}`, { key }), "x-request-id")
    await follower.until(() => follower.stdout.split("\n").length > 2)
    const { code, stdout } = await follower.stop()
    expect(code).toBe(0)
    expect(eventsOf(stdout).map(({ type, metadata }) => [type, metadata["$correlationId"]])).toEqual([
      ["CreditReserved", request],
      ["OperationSucceeded", request]
    ])
  })

  it("end silently when the reader closes the output", { timeout: 60_000 }, async () => {
    const { url, file } = newStore()
    await millrace(["accounts", "open", "--email", "ada@example.com", "--store", url])
    // More than a pipe holds
    const db = new Database(file)
    const wide = JSON.stringify({ text: "x".repeat(10_000) })
    db.exec("INSERT INTO streams(name) VALUES ('other-1')")
    const { stream } = Schema.decodeUnknownSync(Schema.Struct({ stream: Schema.Int }))(
      db.prepare("SELECT max(id) AS stream FROM streams").get()
    )
    const add = db.prepare("INSERT INTO events(position, stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, 'Wide', ?, '{}')")
    for (let i = 0; i < 500; i++) add.run(1_000 + i, stream, i, crypto.randomUUID(), wide)
    db.close()
    const reader = new Process(["events", "--store", url])
    const { stdout, stderr } = reader.child
    if (stdout === null || stderr === null) throw new Error("There is nothing to read from")
    await once(stdout, "data")
    stdout.destroy()
    expect(await reader.ended).toMatchObject({ code: 0, stderr: "" })
  })
})

describe("holds", () => {
  it("are listed for all accounts while they are open", { timeout: 60_000 }, async () => {
    const Held = Schema.Array(
      Schema.Struct({
        reservation: Schema.String,
        account: Schema.String,
        operation: Schema.String,
        amount: Schema.Finite,
        request: Schema.String,
        reservedAt: Schema.String,
        expiresAt: Schema.String,
        overdue: Schema.Boolean
      })
    )
    expect(await ask(Held, "holds", "list")).toEqual([])
    // Its checker has yet to be loaded: the server is stopped dead while it does
    const cut = call(`${server.url}/api/v1/grammar/check`, { method: "POST", key, body: JSON.stringify({ text: "An apple." }) }).catch(
      () => "cut"
    )
    let isOver = false
    cut.finally(() => {
      isOver = true
    })
    while (!isOver && (await ask(Balance, "balance", "--account", account)).held === 0);
    await server.kill()
    expect(await cut).toBe("cut")
    const [hold, ...others] = await ask(Held, "holds", "list")
    expect(others).toEqual([])
    expect(hold).toMatchObject({ account, operation: "grammar.check", amount: 1, overdue: false })
    const balance = await ask(Balance, "balance", "--account", account)
    expect(balance.holds).toEqual([
      {
        reservation: hold?.reservation,
        operation: "grammar.check",
        amount: 1,
        request: hold?.request,
        expiresAt: hold?.expiresAt
      }
    ])
    const later = await ask(Balance, "balance", "--account", account, "--at", hold?.expiresAt ?? "")
    expect([later.available, later.held]).toEqual([balance.available + 1, 0])
  })
})

describe("an audit", () => {
  it("passes, prints a head that a later one extends, and names a changed event", async () => {
    const before = await ask(Audit, "audit")
    expect(before).toMatchObject({ ok: true, problems: [] })
    const head = join(store.folder, "head.json")
    writeFileSync(head, JSON.stringify(before))
    await ask(Granted, "credits", "grant", "--account", account, "--amount", "1", "--source", "promotion")
    const after = await ask(Audit, "audit", "--against", head)
    expect(after.events).toBe(before.events + 1)

    const grant = eventsOf((await millrace(["events", "--store", store.url])).stdout).findLast(({ type }) => type === "CreditsGranted")
    const db = new Database(store.file)
    db.exec("DROP TRIGGER events_are_never_changed")
    db.prepare(`UPDATE events SET data = replace(data, '"amount":1000', '"amount":1001') WHERE id = ?`).run(grant?.id)
    db.close()
    const { code, stdout } = await millrace(["audit", "--store", store.url])
    const report = Schema.decodeUnknownSync(Audit)(JSON.parse(stdout))
    expect([code, report.ok]).toEqual([1, false])
    expect(report.problems).toContainEqual(
      expect.objectContaining({ position: grant?.position, stream: grant?.stream, rule: "link-holds" })
    )
  })
})

const hasScript = await promisify(execFile)("script", ["-qec", "true", "/dev/null"]).then(
  () => true,
  () => false
)
if (!hasScript) console.warn("SKIPPED: there is no `script` here that could pretend to be a terminal")

describe.skipIf(!hasScript)("on a terminal", () => {
  const onTerminal = async (...args: ReadonlyArray<string>) => inColour({ NO_COLOR: "1" }, ...args)
  const inColour = async (env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) => {
    const line = [process.execPath, program, ...args].map((word) => `'${word}'`).join(" ")
    const file = join(store.folder, "typescript")
    const failed = await promisify(execFile)("script", ["-qec", line, file], { env: { ...process.env, ...compiledBeside, ...env } }).then(
      () => false,
      () => true
    )
    const text = readFileSync(file, "utf8").replaceAll("\r\n", "\n")
    return { failed, text: text.slice(text.indexOf("\n") + 1).replace(/\n*Script done.*\n$/u, "") }
  }

  it("prints text, and JSON on request", { timeout: 60_000 }, async () => {
    const { url } = newStore()
    const opened = await millrace(["accounts", "open", "--email", "ada@example.com", "--verified", "--store", url])
    const { account } = Schema.decodeUnknownSync(Opened)(JSON.parse(opened.stdout))
    await millrace(["keys", "issue", "--account", account, "--label", "red \u001b[31m label", "--store", url])
    const own = ["--account", account, "--store", url]
    const balance = await onTerminal("balance", ...own)
    expect(balance.text).toMatch(new RegExp(`^account    ${account}\navailable  200\nheld       0\ndebt       0\nthreshold  -\n`, "u"))
    expect(balance.text).toMatch(/\nlots\n {2}lot +source +remaining +expiresAt\n {2}lot_\w+ +signup +200 +-\nholds\n {2}none/u)
    expect((await onTerminal("balance", ...own, "--json")).text).toMatch(/^\{"account":"acc_\w+","available":200,/u)
    const keys = await onTerminal("keys", "list", ...own)
    expect(keys.text).toContain("red \\u001b[31m label")
    const events = await onTerminal("events", "--store", url)
    expect(events.text).toMatch(/^\d{16} {2}\S+Z {2}email-\S+@0 {2}EmailClaimed {2}\{/u)
    expect(await onTerminal("balance", "--account", "nobody", "--store", url)).toEqual({
      failed: true,
      text: "millrace: there is no such account"
    })
    expect((await onTerminal("balance")).text).toMatch(/^millrace: .*--account.*\(see millrace balance --help\)$/u)
  })

  it("prints an audit in sentences, in colour only where it is wanted, and erases the progress", { timeout: 60_000 }, async () => {
    const { url } = newStore()
    await millrace(["accounts", "open", "--email", "ada@example.com", "--verified", "--store", url])
    const coloured = await inColour({ NO_COLOR: "", FORCE_COLOR: "1" }, "audit", "--store", url)
    expect(coloured.text).toContain("\r\u001b[KChecked ")
    expect(coloured.text).toContain("\u001b[32mAll is well: every event is unchanged and in its place, and no rule is broken.\u001b[39m")
    expect((await onTerminal("audit", "--store", url)).text).not.toContain("\u001b[3")
  })
})
