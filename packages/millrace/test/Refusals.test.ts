/** Bad input on the command line: one clear line, exit code 1, nothing lost, nothing begun. */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Schema } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import {
  ask,
  type Ended,
  type Environment,
  newStore,
  Opened,
  type Options,
  openAccount,
  runProcess,
  serve
} from "../../../test/system/Server.ts"

const Told = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) }))

/** The one line of a failure. */
const failureOf = ({ code, stdout, stderr }: Ended): string => {
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
  expect(stderr.endsWith("\n")).toBe(true)
  expect(stderr.trimEnd()).not.toContain("\n")
  const { error } = Schema.decodeUnknownSync(Told, { onExcessProperty: "error" })(stderr)
  expect(error.message).not.toMatch(/\bat \S+ \(|node:internal|InternalError|[A-Z]\w+Error:/u)
  expect(error.code).not.toBe("InternalError")
  return error.message
}

const refused = async (args: ReadonlyArray<string>, env: Environment = {}): Promise<string> => failureOf(await millrace(args, { env }))

const ACCOUNT = "acc_01M7YKD46JCP6VGMKADN3JSPJP"

/** A store with one account, that no test changes. */
let store = { folder: "", file: "", url: "" }
let account = ""

beforeAll(async () => {
  store = newStore()
  account = (await openAccount(store.url, 10, "ada@example.com")).account
}, 60_000)

/** A copy of it, to be spoilt. */
const copy = () => {
  const own = newStore()
  for (const name of readdirSync(store.folder)) copyFileSync(join(store.folder, name), join(own.folder, name))
  return { ...own, state: join(own.folder, "millrace.state.db"), masterKey: join(own.folder, "master.key") }
}

const contentOf = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name)).toString("base64")]))

describe("wrong arguments", () => {
  const WRONG: ReadonlyArray<readonly [args: string, says: RegExp]> = [
    ["serv", /Unknown subcommand "serv".*see millrace --help/u],
    ["balance", /--account.*see millrace balance --help/u],
    ["balance --acount x", /--acount/u],
    [`balance --account ${ACCOUNT} --at yesterday`, /"yesterday".*ISO 8601/u],
    [`balance --account ${ACCOUNT} --at 2026-02-30T00:00:00Z`, /ISO 8601/u],
    [`balance --account ${ACCOUNT} --at 2026-01-01T00:00:00`, /with its zone/u],
    [`credits grant --account ${ACCOUNT} --amount 1e3 --source promotion`, /"1e3".*at most three decimals/u],
    [`credits grant --account ${ACCOUNT} --amount 0.0001 --source promotion`, /at most three decimals/u],
    [`credits grant --account ${ACCOUNT} --amount 0 --source promotion`, /greater than 0/u],
    [`credits grant --account ${ACCOUNT} --amount=-5 --source promotion`, /"-5"/u],
    [`credits grant --account ${ACCOUNT} --amount 5 --source luck`, /signup.*topup.*promotion/u],
    [`keys issue --account ${ACCOUNT} --scope everything`, /read.*operations/u],
    ["events --from here", /"here".*position/u],
    ["journal --format pdf", /hledger.*beancount/u],
    ["serve --port 65536", /a port from 0 to 65535/u],
    ["serve --rate-limit 60", /REQUESTS\/SECONDS such as 60\/60/u],
    ["serve --log-level loud", /fatal, error, warn, info, debug, trace/u]
  ]

  it("are reported in one line that names the help", async () => {
    for (const [args, says] of WRONG) expect(await refused(args.split(" "))).toMatch(says)
  })
})

describe("a process that fails", () => {
  it("ends with 1 and one line of JSON", { timeout: 60_000 }, async () => {
    const spoilt = copy()
    writeFileSync(spoilt.file, "no database")
    const [usage, environment, missing, corrupt] = await Promise.all([
      runProcess(["balance"]),
      runProcess(["serve"], { env: { MILLRACE_PORT: "abc" } }),
      runProcess(["audit", "--store", newStore().url]),
      runProcess(["serve", "--port", "0", "--store", spoilt.url])
    ])
    expect(failureOf(usage)).toMatch(/--account/u)
    expect(failureOf(environment)).toMatch(/MILLRACE_PORT/u)
    expect(failureOf(missing)).toMatch(/there is no store/u)
    expect(failureOf(corrupt)).toMatch(/is not an SQLite database/u)
  })
})

describe("a wrong environment variable", () => {
  const WRONG: ReadonlyArray<readonly [env: Environment, says: RegExp]> = [
    [{ MILLRACE_PORT: "abc" }, /"abc".*MILLRACE_PORT/u],
    [{ MILLRACE_PORT: "-1" }, /MILLRACE_PORT/u],
    [{ MILLRACE_RATE_LIMIT: "x" }, /"x".*MILLRACE_RATE_LIMIT/u],
    [{ MILLRACE_RATE_LIMIT: "0/60" }, /MILLRACE_RATE_LIMIT/u],
    [{ MILLRACE_LATE: "maybe" }, /withhold or charge.*MILLRACE_LATE/u],
    [{ MILLRACE_LOG_LEVEL: "loud" }, /MILLRACE_LOG_LEVEL/u],
    [{ MILLRACE_STORE: "mysql://host/db" }, /unknown store, by --store or MILLRACE_STORE: sqlite:PATH/u],
    [{ MILLRACE_STORE: "postgres://host/db" }, /MILLRACE_MASTER_KEY/u],
    [{ MILLRACE_STORE: "sqlite://db" }, /unknown store/u],
    [{ MILLRACE_STORE: "memory:", MILLRACE_MASTER_KEY: "short" }, /master key is 64 hexadecimal digits/u],
    [{ MILLRACE_STORE: "memory:", MILLRACE_BIN_FILE: "/nowhere/bins.csv" }, /\/nowhere\/bins\.csv/u],
    [{ MILLRACE_STORE: "memory:", MILLRACE_HOST: "256.0.0.1" }, /[Cc]annot listen on 256\.0\.0\.1/u]
  ]

  it("keeps the server from starting, and is named", { timeout: 60_000 }, async () => {
    const { folder, url } = newStore()
    for (const [env, says] of WRONG) expect(await refused(["serve"], { MILLRACE_PORT: "0", MILLRACE_STORE: url, ...env })).toMatch(says)
    expect(readdirSync(folder)).toEqual([])
  })

  it("is overridden by flags, and ignored if empty", { timeout: 60_000 }, async () => {
    const server = await serve(["--store", "memory:", "--rate-limit", "5/5"], {
      env: { MILLRACE_PORT: "1", MILLRACE_RATE_LIMIT: "x", MILLRACE_STORE: "xx:", MILLRACE_LOG_LEVEL: "" }
    })
    expect((await server.stop()).code).toBe(0)
  })
})

describe("a missing store", () => {
  it("is an error unless the command makes one, and is not made", { timeout: 60_000 }, async () => {
    const { folder, url } = newStore()
    const all = [
      ["accounts", "show", "--account", ACCOUNT],
      ["credits", "grant", "--account", ACCOUNT, "--amount", "1", "--source", "promotion"],
      ["holds", "list"],
      ["audit"]
    ]
    for (const args of all) expect(await refused([...args, "--store", url])).toBe(`there is no store at ${join(folder, "millrace.db")}`)
    expect(readdirSync(folder)).toEqual([])
  })

  it("is also what memory: is to every command but serve", { timeout: 60_000 }, async () => {
    for (const args of [["audit"], ["journal", "--format", "csv"], ["accounts", "show", "--account", ACCOUNT]]) {
      expect(await refused([...args, "--store", "memory:"])).toMatch(/^a store in memory lasts as long as its server/u)
    }
  })

  it("is not made where no folder can be made", { timeout: 60_000 }, async () => {
    const { folder, file } = newStore()
    expect(await refused(["serve", "--port", "0", "--store", "sqlite:/proc/millrace/millrace.db"])).toMatch(
      /cannot be made in \/proc\/millrace/u
    )
    mkdirSync(file)
    expect(await refused(["serve", "--port", "0", "--store", `sqlite:${file}`])).toBe(`${file} is a folder: name a file in it`)
    expect(readdirSync(folder)).toEqual(["millrace.db"])
  })
})

describe("a store with one file missing", () => {
  it("is not begun anew beside the other file", { timeout: 60_000 }, async () => {
    const withoutState = copy()
    rmSync(withoutState.state)
    const withoutLog = copy()
    rmSync(withoutLog.file)
    const before = [contentOf(withoutState.folder), contentOf(withoutLog.folder)]
    const serving = (url: string) => refused(["serve", "--port", "0", "--store", url])
    expect(await serving(withoutState.url)).toMatch(/millrace\.state\.db is missing.*put it back/u)
    expect(await refused(["accounts", "show", "--account", account, "--store", withoutState.url])).toMatch(
      /millrace\.state\.db is missing/u
    )
    expect(await serving(withoutLog.url)).toMatch(/millrace\.db is missing.*put it back/u)
    expect(await refused(["accounts", "open", "--email", "b@example.com", "--store", withoutLog.url])).toMatch(/millrace\.db is missing/u)
    expect([contentOf(withoutState.folder), contentOf(withoutLog.folder)]).toEqual(before)
  })

  it("begins if its first start was interrupted", { timeout: 60_000 }, async () => {
    const { folder, url } = newStore()
    writeFileSync(join(folder, "millrace.state.db"), "")
    expect(await ask(Opened, ["accounts", "open", "--email", "ada@example.com", "--verified", "--store", url])).toMatchObject({
      balance: 200
    })
  })
})

describe("a damaged database", () => {
  const SPOILT: Readonly<Record<string, readonly [spoil: (file: string) => void, says: RegExp]>> = {
    "is no database": [(file) => writeFileSync(file, "not a database at all".repeat(200)), /is not an SQLite database/u],
    "was overwritten in the middle": [
      (file) => {
        const bytes = readFileSync(file)
        writeFileSync(file, bytes.fill(0xa5, 4_096, bytes.length))
      },
      /is corrupt/u
    ],
    "was cut short": [(file) => truncateSync(file, statSync(file).size - 5_000), /is corrupt/u],
    "is another program's": [
      (file) => {
        rmSync(file)
        new Database(file).exec("CREATE TABLE theirs(x)").close()
      },
      /is a database, but not an event log of Millrace/u
    ]
  }

  it.each(Object.entries(SPOILT))("%s: is reported and not changed", { timeout: 60_000 }, async (_, [spoil, says]) => {
    const spoilt = copy()
    spoil(spoilt.file)
    const before = contentOf(spoilt.folder)
    for (const args of [["serve", "--port", "0"], ["accounts", "show", "--account", account], ["audit"]]) {
      const message = await refused([...args, "--store", spoilt.url])
      expect(message).toMatch(says)
      expect(message).toContain(spoilt.file)
    }
    const after = contentOf(spoilt.folder)
    for (const [name, content] of Object.entries(before)) expect(after[name] === content ? name : `${name} was changed`).toBe(name)
  })
})

describe("a master key", () => {
  const show = (url: string) => ["accounts", "show", "--account", account, "--store", url]

  it("that is missing, malformed, readable by others or of another store is reported, and not replaced", { timeout: 60_000 }, async () => {
    const missing = copy()
    renameSync(missing.masterKey, `${missing.masterKey}.away`)
    const malformed = copy()
    writeFileSync(malformed.masterKey, "correct horse battery staple", { mode: 0o600 })
    const exposed = copy()
    chmodSync(exposed.masterKey, 0o644)
    const none = await refused(show(missing.url))
    const notServed = await refused(["serve", "--port", "0", "--store", missing.url])
    const wrongText = await refused(show(malformed.url))
    const tooOpen = await refused(show(exposed.url))
    const others = await refused(show(store.url), { MILLRACE_MASTER_KEY: "42".repeat(32) })
    const wrongVariable = await refused(show(store.url), { MILLRACE_MASTER_KEY: "42" })
    expect(none).toBe(`the master key is missing: set MILLRACE_MASTER_KEY, or put the file back at ${missing.masterKey}`)
    expect(notServed).toBe(none)
    expect(wrongText).toMatch(/64 hexadecimal digits/u)
    expect(tooOpen).toMatch(/others may read it: chmod 600/u)
    expect(others).toMatch(/another master key/u)
    expect(wrongVariable).toMatch(/64 hexadecimal digits/u)
    expect([none, wrongText, others, wrongVariable].join()).not.toMatch(/correct horse|4242/u)
    expect(existsSync(missing.masterKey)).toBe(false)
  })

  it("is made with the store, for its owner alone, and is accepted from the environment", { timeout: 60_000 }, async () => {
    const own = copy()
    expect(statSync(own.masterKey).mode & 0o777).toBe(0o600)
    const key = readFileSync(own.masterKey, "utf8").trim()
    rmSync(own.masterKey)
    const { code, stdout } = await millrace(show(own.url), { env: { MILLRACE_MASTER_KEY: key } })
    expect([code, JSON.parse(stdout).email]).toEqual([0, "ada@example.com"])
    // Who only reads the log needs none
    expect((await millrace(["balance", "--account", account, "--store", own.url])).code).toBe(0)
  })
})

describe("a folder without write permission", () => {
  it("is reported, and its store stays unchanged", { timeout: 60_000 }, async ({ skip }) => {
    const own = copy()
    const uid = process.getuid?.()
    skip(uid === undefined, "SKIPPED: this system has no permissions to take away")
    chmodSync(own.masterKey, 0o444)
    const options: Options = uid === 0 ? { uid: 65_534 } : {}
    const masterKey = readFileSync(own.masterKey, "utf8").trim()
    chmodSync(own.folder, 0o555)
    const env = { MILLRACE_MASTER_KEY: masterKey }
    const told = await Promise.all(
      [
        ["serve", "--port", "0"],
        ["credits", "grant", "--account", account, "--amount", "1", "--source", "promotion"]
      ].map((args) => runProcess([...args, "--store", own.url], { ...options, env }))
    )
    chmodSync(own.folder, 0o755)
    for (const ended of told) expect(failureOf(ended)).toMatch(/read-only/u)
  })
})

describe("a missing thing", () => {
  it("is named: accounts, keys, lots, reservations, requests, streams, heads", { timeout: 60_000 }, async () => {
    const { folder, url } = store
    const head = join(folder, "head.json")
    writeFileSync(head, '{"ok":true}')
    const WRONG: ReadonlyArray<readonly [args: string, says: string | RegExp]> = [
      [`accounts show --account ${ACCOUNT}`, "there is no such account"],
      ["accounts close --account ../../etc/passwd", "there is no such account"],
      [`balance --account ${ACCOUNT}`, "there is no such account"],
      [`keys list --account ${ACCOUNT}`, "there is no such account"],
      [`keys issue --account ${ACCOUNT}`, "there is no such account"],
      [`keys issue --account ${account} --expires-at 2020-01-01T00:00:00Z`, "the expiry lies in the past"],
      [`keys revoke --account ${account} --key nope`, "the account has no key nope"],
      [`credits grant --account ${ACCOUNT} --amount 5 --source promotion`, "there is no such account"],
      [`credits grant --account ${account} --amount 5 --source topup`, /needs --payment-ref/u],
      [`credits grant --account ${account} --amount 5 --source promotion --payment-ref pay_1`, /--payment-ref goes with/u],
      [`credits grant --account ${account} --amount 999999999999 --source promotion`, /at most 100000000000 credits/u],
      ["prices publish --set dns.resolve=1000000.001", "the price of dns.resolve may be at most 1000000 credits for each unit"],
      ["credits refund --reservation res_nope", "no reservation res_nope was settled"],
      ["credits claw-back --lot lot_nope", "there is no lot lot_nope"],
      ["charges show --request nope", "no call of request nope held any credits"],
      ["events --stream accounts", '"accounts" is no name of a stream: {category}-{id}'],
      ["audit --against /nowhere/head.json", /no head of an audit.*ENOENT/u],
      ["audit --events /nowhere/export.jsonl", /^\/nowhere\/export\.jsonl cannot be read: ENOENT/u],
      [`audit --events ${folder}`, `${folder} is a folder: name the file that millrace events wrote`],
      [`audit --against ${head}`, /holds no head of an audit/u],
      ["accounts open --email ada@example.com", "the address has an account already"],
      ["accounts open --email ada", "that is no e-mail address"]
    ]
    const before = await millrace(["events", "--store", url])
    for (const [args, says] of WRONG) {
      const message = await refused([...args.split(" "), "--store", url])
      expect(message).toEqual(typeof says === "string" ? says : expect.stringMatching(says))
    }
    const named = { MILLRACE_CREDIT_NAME: "token/tokens" }
    const grant = `credits grant --account ${account} --amount 999999999999 --source promotion`
    expect(await refused([...grant.split(" "), "--store", url], named)).toMatch(/at most 100000000000 tokens/u)
    expect((await millrace(["events", "--store", url])).stdout).toBe(before.stdout)
  })
})

describe("an empty or malformed value", () => {
  it("is refused in a sentence: empty ids, folders, empty files, malformed addresses", { timeout: 60_000 }, async () => {
    const { folder, url } = copy()
    const [empty, notUtf8] = [join(folder, "empty"), join(folder, "bins.csv")]
    writeFileSync(empty, "")
    writeFileSync(notUtf8, Buffer.from([0xff, 0xfe]))
    const grant = ["credits", "grant", "--account", account, "--amount", "5", "--source"]
    const WRONG: ReadonlyArray<readonly [args: ReadonlyArray<string>, says: RegExp]> = [
      [["balance", "--account", ""], /Missing value for flag --account/u],
      [["balance", "--account", "a\nb"], /an id: 1 to 200 characters without spaces/u],
      [["accounts", "show", "--account", "a".repeat(400)], /an id: 1 to 200 characters/u],
      [["accounts", "close", "--account", " "], /an id: 1 to 200 characters/u],
      [["keys", "revoke", "--account", account, "--key", " "], /an id: 1 to 200 characters/u],
      [["credits", "refund", "--reservation", " "], /an id: 1 to 200 characters/u],
      [["charges", "show", "--request", " "], /an id: 1 to 200 characters/u],
      [[...grant, "topup", "--payment-ref", " "], /an id: 1 to 200 characters/u],
      [[...grant, "promotion", "--expires-at", "2020-01-01"], /^the expiry lies in the past$/u],
      [["balance", "--account", account, "--store", `sqlite:${folder}`], /is a folder: name a file in it$/u],
      [["audit", "--store", `sqlite:${empty}`], /empty is empty: it holds no store$/u],
      [["serve", "--port", "0", "--blobs", empty], /^files of jobs cannot be kept or read: .*empty/u],
      [["serve", "--port", "0", "--bin-file", notUtf8], /^the file of BIN ranges cannot be used: .*bins\.csv/u],
      [["serve", "--port", "0", "--images", "comfyui:http://127.0.0.1#%E0%A4%A"], /comfyui needs a checkpoint/u]
    ]
    for (const [args, says] of WRONG) expect(await refused(args.includes("--store") ? args : [...args, "--store", url])).toMatch(says)
  })
})

describe("a port in use", () => {
  it("is reported, and the demo key of the running server still works", { timeout: 60_000 }, async () => {
    const own = newStore()
    const server = await serve(["--demo", "--store", own.url])
    await server.until(() => server.stdout.includes("/api/v1/account/billing"))
    const key = /mr_live_\w+/u.exec(server.stdout)?.[0] ?? ""
    expect(failureOf(await runProcess(["serve", "--demo", "--store", own.url, "--port", String(server.port)]))).toBe(
      `cannot listen on 127.0.0.1:${server.port}: the port is already in use`
    )
    const billing = await fetch(`${server.url}/api/v1/account/billing`, { headers: { authorization: `Bearer ${key}` } })
    expect(billing.status).toBe(200)
  })
})

describe("a changed event", () => {
  it("is reported by commands that must read it, and printed by events", async () => {
    const own = copy()
    const db = new Database(own.file)
    db.exec(`DROP TRIGGER events_are_never_changed; UPDATE events SET data = '{"lotId' WHERE type = 'CreditsGranted'`)
    db.close()
    const at = (...args: ReadonlyArray<string>) => [...args, "--store", own.url]
    expect(await refused(at("holds", "list"))).toMatch(/cannot be read, millrace audit says which: CreditsGranted/u)
    expect(await refused(at("balance", "--account", account))).toMatch(/stream account-acc_\w+ cannot be read at revision 1/u)
    const { code, stdout } = await millrace(at("audit"))
    expect([code, stdout]).toEqual([1, expect.stringContaining(`account-${account}`)])
    const events = await millrace(at("events"))
    expect([events.code, events.stdout]).toEqual([0, expect.stringContaining('"data":"{\\"lotId"')])
    const verified = await millrace(at("journal", "--format", "csv"))
    expect([verified.code, verified.stderr]).toEqual([1, expect.stringMatching(/the event at \d{16} in account-acc_\w+ does not verify/u)])
    const journal = await millrace(at("journal", "--format", "csv", "--unverified"))
    expect([journal.code, journal.stderr]).toEqual([1, expect.stringMatching(/the event at \d{16} in account-acc_\w+ cannot be read/u)])
  })
})

describe("a closed demo account", () => {
  it("keeps the demo from starting, with advice", async () => {
    const own = newStore()
    const server = await serve(["--demo", "--store", own.url])
    await server.until(() => server.stdout.includes("/api/v1/account/billing"))
    await server.stop()
    const demo = /acc_\w+/u.exec(server.stdout)?.[0] ?? ""
    expect((await millrace(["accounts", "close", "--account", demo, "--store", own.url])).code).toBe(0)
    expect(await refused(["serve", "--demo", "--port", "0", "--store", own.url])).toMatch(
      /the demo account of this store was closed: serve without --demo/u
    )
  })
})
