/** Backups of a store that is served, and what is restored from them: all of it, unless it was meddled with, has expired, or was erased. */

import { createHash } from "node:crypto"
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
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
  Audit,
  ask,
  auditOf,
  BIN,
  BIN_PRICE,
  balanceOf,
  call,
  clientAgent,
  type Environment,
  GRAMMAR,
  Head,
  header,
  newStore,
  Opened,
  openAccount,
  Restored,
  readLog,
  runProcess,
  serve,
  temporaryFolder,
  UNLIMITED
} from "../../../test/system/Server.ts"

const BackedUp = Schema.Struct({
  backup: Schema.String,
  ok: Schema.Boolean,
  problems: Schema.Int,
  madeAt: Schema.String,
  events: Schema.Int,
  bytes: Schema.Int,
  blobs: Schema.Int,
  masterKey: Schema.Boolean,
  deleteKeysBy: Schema.String,
  head: Head
})

const Told = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) }))

const refused = async (args: ReadonlyArray<string>, env: Environment = {}): Promise<string> => {
  const { code, stdout, stderr } = await millrace(args, { env })
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
  const { error } = Schema.decodeUnknownSync(Told)(stderr)
  expect(error.code).not.toBe("InternalError")
  return error.message
}

const backup = (store: string, to: string, ...args: ReadonlyArray<string>) =>
  ask(BackedUp, ["backup", "--store", store, "--to", to, ...args])

const restore = (from: string, store: string, ...args: ReadonlyArray<string>) =>
  ask(Restored, ["restore", "--from", from, "--store", store, ...args])

/** All files below a folder, by their paths in it. */
const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()

/** A store with one account, a blob, and a backup of it that no test changes. */
let store = { folder: "", file: "", url: "" }
let account = ""
let key = ""
let kept = ""
let masterKey = ""
const BLOB = Buffer.from("what is sealed anyway")
const blobId = createHash("sha256").update(BLOB).digest("hex")

beforeAll(async () => {
  store = newStore()
  masterKey = join(store.folder, "master.key")
  const opened = await ask(Opened, ["accounts", "open", "--store", store.url, "--email", "ada@example.com", "--verified"])
  account = opened.account
  key = opened.key
  mkdirSync(join(store.folder, "blobs"))
  writeFileSync(join(store.folder, "blobs", blobId), BLOB)
  kept = join(temporaryFolder(), "kept")
  await backup(store.url, kept)
}, 60_000)

/** The backup once more, to be spoilt. */
const copy = (): string => {
  const folder = join(temporaryFolder(), "copy")
  cpSync(kept, folder, { recursive: true })
  return folder
}

const restoring = (from: string, ...args: ReadonlyArray<string>) => {
  const target = newStore()
  return { target, args: ["restore", "--from", from, "--store", target.url, "--master-key", masterKey, ...args] }
}

describe("a backup", () => {
  it("contains the log, the blobs, and the keys in a folder of their own; the master key only on request", async () => {
    const folder = join(temporaryFolder(), "deep", "down")
    const made = await backup(store.url, folder, "--keys-lifetime", "12h")
    expect(filesIn(folder)).toEqual([`blobs/${blobId}`, "keys/millrace.state.db", "log/millrace.db", "manifest.json"])
    expect(made).toMatchObject({ backup: folder, ok: true, problems: 0, blobs: 1, masterKey: false })
    expect(Date.parse(made.deleteKeysBy) - Date.parse(made.madeAt)).toBe(12 * 3_600_000)
    for (const name of ["", "log", "keys", "blobs"]) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o700)
    for (const name of filesIn(folder)) expect([name, statSync(join(folder, name)).mode & 0o777]).toEqual([name, 0o600])

    const whole = join(temporaryFolder(), "whole")
    expect(await backup(store.url, whole, "--with-master-key")).toMatchObject({ masterKey: true })
    expect(readFileSync(join(whole, "keys", "master.key"), "utf8")).toBe(readFileSync(masterKey, "utf8"))
    const target = newStore()
    await restore(whole, target.url, "--none-erased")
    expect((await millrace(["accounts", "show", "--account", account, "--store", target.url])).stdout).toContain("ada@example.com")
  })

  it("can be audited against its own manifest, and so can its store", async () => {
    const against = ["--against", join(kept, "manifest.json")]
    await ask(Audit, ["audit", "--store", `sqlite:${join(kept, "log", "millrace.db")}`, ...against])
    await ask(Audit, ["audit", "--store", store.url, ...against])
    expect(filesIn(kept)).toEqual([`blobs/${blobId}`, "keys/millrace.state.db", "log/millrace.db", "manifest.json"])
  })

  it("of a busy server contains all acknowledged events and passes every audit", { timeout: 60_000 }, async () => {
    const own = newStore()
    const accounts = await Promise.all([0, 1, 2].map(() => openAccount(own.url, 1_000)))
    const server = await serve(["--store", own.url], { env: UNLIMITED })
    const acknowledged: Array<string> = []
    let isOver = false
    const agent = clientAgent()
    const clients = accounts.flatMap(({ key }) =>
      [1, 2].map(async () => {
        while (!isOver) {
          const answer = await call(`${server.url}${BIN}`, { key }, agent)
          expect(answer.status).toBe(200)
          acknowledged.push(header(answer, "x-request-id"))
        }
      })
    )
    const folder = join(temporaryFolder(), "busy")
    while (acknowledged.length < 50) await new Promise(setImmediate)
    const before = [...acknowledged]
    // From another process, as an operator does
    const ended = await runProcess(["backup", "--store", own.url, "--to", folder])
    expect(acknowledged.length).toBeGreaterThan(before.length)
    isOver = true
    await Promise.all(clients)
    agent.destroy()
    await server.stop()
    expect([ended.code, ended.stderr]).toEqual([0, ""])
    const made = Schema.decodeUnknownSync(BackedUp)(JSON.parse(ended.stdout))
    expect(made.ok).toBe(true)

    const target = newStore()
    const restored = await restore(folder, target.url, "--none-erased", "--master-key", join(own.folder, "master.key"))
    expect(restored).toMatchObject({ ok: true, events: made.events, head: made.head, keys: accounts.length, refused: [] })
    const log = await readLog(target.url)
    const charged = new Set(log.filter(({ type }) => type === "OperationSucceeded").map(({ metadata }) => metadata["$correlationId"]))
    expect(before.filter((request) => !charged.has(request))).toEqual([])
    const head = join(target.folder, "head.json")
    writeFileSync(head, ended.stdout)
    for (const url of [target.url, own.url]) await ask(Audit, ["audit", "--store", url, "--against", head])

    // It serves where it stopped, and what was held ends by itself
    const held = restored.reconcile.find(({ what }) => what === "open holds")?.count
    expect(held).toBe(log.filter(({ type }) => type === "CreditReserved").length - charged.size)
    const again = await serve(["--store", target.url], { env: UNLIMITED })
    for (const { account, key } of accounts) {
      const before = await balanceOf(target.url, account)
      expect((await call(`${again.url}${BIN}`, { key })).status).toBe(200)
      expect((await balanceOf(target.url, account)).available).toBe(before.available - BIN_PRICE)
    }
    await again.stop()
    expect((await auditOf(target.url)).ok).toBe(true)
  })

  it("overwrites nothing, needs a store, and leaves nothing behind when it fails", async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, "mine.txt"), "mine")
    const to = (name: string) => ["backup", "--store", store.url, "--to", name]
    expect(await refused(to(folder))).toBe(`${folder} is not empty: name a new folder`)
    expect(await refused(to(join(folder, "mine.txt")))).toBe(`${join(folder, "mine.txt")} is a file`)
    const target = join(folder, "new")
    mkdirSync(`${target}.partial`)
    expect(await refused(to(target))).toMatch(/one is being made, or was cut off: if none is, remove .*new\.partial/u)
    expect(await refused(["backup", "--store", newStore().url, "--to", join(folder, "none")])).toMatch(/there is no store/u)
    expect(await refused([...to(join(folder, "x")), "--keys-lifetime", "0d"])).toMatch(/days or hours/u)
    const spoilt = newStore()
    cpSync(store.folder, spoilt.folder, { recursive: true })
    appendFileSync(join(spoilt.folder, "blobs", blobId), "!")
    expect(await refused(["backup", "--store", spoilt.url, "--to", join(folder, "spoilt")])).toMatch(
      /blob .* was changed: its SHA-256 is not its name/u
    )
    expect(readdirSync(folder).sort()).toEqual(["mine.txt", "new.partial"])
    mkdirSync(join(folder, "empty"))
    expect((await backup(store.url, join(folder, "empty"))).ok).toBe(true)
  })

  it("of a log with problems is made, and reports the problems", async () => {
    const own = newStore()
    cpSync(store.folder, own.folder, { recursive: true })
    const db = new Database(own.file)
    db.exec(`DROP TRIGGER events_are_never_changed; UPDATE events SET data = replace(data, '"amount":200000', '"amount":200001')`)
    db.close()
    const folder = join(temporaryFolder(), "faulty")
    const { code, stdout } = await millrace(["backup", "--store", own.url, "--to", folder])
    const made = Schema.decodeUnknownSync(BackedUp)(JSON.parse(stdout))
    expect([code, made.ok, made.problems > 0]).toEqual([1, false, true])
    const target = newStore()
    const again = await millrace(["restore", "--from", folder, "--store", target.url, "--master-key", masterKey, "--none-erased"])
    expect([again.code, JSON.parse(again.stdout)]).toEqual([1, expect.objectContaining({ ok: false, problems: made.problems })])
    expect(existsSync(target.file)).toBe(true)
  })
})

describe("a restored store", () => {
  it("equals the one that was backed up, with its blobs, and lists what to reconcile", async () => {
    const target = newStore()
    const restored = await restore(kept, target.url, "--none-erased", "--master-key", masterKey)
    expect(restored).toMatchObject({ restored: target.file, from: kept, ok: true, keys: 1, refused: [] })
    expect(filesIn(target.folder)).toEqual([`blobs/${blobId}`, "master.key", "millrace.db", "millrace.state.db"])
    expect(statSync(join(target.folder, "master.key")).mode & 0o777).toBe(0o600)
    expect(await readLog(target.url)).toEqual(await readLog(`sqlite:${join(kept, "log", "millrace.db")}`))
    const shown = await millrace(["accounts", "show", "--account", account, "--store", target.url])
    expect(JSON.parse(shown.stdout)).toMatchObject({ status: "verified", email: "ada@example.com", available: 200 })
    expect(restored.reconcile.map(({ what, count }) => [what, count])).toEqual([
      ["events after the backup", null],
      ["payments after the backup", null],
      ["API keys that work", 1],
      ["accounts suspended or closed after the backup", null],
      ["open holds", 0],
      ["promises that an unanswered call costs nothing", 0],
      ["idempotency keys used after the backup", null]
    ])
    const server = await serve(["--store", target.url])
    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(200)
  })

  it("takes its master key from the environment, from beside it, or from a file", async () => {
    const text = readFileSync(masterKey, "utf8").trim()
    const [byVariable, beside] = [newStore(), newStore()]
    const from = (url: string) => ["restore", "--from", kept, "--none-erased", "--store", url]
    expect((await millrace(from(byVariable.url), { env: { MILLRACE_MASTER_KEY: text } })).code).toBe(0)
    expect(readdirSync(byVariable.folder).sort()).toEqual(["blobs", "millrace.db", "millrace.state.db"])
    writeFileSync(join(beside.folder, "master.key"), text, { mode: 0o600 })
    expect((await millrace(from(beside.url))).code).toBe(0)

    const none = newStore()
    expect(await refused(from(none.url))).toMatch(/the master key is missing, and not in the backup/u)
    expect(await refused(from(none.url), { MILLRACE_MASTER_KEY: "42".repeat(32) })).toMatch(/first used with another master key/u)
    expect(await refused([...from(none.url), "--master-key", "/nowhere/master.key"])).toBe("/nowhere/master.key is not there")
    expect(readdirSync(none.folder)).toEqual([])
  })

  it("replaces no existing file", async () => {
    const target = newStore()
    await openAccount(target.url, 1)
    const before = readFileSync(target.file)
    expect(await refused(["restore", "--from", kept, "--store", target.url, "--none-erased"])).toMatch(/is there already/u)
    expect(readFileSync(target.file).equals(before)).toBe(true)
    const other = restoring(kept, "--none-erased")
    mkdirSync(`${other.target.file}.restoring`)
    expect(await refused(other.args)).toMatch(/it is being restored, or that was cut off/u)
  })
})

describe("a damaged or incomplete backup", () => {
  /** A byte in the middle is another. */
  const flip = (file: string) => {
    const bytes = readFileSync(file)
    bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1)
    writeFileSync(file, bytes)
  }

  const SPOILT: Readonly<Record<string, readonly [spoil: (folder: string) => void, says: RegExp]>> = {
    "has no manifest, for it was cut off": [(folder) => rmSync(join(folder, "manifest.json")), /is no backup, or an incomplete one/u],
    "has half a manifest": [(folder) => truncateSync(join(folder, "manifest.json"), 200), /manifest\.json cannot be read/u],
    "is of another format": [
      (folder) => writeFileSync(join(folder, "manifest.json"), '{"format":2}'),
      /manifest\.json cannot be read.*format/su
    ],
    "lost its log": [(folder) => rmSync(join(folder, "log", "millrace.db")), /log\/millrace\.db cannot be copied/u],
    "has a changed log": [(folder) => flip(join(folder, "log", "millrace.db")), /log\/millrace\.db is not what was backed up/u],
    "has half a log": [(folder) => truncateSync(join(folder, "log", "millrace.db"), 8_192), /log\/millrace\.db is not what was backed up/u],
    "has changed keys": [
      (folder) => flip(join(folder, "keys", "millrace.state.db")),
      /keys\/millrace\.state\.db is not what was backed up/u
    ],
    "has a changed blob": [(folder) => flip(join(folder, "blobs", blobId)), /was changed: its SHA-256 is not its name/u],
    "lost a blob": [(folder) => rmSync(join(folder, "blobs", blobId)), /has 0 blobs, 1 were backed up/u],
    "has no keys any more": [(folder) => rmSync(join(folder, "keys"), { recursive: true }), /were deleted: --without-keys/u],
    "has a log that was rewritten, and a manifest that says so": [
      (folder) => {
        const file = join(folder, "log", "millrace.db")
        const db = new Database(file)
        db.exec(`DROP TRIGGER events_are_never_changed; UPDATE events SET data = replace(data, '"amount":200000', '"amount":900000')`)
        db.close()
        const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"))
        const bytes = readFileSync(file)
        const log = { ...manifest.log, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") }
        writeFileSync(join(folder, "manifest.json"), JSON.stringify({ ...manifest, log }))
      },
      /the log of this backup is not what was backed up: account-\w+ link-holds/u
    ]
  }

  it.each(Object.entries(SPOILT))("%s: is refused, and nothing is made of it", async (_, [spoil, says]) => {
    const folder = copy()
    spoil(folder)
    const { target, args } = restoring(folder, "--none-erased")
    expect(await refused(args)).toMatch(says)
    expect(readdirSync(target.folder)).toEqual([])
  })
})

describe("keys past their time", () => {
  it("are not restored, and the rest is, without sealed data", async () => {
    const folder = copy()
    const file = join(folder, "manifest.json")
    const manifest = JSON.parse(readFileSync(file, "utf8"))
    writeFileSync(file, JSON.stringify({ ...manifest, keys: { ...manifest.keys, deleteBy: "2026-01-01T00:00:00.000Z" } }))
    const { target, args } = restoring(folder, "--none-erased")
    expect(await refused(args)).toMatch(/were to be deleted by 2026-01-01T00:00:00\.000Z.*--without-keys/u)
    rmSync(join(folder, "keys"), { recursive: true })
    const { code, stdout } = await millrace([...args, "--without-keys"])
    expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ ok: true, keys: 0 })])
    expect(stdout).toContain("sealed data")
    const shown = await millrace(["accounts", "show", "--account", account, "--store", target.url])
    expect(JSON.parse(shown.stdout)).toMatchObject({ status: "verified", email: null, available: 200 })
    const server = await serve(["--store", target.url])
    const body = JSON.stringify({ text: "An apple." })
    const answer = await call(`${server.url}${GRAMMAR}`, { method: "POST", key, body, headers: { "idempotency-key": "once" } })
    expect(answer.status).toBe(200)
  })
})

describe("an account that was erased after the backup", () => {
  const keyOf = (file: string, account: string): Buffer => {
    const db = new Database(file, { readonly: true })
    const row = db
      .prepare<[string], Buffer>("SELECT value FROM entries WHERE space = 'vaultKeys' AND key = ?")
      .pluck()
      .get(`account:${account}`)
    db.close()
    if (row === undefined) throw new Error("There is no such key")
    return row
  }

  it("stays erased, by a register or by the latest state, whatever it held at the time", { timeout: 60_000 }, async () => {
    const own = newStore()
    const state = join(own.folder, "millrace.state.db")
    const [gone, stays] = [await openAccount(own.url, 10, "grace@example.com"), await openAccount(own.url, 10, "alan@example.com")]
    const server = await serve(["--store", own.url], { env: UNLIMITED })
    // Its checker has yet to be loaded: the server is stopped dead while it does, and leaves a hold
    const cut = call(`${server.url}${GRAMMAR}`, { method: "POST", key: stays.key, body: JSON.stringify({ text: "An apple." }) }).catch(
      () => "cut"
    )
    let isOver = false
    cut.finally(() => {
      isOver = true
    })
    while (!isOver && (await balanceOf(own.url, stays.account)).held === 0);
    await server.kill()
    expect(await cut).toBe("cut")

    const folder = join(temporaryFolder(), "backup")
    await backup(own.url, folder)
    const secret = keyOf(state, gone.account)
    const erase = ["accounts", "erase", "--account", gone.account, "--confirm", gone.account, "--store", own.url]
    expect((await millrace(erase)).code).toBe(0)
    // Erased after the backup, and opened after it, too
    const later = await openAccount(own.url, 1)
    expect((await millrace(["accounts", "erase", "--account", later.account, "--confirm", later.account, "--store", own.url])).code).toBe(0)

    const key = ["--master-key", join(own.folder, "master.key")]
    expect(await refused(["restore", "--from", folder, "--store", newStore().url, ...key])).toMatch(/--erased, or pass --none-erased/u)
    for (const erased of [join(own.folder, "erasures.jsonl"), state]) {
      const target = newStore()
      const restored = await restore(folder, target.url, "--erased", erased, ...key)
      expect(restored).toMatchObject({ ok: true, keys: 1, refused: [`account:${gone.account}`] })
      expect(restored.reconcile).toContainEqual(expect.objectContaining({ what: "open holds", count: 1 }))
      expect(restored.reconcile).toContainEqual(expect.objectContaining({ what: "API keys that work", count: 1 }))
      for (const name of filesIn(target.folder))
        expect([name, readFileSync(join(target.folder, name)).includes(secret)]).toEqual([name, false])
      const show = async (account: string) =>
        JSON.parse((await millrace(["accounts", "show", "--account", account, "--store", target.url])).stdout)
      expect(await show(gone.account)).toMatchObject({ status: "closed", email: null, available: 10 })
      expect(await show(stays.account)).toMatchObject({ status: "opened", email: "alan@example.com" })
      await ask(Audit, ["audit", "--store", target.url, "--against", join(folder, "manifest.json"), "--at", restored.madeAt])
      const again = await serve(["--store", target.url], { env: UNLIMITED })
      expect((await call(`${again.url}${BIN}`, { key: gone.key })).status).toBe(401)
      expect((await call(`${again.url}${BIN}`, { key: stays.key })).status).toBe(200)
      await again.stop()
    }

    // As it would come back, if nobody said so
    expect(readFileSync(join(folder, "keys", "millrace.state.db")).includes(secret)).toBe(true)
    const target = newStore()
    expect(await restore(folder, target.url, "--none-erased", ...key)).toMatchObject({ keys: 2, refused: [] })
    expect((await millrace(["accounts", "show", "--account", gone.account, "--store", target.url])).stdout).toContain("grace@example.com")
  })

  it("is read from complete files only, or nothing is restored", async () => {
    const folder = temporaryFolder()
    const torn = join(folder, "torn.jsonl")
    writeFileSync(torn, '{"subject":"account:acc_1","at":"2026-11-21T00:00:00.000Z"}\n{"subject":"acc')
    const says = async (file: string) => refused(restoring(kept, "--erased", file).args)
    expect(await says(torn)).toMatch(/is no register of erasures, nor a state database: see its line 2/u)
    expect(await says(join(folder, "none.jsonl"))).toMatch(/none\.jsonl cannot be read/u)
    expect(await says(store.file)).toMatch(/is a database, but not a state store/u)
  })
})
