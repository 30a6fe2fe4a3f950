/** Erasing an account by the command line, while a server runs: for ever, told to whoever restores a backup, and safe to ask for again. */
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Schema } from "effect"
import { expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import {
  ask,
  auditOf,
  call,
  type Environment,
  GRAMMAR,
  Issued,
  newStore,
  openAccount,
  readLog,
  serve,
  UNLIMITED
} from "../../../test/system/Server.ts"

const Erased = Schema.Struct({
  account: Schema.String,
  status: Schema.Literal("closed"),
  destroyed: Schema.Array(Schema.String),
  keysRevoked: Schema.Array(Schema.String),
  register: Schema.String,
  stays: Schema.Array(Schema.String),
  backups: Schema.String
})

const refused = async (args: ReadonlyArray<string>, env: Environment = {}): Promise<string> => {
  const { code, stdout, stderr } = await millrace(args, { env })
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
  return JSON.parse(stderr).error.message
}

const erase = (store: string, account: string, ...args: ReadonlyArray<string>) => [
  "accounts",
  "erase",
  "--store",
  store,
  "--account",
  account,
  "--confirm",
  account,
  ...args
]

const registered = (file: string) =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).subject)

it("an erasure destroys the key, revokes API keys, leaves amounts, and adds to the register", { timeout: 60_000 }, async () => {
  const { folder, url } = newStore()
  const { account, key } = await openAccount(url, 10, "grace@example.com")
  const other = await openAccount(url, 10, "ada@example.com")
  const second = await ask(Issued, ["keys", "issue", "--store", url, "--account", account, "--label", "laptop"])
  const server = await serve(["--store", url], { env: UNLIMITED })
  const ask1 = (key: string) =>
    call(`${server.url}${GRAMMAR}`, { method: "POST", key, body: '{"text":"An apple."}', headers: { "idempotency-key": "once" } })
  expect((await ask1(key)).status).toBe(200)

  const db = new Database(join(folder, "millrace.state.db"), { readonly: true })
  const keyOf = db.prepare<[string], Buffer>("SELECT value FROM entries WHERE space = 'vaultKeys' AND key = ?").pluck()
  const [secret = Buffer.of(), othersSecret = Buffer.of()] = [account, other.account].map((id) => keyOf.get(`account:${id}`))
  db.close()
  const isAnywhere = (bytes: Buffer) =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).some(
      (entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(bytes)
    )
  expect([secret.length > 40, isAnywhere(secret), isAnywhere(othersSecret)]).toEqual([true, true, true])

  const erased = await ask(Erased, erase(url, account, "--by", "ada", "--reason", "article 17"))
  const register = join(folder, "erasures.jsonl")
  expect(erased).toMatchObject({ account, destroyed: [`account:${account}`], register })
  expect([...erased.keysRevoked].sort()).toEqual([key.slice(8, 34), second.keyId].sort())
  // The server still has all files open
  expect([isAnywhere(secret), isAnywhere(othersSecret)]).toEqual([false, true])
  for (const gone of [key, second.key]) expect((await ask1(gone)).status).toBe(401)
  expect((await ask1(other.key)).status).toBe(200)
  const shown = await millrace(["accounts", "show", "--store", url, "--account", account])
  expect(JSON.parse(shown.stdout)).toMatchObject({ status: "closed", email: null, available: 9 })
  expect((await auditOf(url)).ok).toBe(true)
  const acts = (await readLog(url)).filter(({ metadata }) => metadata["reason"] === "article 17")
  expect(acts.map(({ type, metadata }) => [type, metadata["actor"]])).toEqual([
    ["AccountClosed", "ada"],
    ["ApiKeyRevoked", "ada"],
    ["ApiKeyRevoked", "ada"]
  ])
  expect(registered(register)).toEqual([`account:${account}`])
  expect(readFileSync(register, "utf8")).not.toMatch(/grace|article/u)

  // The address stays taken, and asking again changes nothing but the register
  expect(await refused(["accounts", "open", "--store", url, "--email", "grace@example.com"])).toBe("the address has an account already")
  const events = (await readLog(url)).length
  expect((await ask(Erased, erase(url, account))).keysRevoked).toEqual([])
  expect((await readLog(url)).length).toBe(events)
  expect(registered(register)).toEqual([`account:${account}`, `account:${account}`])
})

it("an erasure does nothing unless the account exists and is named twice", async () => {
  const { folder, url } = newStore()
  const { account } = await openAccount(url, 1)
  const before = await readLog(url)
  const nobody = "acc_01M7YKD46JCP6VGMKADN3JSPJP"
  const asked = ["accounts", "erase", "--store", url, "--account", account]
  expect(await refused(asked)).toMatch(/--confirm/u)
  expect(await refused([...asked, "--confirm", "yes"])).toBe("--confirm names another account than --account: yes")
  expect(await refused(erase(url, nobody))).toBe("there is no such account")
  expect(await readLog(url)).toEqual(before)
  expect(readdirSync(folder)).not.toContain("erasures.jsonl")
})

it("an erasure writes to the given register first, and does nothing if that fails", async () => {
  const { folder, url } = newStore()
  const [one, two, three] = [await openAccount(url, 1), await openAccount(url, 1), await openAccount(url, 1)]
  const elsewhere = join(newStore().folder, "erasures.jsonl")
  expect((await ask(Erased, erase(url, one.account, "--register", elsewhere))).register).toBe(elsewhere)
  expect((await millrace(erase(url, two.account), { env: { MILLRACE_ERASURES: elsewhere } })).code).toBe(0)
  expect(registered(elsewhere)).toEqual([`account:${one.account}`, `account:${two.account}`])
  expect(readdirSync(folder)).not.toContain("erasures.jsonl")

  expect(await refused(erase(url, three.account, "--register", join(folder, "no", "such", "folder.jsonl")))).toMatch(
    /register of erasures, cannot be written/u
  )
  const shown = await millrace(["accounts", "show", "--store", url, "--account", three.account])
  expect(JSON.parse(shown.stdout)).toMatchObject({ status: "opened" })

  // A line that a crash cut off stays to be seen, and the next is whole
  writeFileSync(elsewhere, '{"subject":"acc')
  chmodSync(elsewhere, 0o600)
  await ask(Erased, erase(url, three.account, "--register", elsewhere))
  const [torn, whole] = readFileSync(elsewhere, "utf8").split("\n")
  expect([torn, JSON.parse(whole ?? "").subject]).toEqual(['{"subject":"acc', `account:${three.account}`])
  rmSync(elsewhere)
})
