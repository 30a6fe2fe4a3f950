/** The command line on logs beyond this machine: what the default store does, and clear words where something is missing. */
import assert from "node:assert/strict"
import { randomBytes } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { join } from "node:path"
import { Schema } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { undoAfterwards } from "../../../test/system/Leftovers.ts"
import { type Node, newDatabase, startNode } from "../../../test/system/Networked.ts"
import {
  Audit,
  Balance,
  BIN,
  BIN_PRICE,
  call,
  type Environment,
  eventsOf,
  Granted,
  header,
  newStore,
  Opened,
  runProcess,
  type Server,
  serve,
  temporaryFolder,
  UNLIMITED
} from "../../../test/system/Server.ts"

const masterKey = () => randomBytes(32).toString("hex")

/** What a command that succeeds answers. */
const ask = async <A>(shape: Schema.Codec<A, unknown>, env: Environment, ...args: ReadonlyArray<string>): Promise<A> => {
  const { code, stdout, stderr } = await millrace(args, { env })
  assert.deepEqual([code, stderr], [0, ""])
  return Schema.decodeUnknownSync(shape)(JSON.parse(stdout))
}

const Charged = Schema.Struct({
  account: Schema.String,
  operation: Schema.String,
  outcome: Schema.String,
  ends: Schema.Array(Schema.Struct({ end: Schema.String, amount: Schema.Finite }))
})

const Ready = Schema.fromJsonString(Schema.Struct({ status: Schema.String, reasons: Schema.Array(Schema.String) }))

/** Asks until it is so. */
const untilReady = async ({ url }: Server, isIt: (ready: typeof Ready.Type) => boolean): Promise<void> => {
  while (!isIt(Schema.decodeUnknownSync(Ready)((await call(`${url}/ready`)).body))) await new Promise((resolve) => setTimeout(resolve, 50))
}
const isReady = ({ status }: typeof Ready.Type) => status === "ready"

const STORES: ReadonlyArray<readonly [name: string, settings: () => Promise<Environment>]> = [
  ["PostgreSQL", async () => ({ MILLRACE_STORE: await newDatabase() })],
  [
    "KurrentDB with its state in SQLite",
    async () => ({ MILLRACE_STORE: (await startNode()).url, MILLRACE_STATE: `sqlite:${join(temporaryFolder(), "new", "state.db")}` })
  ]
]

describe.each(STORES)("a store on %s", (_, settings) => {
  let env: Environment = {}
  let server: Server
  const start = async () => {
    server = await serve([], { env: { ...env, ...UNLIMITED } })
  }

  beforeAll(async () => {
    env = { ...(await settings()), MILLRACE_MASTER_KEY: masterKey(), MILLRACE_BLOBS: temporaryFolder() }
    await start()
  }, 60_000)

  it("serves, administers and audits like the default, also after kill -9", { timeout: 60_000 }, async () => {
    const { account, key, balance } = await ask(Opened, env, "accounts", "open", "--email", "ada@example.com", "--verified")
    const granted = await ask(Granted, env, "credits", "grant", "--account", account, "--amount", "10", "--source", "promotion")
    expect([balance, granted.balance]).toEqual([200, 210])

    const lookup = await call(`${server.url}${BIN}`, { key })
    expect(lookup.status).toBe(200)
    expect(await ask(Charged, env, "charges", "show", "--request", header(lookup, "x-request-id"))).toEqual({
      account,
      operation: "bin.lookup",
      outcome: "charged",
      ends: [{ end: "charged", amount: BIN_PRICE }]
    })

    await server.kill()
    await start()
    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(200)
    await untilReady(server, isReady)

    const { available, held } = await ask(Balance, env, "balance", "--account", account)
    expect({ available, held }).toEqual({ available: 210 - 2 * BIN_PRICE, held: 0 })
    expect(await ask(Schema.Array(Schema.Unknown), env, "holds", "list")).toEqual([])
    expect((await millrace(["journal", "--format", "csv"], { env })).stdout).toContain(account)
    expect(await ask(Schema.Struct({ email: Schema.String }), env, "accounts", "show", "--account", account)).toEqual({
      email: "ada@example.com"
    })

    const all = eventsOf((await millrace(["events"], { env })).stdout)
    const ofAccount = all.filter(({ stream }) => stream === `account-${account}`).map(({ type }) => type)
    expect(ofAccount.filter((type) => type === "OperationSucceeded")).toHaveLength(2)
    const [first, ...rest] = all
    assert(first !== undefined)
    // Positions are found again without their zeros
    for (const from of [first.position, String(BigInt(first.position))])
      expect(eventsOf((await millrace(["events", "--from", from], { env })).stdout)).toEqual(rest)
    expect(await ask(Audit, env, "audit")).toMatchObject({ ok: true, events: all.length, accounts: 1, problems: [] })
  })

  it("erases an account and writes to the given register", { timeout: 60_000 }, async () => {
    const { account, key } = await ask(Opened, env, "accounts", "open", "--email", "eve@example.com", "--verified")
    const erase = ["accounts", "erase", "--account", account, "--confirm", account]
    expect(await refused(erase.join(" "), env)).toMatch(/--register or MILLRACE_ERASURES/u)
    const register = join(temporaryFolder(), "erasures.jsonl")
    await ask(Schema.Struct({ status: Schema.Literal("closed") }), { ...env, MILLRACE_ERASURES: register }, ...erase)
    expect(readFileSync(register, "utf8")).toContain(account)
    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(401)
    expect(await ask(Schema.Struct({ email: Schema.Null }), env, "accounts", "show", "--account", account)).toEqual({ email: null })
    expect(await ask(Audit, env, "audit")).toMatchObject({ ok: true, problems: [] })
  })

  it("refuses another master key, and a missing one", { timeout: 60_000 }, async () => {
    const { MILLRACE_MASTER_KEY, ...without } = env
    expect(MILLRACE_MASTER_KEY).toMatch(/^[0-9a-f]{64}$/u)
    for (const words of ["serve", "accounts open --email bob@example.com"]) {
      expect(await refused(words, { ...without, MILLRACE_PORT: "0" })).toMatch(/needs MILLRACE_MASTER_KEY/u)
      const other = { ...env, MILLRACE_PORT: "0", MILLRACE_MASTER_KEY: masterKey() }
      expect(await refused(words, other)).toMatch(/first used with another master key/u)
    }
  })
})

const Told = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) }))

/** The one line of a command that fails: no fault of millrace itself, and it holds no password. */
const refused = async (words: string, env: Environment): Promise<string> => {
  const { code, stdout, stderr } = await millrace(words.split(" "), { env })
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
  const { error } = Schema.decodeUnknownSync(Told)(stderr)
  expect(error.code).not.toBe("InternalError")
  expect(error.message).not.toContain("hunter2")
  return error.message
}

const ACCOUNT = "acc_01M7YKD46JCP6VGMKADN3JSPJP"

describe("KurrentDB", () => {
  let node: Node
  let env: Environment = {}

  /** With a log that is not empty. */
  beforeAll(async () => {
    node = await startNode()
    env = {
      MILLRACE_STORE: node.url,
      MILLRACE_STATE: newStore().url,
      MILLRACE_MASTER_KEY: masterKey(),
      MILLRACE_PORT: "0",
      MILLRACE_BLOBS: temporaryFolder()
    }
    await ask(Opened, env, "accounts", "open", "--email", "ada@example.com")
  })

  it("is recognised by every spelling of its address", async () => {
    const { port } = node
    const hosts = [`kurrentdb://127.0.0.1:${port}`, `esdb://127.0.0.1:${port},127.0.0.1:${port}`]
    for (const url of [...hosts, `kurrentdb+discover://127.0.0.1:${port}`, `esdb+discover://localhost:${port}`])
      expect(await ask(Audit, env, "audit", "--store", `${url}?tls=false`)).toMatchObject({ ok: true, accounts: 1 })
  })

  it("needs a state, by flag or by environment", async () => {
    const { MILLRACE_STATE = "", ...without } = env
    const open = "accounts open --email bob@example.com"
    for (const words of ["serve", open, `keys list --account ${ACCOUNT}`]) {
      expect(await refused(words, without)).toMatch(/needs a place for what must be deletable: --state or MILLRACE_STATE/u)
      expect(await refused(words, { ...env, MILLRACE_STATE: "" })).toMatch(/--state or MILLRACE_STATE/u)
      for (const state of ["mysql://ada:hunter2@host/db", "sqlite:", "sqlite::memory:", "memory:", node.url])
        expect(await refused(words, { ...env, MILLRACE_STATE: state })).toMatch(/^unknown kind of state/u)
    }
    await ask(Opened, { ...without, MILLRACE_STATE: "xx:" }, ...open.split(" "), "--state", MILLRACE_STATE)
  })

  it("refuses to make a new state for an old log", async () => {
    const { file, url } = newStore()
    for (const words of ["serve", "accounts open --email carol@example.com", `accounts show --account ${ACCOUNT}`])
      expect(await refused(words, { ...env, MILLRACE_STATE: url })).toContain(`there is no state at ${file}`)
    expect(existsSync(file)).toBe(false)
  })

  it("alone has a state elsewhere, and no files to back up", async () => {
    const store = newStore()
    for (const url of [store.url, "postgres://127.0.0.1/millrace"])
      expect(await refused("serve", { ...env, MILLRACE_STORE: url })).toMatch(/--state or MILLRACE_STATE is for a log on KurrentDB/u)
    expect(existsSync(store.file)).toBe(false)
    expect(await refused(`backup --to ${join(store.folder, "backup")}`, env)).toMatch(/for KurrentDB see docs/u)
  })

  it("is not contacted at an invalid address", async () => {
    const WRONG: ReadonlyArray<readonly [url: string, says: RegExp]> = [
      ["kurrentdb://", /Expected kurrentdb:\/\//u],
      ["esdb://ada:hunter2@127.0.0.1:99999", /port is at most 65535/u],
      ["kurrentdb://ada:hunter2@127.0.0.1?tls=perhaps", /tls is true or false/u],
      ["esdb+discover://a,b", /\+discover takes one host/u],
      ["esdb://127.0.0.1?nodePreference=random", /always leader/u]
    ]
    for (const [url, says] of WRONG)
      for (const words of ["serve", "audit"]) expect(await refused(words, { ...env, MILLRACE_STORE: url })).toMatch(says)
  })

  it("and a state in PostgreSQL let two hosts sell an account's last credits once", { timeout: 60_000 }, async () => {
    const own = { ...env, ...UNLIMITED, MILLRACE_STORE: (await startNode()).url, MILLRACE_STATE: await newDatabase() }
    const hosts = await Promise.all([serve([], { env: own }), serve([], { env: own })])
    const { account, key } = await ask(Opened, own, "accounts", "open", "--email", "ada@example.com")
    await ask(Granted, own, "credits", "grant", "--account", account, "--amount", String(5 * BIN_PRICE), "--source", "promotion")
    const calls = hosts.flatMap(({ url }) => Array.from({ length: 8 }, () => call(`${url}${BIN}`, { key })))
    const statuses = (await Promise.all(calls)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([...Array(5).fill(200), ...Array(11).fill(402)])
    expect(await ask(Balance, own, "balance", "--account", account)).toMatchObject({ available: 0, held: 0, holds: [] })
    expect(await ask(Audit, own, "audit")).toMatchObject({ ok: true, problems: [] })
    for (const host of hosts) expect((await host.stop()).code).toBe(0)
  })

  it("is reported within bounded time when it does not answer", async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => sockets.add(socket.on("error", () => {})))
    const port = await new Promise<number>((resolve) =>
      silent.listen(0, "127.0.0.1", () => {
        const address = silent.address()
        resolve(typeof address === "object" && address !== null ? address.port : 0)
      })
    )
    undoAfterwards(() => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => silent.close(resolve))
    })
    const gone = await startNode()
    await gone.end()
    const urls = [`esdb://127.0.0.1:${gone.port}?tls=false`, `kurrentdb+discover://127.0.0.1:${gone.port}?tls=false&maxDiscoverAttempts=2`]
    for (const url of [...urls, `esdb://127.0.0.1:${port}?tls=false&defaultDeadline=300`])
      for (const words of ["serve", "audit", "events --follow", `accounts show --account ${ACCOUNT}`])
        expect(await refused(words, { ...env, MILLRACE_STORE: url })).toMatch(
          /^the event store is not available: KurrentDB does not answer: /u
        )
    // Nor does a process outlast its answer, with a connection that nobody closes
    const ended = await runProcess(["serve"], { env: { ...env, MILLRACE_STORE: `esdb://127.0.0.1:${port}?tls=false&defaultDeadline=300` } })
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("KurrentDB does not answer")])
    const state = `postgres://ada:hunter2@127.0.0.1:${gone.port}/millrace`
    expect(await refused("serve", { ...env, MILLRACE_STATE: state })).toMatch(/ECONNREFUSED/u)
  })

  it("is reported by a running host when it is away, which continues when it is back", { timeout: 60_000 }, async () => {
    const file = join(temporaryFolder(), "log")
    const first = await startNode({ file })
    const own = { ...env, ...UNLIMITED, MILLRACE_STORE: `${first.url}&defaultDeadline=1000`, MILLRACE_STATE: newStore().url }
    const { account, key } = await ask(Opened, own, "accounts", "open", "--email", "ada@example.com", "--verified")
    const server = await serve([], { env: own })
    await untilReady(server, isReady)
    await first.end()
    await untilReady(server, ({ reasons }) => reasons.some((reason) => reason.startsWith("the subscription to the log is broken")))
    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(503)
    await startNode({ file, port: first.port })
    await untilReady(server, isReady)
    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(200)
    expect((await ask(Balance, own, "balance", "--account", account)).available).toBe(200 - BIN_PRICE)
    expect((await server.stop()).code).toBe(0)
  })
})
